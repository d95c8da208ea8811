package agent_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// withInit returns a manifest with containers that start before the others.
func withInit(text string, containers ...string) string {
	return strings.Replace(text, "  containers:\n", "  initContainers:\n  - "+strings.Join(containers, "\n  - ")+"\n  containers:\n", 1)
}

// lines returns how many lines a file on the host has.
func lines(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// C055: init containers run one after the other, again in a new sandbox, and
// never because a container of the pod ended.
func TestInitContainers(t *testing.T) {
	w := newWorld(t)
	dir := w.path("runs")
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	text := withInit(manifest("{name: initonce}", shell("app", "wc -l < /s/runs; sleep 1; exit 1", mount)),
		shell("one", "echo one >> /s/runs; sleep 1", mount), shell("two", "echo two >> /s/runs", mount))
	w.write("initonce.yaml", text+"  volumes: [{name: s, hostPath: {path: "+dir+", type: DirectoryOrCreate}}]\n")
	w.start()
	s := w.await("the second one waits for the first", initWaits("initonce", "two", "PodInitializing"))
	if p := find(s, "initonce").Pod; p.Status.Phase != v1.PodPending || conditionOf(p, v1.PodInitialized).Status != v1.ConditionFalse {
		t.Errorf("it is %s, %+v; want Pending and not initialized", p.Status.Phase, p.Status.Conditions)
	}
	s = w.await("the app was restarted twice", restarted("initonce", "app", 2))
	if p := find(s, "initonce").Pod; conditionOf(p, v1.PodInitialized).Status != v1.ConditionTrue {
		t.Errorf("it is not initialized: %+v", p.Status.Conditions)
	}
	if data, _ := os.ReadFile(dir + "/runs"); string(data) != "one\ntwo\n" {
		t.Errorf("the init containers wrote %q, want one, two", data)
	}
	w.kill(w.ids()["initonce-node/POD/0"])
	w.poll("they ran again", func() bool { return lines(t, dir+"/runs") == 4 })
	w.await("the app runs again", restarted("initonce", "app", 3))
}

// C108: an init container that is gone has done its work.
func TestInitContainerThatIsGone(t *testing.T) {
	w := newWorld(t)
	dir := w.path("runs")
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	w.write("initgc.yaml", withInit(manifest("{name: initgc}", sleeping("app", mount)), shell("init", "echo x >> /s/n", mount))+
		"  volumes: [{name: s, hostPath: {path: "+dir+", type: DirectoryOrCreate}}]\n")
	w.start()
	w.await("it runs", running("initgc"))
	before := w.ids()
	w.removeContainer(w.containers()["initgc-node/init/0"].ID)
	w.restart()
	s := w.await("it runs", running("initgc"))
	w.same(before, "initgc-node/POD/0", "initgc-node/app/0")
	if p := find(s, "initgc").Pod; conditionOf(p, v1.PodInitialized).Status != v1.ConditionTrue || p.Status.InitContainerStatuses[0].State.Terminated == nil {
		t.Errorf("conditions %+v, init container %+v; want initialized, terminated", p.Status.Conditions, p.Status.InitContainerStatuses[0].State)
	}
	w.kill(before["initgc-node/app/0"])
	w.await("the app was restarted", runs("initgc", "app", 1))
	if n := lines(t, dir+"/n"); n != 1 {
		t.Errorf("the init container ran %d times, want once", n)
	}
}

// C054: an init container that fails is tried again, or ends the pod.
func TestInitContainerThatFails(t *testing.T) {
	w := newWorld(t)
	dir := w.path("runs")
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	volumes := "  volumes: [{name: s, hostPath: {path: " + dir + ", type: DirectoryOrCreate}}]\n"
	flaky := shell("init", "echo x >> /s/n; [ $(wc -l < /s/n) -ge 2 ]", mount)
	w.write("again.yaml", withInit(manifest("{name: again}", sleeping("app")), flaky)+volumes)
	w.write("never.yaml", withInit(manifest("{name: never}", sleeping("app")), shell("init", "exit 3"))+"  restartPolicy: Never\n")
	own := shell("init", "exit 3", "restartPolicy: Never")
	w.write("own.yaml", withInit(manifest("{name: own}", sleeping("app")), own))
	w.start()
	w.await("it ran after a second try", running("again"))
	for _, name := range []string{"never", "own"} {
		s := w.await("the pod failed", phase(name, v1.PodFailed))
		if app := status(s, name, "app"); app.State.Waiting == nil || app.State.Waiting.Reason != "PodInitializing" {
			t.Errorf("%s: app is %+v, want PodInitializing", name, app.State)
		}
	}
}

// A sidecar starts before what it serves, is restarted by itself and for its own
// edits, and ends last, with an exit code that does not count.
func TestSidecars(t *testing.T) {
	w := newWorld(t)
	dir := w.path("order")
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	volumes := "  volumes: [{name: s, hostPath: {path: " + dir + ", type: DirectoryOrCreate}}]\n"
	noted := func(name string) string {
		return "trap 'echo " + name + " >> /s/ends; exit 7' TERM; echo " + name + " >> /s/starts; while :; do sleep 0.1; done"
	}
	pod := func(image string) string {
		return withInit(manifest("{name: job}", shell("work", "echo work >> /s/starts; while [ ! -e /s/stop ]; do sleep 0.1; done; echo work >> /s/ends", mount)),
			shell("first", noted("first"), mount, "restartPolicy: Always"),
			shell("init", "echo init >> /s/starts", mount),
			shell("last", noted("last"), mount, "restartPolicy: Always", "env: [{name: V, value: "+image+"}]")) +
			"  restartPolicy: OnFailure\n" + volumes
	}
	w.write("job.yaml", pod("one"))
	w.start()
	w.await("it runs", running("job"), initReady("job", "first"), initReady("job", "last"))
	if data, _ := os.ReadFile(dir + "/starts"); string(data) != "first\ninit\nlast\nwork\n" {
		t.Errorf("they started as %q", data)
	}
	before := w.ids()
	w.kill(before["job-node/first/0"])
	w.await("the sidecar is back", initRuns("job", "first", 1))
	w.write("job.yaml", pod("two"))
	s := w.await("the other one was edited", initRuns("job", "last", 1))
	w.same(before, "job-node/POD/0", "job-node/work/0")
	if p := find(s, "job").Pod; p.Status.Phase != v1.PodRunning {
		t.Errorf("it is %s, want Running", p.Status.Phase)
	}
	if err := os.Remove(dir + "/ends"); err != nil { // the edited one ended
		t.Fatal(err)
	}
	writeFile(t, dir+"/stop", "")
	w.await("it succeeded", phase("job", v1.PodSucceeded))
	if data, _ := os.ReadFile(dir + "/ends"); string(data) != "work\nlast\nfirst\n" {
		t.Errorf("they ended as %q", data)
	}
}

// A container may have a policy, and rules, of its own.
func TestRestartPolicyOfAContainer(t *testing.T) {
	w := newWorld(t)
	dir := w.path("runs")
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	rule := "restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]"
	w.write("own.yaml", manifest("{name: own}",
		shell("once", "exit 1", "restartPolicy: Never"),
		shell("until", "echo x >> /s/n; [ $(wc -l < /s/n) -ge 2 ] || exit 42; exit 1", mount, "restartPolicy: Never", rule))+
		"  volumes: [{name: s, hostPath: {path: "+dir+", type: DirectoryOrCreate}}]\n")
	w.start()
	s := w.await("the pod failed", phase("own", v1.PodFailed))
	for name, want := range map[string]int32{"once": 0, "until": 1} {
		if got := status(s, "own", name); got.RestartCount != want || got.State.Terminated.ExitCode != 1 {
			t.Errorf("%s: %d restarts, %+v, want %d", name, got.RestartCount, got.State.Terminated, want)
		}
	}
}

// A container may ask by its exit code that all of the pod be restarted: in the same
// sandbox, with what the volumes hold, at once and without preStop hooks.
func TestRestartOfAllContainers(t *testing.T) {
	w := newWorld(t)
	dir := w.path("runs")
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	noted := func(name string) string { return "echo " + name + " >> /s/runs" }
	rule := "restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [88]}}]"
	hook := "lifecycle: {preStop: {exec: {command: [touch, /s/hook]}}}"
	w.write("all.yaml", withInit(strings.Replace(manifest("{name: all}",
		shell("app", "while [ ! -e /s/fail ]; do sleep 0.1; done; rm /s/fail; exit 88", mount, "restartPolicy: Never", rule),
		shell("done", noted("done"), mount),
		shell("side", "echo side >> /s/runs; trap '' TERM; while :; do sleep 0.1; done", mount, hook)), "GracePeriodSeconds: 2", "GracePeriodSeconds: 120", 1),
		shell("init", noted("init"), mount))+
		"  restartPolicy: Never\n  volumes: [{name: s, hostPath: {path: "+dir+", type: DirectoryOrCreate}}]\n")
	w.start()
	ended := func(restarts int32) condition {
		return func(s server.State) bool {
			c := status(s, "all", "done")
			return c != nil && c.State.Terminated != nil && c.RestartCount == restarts
		}
	}
	w.await("it runs", runs("all", "app", 0), runs("all", "side", 0), ended(0))
	before := w.ids()
	writeFile(t, dir+"/fail", "")
	s := w.await("all were restarted", runs("all", "app", 1), runs("all", "side", 1), ended(1))
	w.same(before, "all-node/POD/0")
	w.poll("each ran twice", func() bool {
		data, _ := os.ReadFile(dir + "/runs")
		return sortedLines(data) == "done done init init side side"
	})
	if _, err := os.Stat(dir + "/hook"); err == nil {
		t.Error("a preStop hook ran")
	}
	app, side := status(s, "all", "app").LastTerminationState.Terminated, status(s, "all", "side").LastTerminationState.Terminated
	if app == nil || app.Reason != "Error" || app.ExitCode != 88 {
		t.Errorf("app ended as %+v, want Error with 88", app)
	}
	if side == nil || side.Reason != "RestartingAllContainers" || side.ExitCode != 137 {
		t.Errorf("side ended as %+v, want RestartingAllContainers with 137", side)
	}
	if c := conditionOf(find(s, "all").Pod, v1.AllContainersRestarting); c.Status != v1.ConditionFalse {
		t.Errorf("condition %+v, want False", c)
	}
	writeFile(t, dir+"/fail", "")
	s = w.await("all were restarted again", runs("all", "app", 2), runs("all", "side", 2), ended(2))
	w.same(before, "all-node/POD/0")
	last := status(s, "all", "app").LastTerminationState.Terminated.FinishedAt
	for _, name := range []string{"app", "side"} {
		if began := status(s, "all", name).State.Running.StartedAt; began.Sub(last.Time) < 10*time.Second {
			t.Errorf("%s began at %s, want 10 s of back-off after %s", name, began, last)
		}
	}
	for _, name := range []string{"app", "side"} { // whose grace period is long
		w.kill(w.ids()["all-node/"+name+"/2"])
	}
}

func sortedLines(data []byte) string {
	words := strings.Fields(string(data))
	slices.Sort(words)
	return strings.Join(words, " ")
}

func conditionOf(p *v1.Pod, kind v1.PodConditionType) v1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1.PodCondition{}
}

func initStatus(s server.State, name, container string) v1.ContainerStatus {
	if p := find(s, name); p != nil {
		for _, c := range p.Pod.Status.InitContainerStatuses {
			if c.Name == container {
				return c
			}
		}
	}
	return v1.ContainerStatus{}
}

func initWaits(name, container, reason string) condition {
	return func(s server.State) bool {
		w := initStatus(s, name, container).State.Waiting
		return w != nil && w.Reason == reason
	}
}

func initReady(name, container string) condition {
	return func(s server.State) bool { return initStatus(s, name, container).Ready }
}

func initRuns(name, container string, attempt int32) condition {
	return func(s server.State) bool {
		c := initStatus(s, name, container)
		return c.State.Running != nil && c.RestartCount == attempt
	}
}

func restarted(name, container string, times int32) condition {
	return func(s server.State) bool {
		c := status(s, name, container)
		return c != nil && c.RestartCount >= times
	}
}
