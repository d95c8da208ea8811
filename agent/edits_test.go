package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/events"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/server"
)

// C036: an edit of one container replaces that container, whatever the restart
// policy; an edit of a label replaces nothing.
func TestEditOfOneContainer(t *testing.T) {
	w := newWorld(t)
	updated := w.image(sleepCommand)
	text := func(metadata, image string) string {
		return manifest(metadata, `{name: a, image: "`+image+`", command: `+sleeper+`}`, sleeping("b")) + "  restartPolicy: Never\n"
	}
	w.start()
	w.write("inplace.yaml", text("{name: inplace, uid: 6f1c2d3e}", "busybox:stable"))
	s := w.await("it runs", running("inplace"))
	before, ip := w.ids(), find(s, "inplace").Pod.Status.PodIP
	w.write("inplace.yaml", text("{name: inplace, uid: 6f1c2d3e}", updated))
	s = w.await("the edited container runs", runs("inplace", "a", 1), running("inplace"))
	w.same(before, "inplace-node/POD/0", "inplace-node/b/0")
	p := find(s, "inplace").Pod
	if p.UID != "6f1c2d3e" || p.Status.PodIP != ip || ip == "" {
		t.Errorf("uid %s, ip %s, want 6f1c2d3e and %s", p.UID, p.Status.PodIP, ip)
	}
	if got := w.imageOf("inplace-node/a/1"); got != updated {
		t.Errorf("it runs %s, want %s", got, updated)
	}
	before = w.ids()
	w.write("inplace.yaml", text("{name: inplace, uid: 6f1c2d3e, labels: {rev: two}}", updated))
	w.await("the label is seen", labelled("inplace", "two"))
	w.same(before, "inplace-node/POD/0", "inplace-node/a/1", "inplace-node/b/0")
}

// A container added is started, one taken out is stopped; the others go on.
func TestContainersThatComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.write("web.yaml", manifest("{name: web}", sleeping("a")))
	w.await("a runs", running("web"))
	before := w.ids()
	w.write("web.yaml", manifest("{name: web}", sleeping("a"), sleeping("b")))
	w.await("b runs too", runs("web", "b", 0), running("web"))
	w.same(before, "web-node/POD/0", "web-node/a/0")
	before = w.ids()
	w.write("web.yaml", manifest("{name: web}", sleeping("b")))
	w.await("a is gone", func(s server.State) bool { return status(s, "web", "a") == nil }, running("web"))
	w.same(before, "web-node/POD/0", "web-node/b/0")
	if _, ok := w.containers()["web-node/a/0"]; ok {
		t.Error("a is left on the engine")
	}
}

// Limits are set in place.
func TestEditOfLimits(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.write("web.yaml", manifest("{name: web}", sleeping("a", "resources: {limits: {memory: 64Mi, cpu: 200m}}")))
	w.await("it runs", running("web"))
	before := w.ids()
	w.write("web.yaml", manifest("{name: web, labels: {rev: two}}", sleeping("a", "resources: {limits: {memory: 96Mi, cpu: 300m}}")))
	w.await("the edit is seen", labelled("web", "two"))
	w.same(before, "web-node/POD/0", "web-node/a/0")
	if got := w.inspect(before["web-node/a/0"]).HostConfig; got.Memory != 96<<20 || got.MemorySwap != 96<<20 || got.CPUQuota != 30_000 {
		t.Errorf("memory %d, with swap %d, quota %d", got.Memory, got.MemorySwap, got.CPUQuota)
	}
	// What the kernel holds it to, under either version of cgroups.
	const look = "cd /sys/fs/cgroup; cat memory.max memory/memory.limit_in_bytes 2>/dev/null; cat cpu.max cpu/cpu.cfs_quota_us 2>/dev/null"
	if code := w.exec(before["web-node/a/0"], "sh", "-c", "set -- $("+look+"); [ $1 = 100663296 ] && [ $2 = 30000 ]"); code != 0 {
		t.Error("the kernel does not hold it to them")
	}
}

// Limits of the pod as a whole hold its containers together, and are set in place as
// well.
func TestLimitsOfAPod(t *testing.T) {
	w := newWorld(t)
	text := func(rev, memory string) string {
		return manifest("{name: web, labels: {rev: "+rev+"}}", sleeping("a"), sleeping("b", "resources: {limits: {memory: 32Mi}}")) +
			"  resources: {limits: {memory: " + memory + ", cpu: 500m}}\n"
	}
	w.start()
	w.write("web.yaml", text("one", "64Mi"))
	w.await("it runs", running("web"))
	before := w.ids()
	for _, edit := range []struct{ rev, memory, want string }{{"one", "64Mi", "67108864"}, {"two", "96Mi", "100663296"}, {"three", "48Mi", "50331648"}} {
		w.write("web.yaml", text(edit.rev, edit.memory))
		w.await("the edit is seen", labelled("web", edit.rev))
		for name, want := range map[string]int64{"web-node/a/0": 0, "web-node/b/0": 32 << 20} {
			if got := w.inspect(before[name]).HostConfig; got.Memory != want || got.CPUQuota != 0 {
				t.Errorf("%s: %s has memory %d and quota %d, want %d and none", edit.memory, name, got.Memory, got.CPUQuota, want)
			}
		}
		a := w.cgroup(w.inspect(before["web-node/a/0"]).State.Pid)
		a.check(1, "memory", "memory.limit_in_bytes", edit.want, "memory.max", edit.want)
		a.check(1, "cpu", "cpu.cfs_quota_us", "50000", "cpu.max", "50000 100000")
	}
	w.same(before, "web-node/POD/0", "web-node/a/0", "web-node/b/0")
}

// A pod-level edit replaces the pod, in order.
func TestEditOfThePod(t *testing.T) {
	w := newWorld(t)
	h := w.record()
	w.start()
	w.write("web.yaml", manifest("{name: web}", sleeping("a")))
	s := w.await("it runs", running("web"))
	uid := find(s, "web").Pod.UID
	w.write("web.yaml", manifest("{name: web, labels: {rev: two}}", sleeping("a"))+"  hostname: other\n")
	s = w.await("the other generation runs", labelled("web", "two"), running("web"))
	if find(s, "web").Pod.UID == uid {
		t.Errorf("both generations have uid %s", uid)
	}
	if got := w.inspect(w.ids()["web-node/POD/0"]).Config.Hostname; got != "other" {
		t.Errorf("hostname %q", got)
	}
	if most := h.most(t); most != 1 {
		t.Errorf("%d of one kind ran at a time, want 1", most)
	}
	w.onlyPod(s, "default/web-node")
}

// C051: the old container has its grace period, and the new one starts when it
// has ended.
func TestEditGivesTheOldContainerTime(t *testing.T) {
	w := newWorld(t)
	port, dir := freePort(t), w.path("up")
	mkdir(t, dir)
	text := func(says string) string {
		return strings.NewReplacer("PORT", port, "SAYS", says, "DIR", dir).Replace(`
apiVersion: v1
kind: Pod
metadata: {name: update}
spec:
  terminationGracePeriodSeconds: 15
  containers:
  - name: app
    image: busybox:stable
    command: ["sh", "-c", "trap 'sleep 3; exit 0' TERM; touch /up/SAYS; (while :; do nc -l -p 4444 -e echo SAYS; done) & while :; do sleep 1; done"]
    ports: [{containerPort: 4444, hostPort: PORT}]
    volumeMounts: [{name: up, mountPath: /up}]
  volumes: [{name: up, hostPath: {path: DIR}}]
`)
	}
	h := w.record()
	w.start()
	w.write("update.yaml", text("v1"))
	w.await("it runs", running("update"))
	w.poll("it answers", func() bool { return answer(port) == "v1" && exists(dir+"/v1") })
	w.write("update.yaml", text("v2"))
	s := w.await("the edit runs", runs("update", "app", 1))
	last := status(s, "update", "app").LastTerminationState.Terminated
	if last == nil || last.ExitCode != 0 {
		t.Errorf("the old one ended as %+v, want exit code 0", last)
	}
	w.poll("the new one answers", func() bool { return answer(port) == "v2" })
	if most := h.most(t); most != 1 {
		t.Errorf("%d containers of a name ran at a time, want 1", most)
	}
	if n := h.count(events.ActionStart, "update", "app"); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
}

// C062: what a reboot leaves is cleared away, and each boot counts once.
func TestReboots(t *testing.T) {
	w := newWorld(t)
	w.cfg.GC.ContainerPeriod, w.cfg.GC.Containers = 500*time.Millisecond, &gc.Policy{PerContainer: 2, Total: 100}
	w.write("reboot.yaml", manifest("{name: reboot}", sleeping("app", "volumeMounts: [{name: e, mountPath: /e}]"))+"  volumes: [{name: e, emptyDir: {}}]\n")
	w.start()
	w.await("it runs", running("reboot"))
	for boot := int32(1); boot <= 3; boot++ {
		w.stop()
		for _, id := range w.ids() {
			w.stopContainer(id)
		}
		w.start()
		w.await("it runs again", runs("reboot", "app", boot), running("reboot"))
	}
	for name, id := range w.ids() {
		if policy := w.inspect(id).HostConfig.RestartPolicy; !policy.IsNone() {
			t.Errorf("%s has restart policy %s of the engine's own", name, policy.Name)
		}
	}
	w.poll("no more than two dead ones are left", func() bool { return w.dead("app") <= 2 })
	if n := w.dead("POD"); n != 0 || len(w.ids()) != 2 {
		t.Errorf("%d dead sandboxes, %d running, want 0 and 2", n, len(w.ids()))
	}
}

// dead counts the containers of that name that ended.
func (w *world) dead(name string) (n int) {
	w.t.Helper()
	for _, c := range w.list() {
		if c.Labels["io.kubernetes.container.name"] == name && c.State == "exited" {
			n++
		}
	}
	return n
}

// C106, law 9: two dead attempts stay, the newest ones, and can be read. That others
// are collected changes nothing of what the pod has come to.
func TestDeadContainersThatStay(t *testing.T) {
	w := newWorld(t)
	w.cfg.GC.ContainerPeriod, w.cfg.GC.Containers = 500*time.Millisecond, &gc.Policy{PerContainer: 2, Total: 100}
	text := func(rev string) string {
		return manifest("{name: crashlog, labels: {rev: "+rev+"}}",
			`{name: app, image: "busybox:stable", command: ["sh", "-c", "echo run-`+rev+`; exit 1"]}`) + "  restartPolicy: Never\n"
	}
	w.start()
	for i, rev := range []string{"r0", "r1", "r2", "r3", "r4", "r5"} {
		w.write("crashlog.yaml", text(rev))
		s := w.await("it ended", labelled("crashlog", rev), phase("crashlog", v1.PodFailed), func(s server.State) bool {
			return status(s, "crashlog", "app").RestartCount == int32(i)
		})
		if got := status(s, "crashlog", "app").State.Terminated; got == nil || got.ExitCode != 1 {
			t.Fatalf("it ended as %+v", got)
		}
	}
	w.poll("two are left", func() bool { return w.dead("app") == 2 })
	s := w.await("it is as it was", phase("crashlog", v1.PodFailed))
	if got := status(s, "crashlog", "app").RestartCount; got != 5 {
		t.Errorf("restart count %d, want 5", got)
	}
	for name, want := range map[string]string{"crashlog-node/app/4": "run-r4\n", "crashlog-node/app/5": "run-r5\n"} {
		c, ok := w.containers()[name]
		if !ok {
			t.Errorf("%s is gone", name)
			continue
		}
		if got := w.output(c.ID); got != want {
			t.Errorf("%s said %q, want %q", name, got, want)
		}
	}
}

// C107: a finished pod keeps its containers, and goes when its manifest goes, also
// while the agent is down.
func TestFinishedPodThatGoes(t *testing.T) {
	w := newWorld(t)
	w.cfg.GC.ContainerPeriod, w.cfg.GC.Containers = 500*time.Millisecond, &gc.Policy{PerContainer: 2, Total: 100}
	run := func(name, command string) string {
		return `{name: ` + name + `, image: "busybox:stable", command: ["sh", "-c", "` + command + `"]}`
	}
	w.start()
	w.write("multi.yaml", manifest("{name: multi}", run("c1", "true"), run("c2", "true"), run("c3", "exit 1"))+"  restartPolicy: Never\n")
	w.await("it finished", phase("multi", v1.PodFailed))
	w.restart()
	w.await("it is finished still", phase("multi", v1.PodFailed))
	for _, name := range []string{"c1", "c2", "c3"} {
		if n := w.dead(name); n != 1 {
			t.Errorf("%d containers of %s, want 1", n, name)
		}
	}
	if n := w.dead("POD"); n != 0 || len(w.ids()) != 0 {
		t.Errorf("%d dead sandboxes and %d that run, want none", n, len(w.ids()))
	}
	w.stop()
	w.remove("multi.yaml")
	w.start()
	w.await("it is gone", gone("multi"))
	if left := w.list(); len(left) != 0 {
		t.Errorf("%d containers are left", len(left))
	}
	for _, dir := range []string{w.cfg.RootDir + "/pods", w.cfg.Logs.PodsDir, w.cfg.Logs.ContainersDir} {
		if entries, err := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("%s holds %v (%v)", dir, entries, err)
		}
	}
}

// What a removed pod said last can be read for a while, and then all of it goes.
func TestLogsOfARemovedPod(t *testing.T) {
	w := newWorld(t)
	w.cfg.GC.KeepLogs = 5 * time.Second
	port := freePort(t)
	w.write("talk.yaml", manifest("{name: talk}", `{name: app, image: "busybox:stable", command: ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo hi; sleep 3600 & wait"], ports: [{containerPort: 80, hostPort: `+port+`}], volumeMounts: [{name: data, mountPath: /data}]}`)+"  volumes: [{name: data, emptyDir: {medium: Memory}}]\n")
	w.start()
	w.await("it runs", running("talk"))
	w.poll("it has said something", func() bool { return w.output(w.containers()["talk-node/app/0"].ID) == "hi\n" })
	w.remove("talk.yaml")
	w.await("it is gone", gone("talk"))
	if got := w.output(w.containers()["talk-node/app/0"].ID); got != "hi\nbye\n" {
		t.Errorf("its log says %q", got)
	}
	if n := len(w.ids()); n != 0 {
		t.Errorf("%d containers run still", n)
	}
	if left, err := filepath.Glob(w.cfg.RootDir + "/pods/*/volumes"); len(left) > 0 || err != nil {
		t.Errorf("its volumes are left: %v, %v", left, err)
	}
	if left, err := filepath.Glob(w.cfg.Logs.PodsDir + "/*talk*/app/0.log"); len(left) != 1 || err != nil {
		t.Errorf("the links to its logs: %v, %v", left, err)
	}
	w.poll("its containers and its folder are gone", func() bool {
		left, err := os.ReadDir(w.cfg.RootDir + "/pods")
		return len(w.list()) == 0 && len(left) == 0 && err == nil
	})
}
