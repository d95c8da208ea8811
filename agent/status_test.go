package agent_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/server"
)

// C118: the end of a process that needed too much memory.
func TestOutOfMemory(t *testing.T) {
	w := newWorld(t)
	limit := "resources: {limits: {memory: 32Mi}}"
	w.write("oom.yaml", manifest("{name: oom}", shell("app", "exec tail /dev/zero", limit))+"  restartPolicy: Never\n")
	w.write("again.yaml", manifest("{name: again}", shell("app", "exec tail /dev/zero", limit)))
	w.start()
	s := w.await("it was killed, and killed again", phase("oom", v1.PodFailed), waits("again", "app", "CrashLoopBackOff"))
	want := func(what string, got *v1.ContainerStateTerminated) {
		t.Helper()
		if got == nil || got.Reason != "OOMKilled" || got.ExitCode != 137 {
			t.Errorf("%s ended as %+v, want OOMKilled, 137", what, got)
		}
	}
	want("oom", status(s, "oom", "app").State.Terminated)
	w.poll("the kernel's log was told of", func() bool {
		return len(w.told("OOMKilling", "oom-node", "app", "(tail)")) == 1 && len(w.told("OOMKilling", "again-node", "app", "(tail)")) > 1
	})
	again := status(s, "again", "app")
	want("again", again.LastTerminationState.Terminated)
	if again.RestartCount < 1 {
		t.Errorf("restart count %d, want 1 at least", again.RestartCount)
	}
	if c := w.inspect(w.containers()["oom-node/app/0"].ID).HostConfig; c.Memory != 32<<20 || c.MemorySwap != c.Memory {
		t.Errorf("memory %d, with swap %d, want 32 MiB for both", c.Memory, c.MemorySwap)
	}
}

// told returns the lines of the log about an event of a container.
func (w *world) told(reason, pod, container string, words ...string) []string {
	return w.said.lines(append(words, "reason="+reason+" ", "pod=default/"+pod+" ", "container="+container)...)
}

// Where the kernel's log may not be opened that is said once, and kills are told by what
// cgroups count.
func TestOutOfMemoryWithoutTheLog(t *testing.T) {
	w := newWorld(t)
	w.write("child.yaml", manifest("{name: child}", shell("app", "read go </go/go; tail /dev/zero; exec sleep 1000", "resources: {limits: {memory: 32Mi}}",
		"volumeMounts: [{name: go, mountPath: /go}]"))+"  volumes: [{name: go, hostPath: {path: "+w.tmp+"}}]\n")
	if err := unix.Mkfifo(w.path("go"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.startProcess("unshare", "--mount", "sh", "-c", `mount --bind /dev/kmsg /dev/kmsg && mount -o remount,bind,nodev /dev/kmsg && exec "$0"`)
	w.await("it runs", running("child"))
	w.poll("the log is given up", func() bool { return len(w.said.lines("the kernel's log cannot be read", "permission denied")) == 1 })
	// It waits for a reader.
	if err := os.WriteFile(w.path("go"), []byte("now\n"), 0); err != nil {
		t.Fatal(err)
	}
	w.poll("its kill was told of", func() bool { return len(w.told("OOMKilling", "child-node", "app", "a process was killed")) == 1 })
	if said := w.said.lines("kernel", "log"); len(said) != 1 {
		t.Errorf("said of the log: %q", said)
	}
	w.await("it runs on", runs("child", "app", 0))
}

// C119: a child that was killed for its memory is not the end of the container.
func TestOutOfMemoryOfAChild(t *testing.T) {
	w := newWorld(t)
	dir := w.path("up")
	mkdir(t, dir)
	pod := func(name, script, rev string) string {
		return manifest("{name: "+name+"}", shell("app", script, "resources: {limits: {memory: 32Mi}}",
			"volumeMounts: [{name: up, mountPath: /up}]", "env: [{name: REV, value: "+rev+"}]")) +
			"  restartPolicy: Never\n  volumes: [{name: up, hostPath: {path: " + dir + "}}]\n"
	}
	ends := map[string]struct {
		script string
		code   int32
		reason string
	}{
		"error": {"tail /dev/zero; trap 'exit 143' TERM; touch /up/error; while :; do sleep 1; done", 143, "Error"},
		"done":  {"tail /dev/zero; trap 'exit 0' TERM; touch /up/done; while :; do sleep 1; done", 0, "Completed"},
		"kill":  {"touch /up/kill; while :; do sleep 1; done", 137, "Error"},
	}
	for name, c := range ends {
		w.write(name+".yaml", pod(name, c.script, "one"))
	}
	w.start()
	w.poll("they are ready to end", func() bool { return exists(dir+"/error") && exists(dir+"/done") && exists(dir+"/kill") })
	w.poll("it was told whose child was killed", func() bool {
		return len(w.told("OOMKilling", "error-node", "app", "(tail)")) == 1 && len(w.told("OOMKilling", "done-node", "app", "(tail)")) == 1
	})
	for name, want := range map[string]int64{"error": 1, "done": 1, "kill": 0} {
		id := w.ids()[name+"-node/app/0"]
		kills, ok := stats.NewReader(w.log).OOMKills(stats.Process{ID: id, PID: w.inspect(id).State.Pid})
		if kills != want || !ok {
			t.Errorf("the cgroup of %s counts %d kills (%t), want %d", name, kills, ok, want)
		}
	}
	for name, c := range ends {
		w.await(name+" runs", runs(name, "app", 0))
		last := func(s server.State) *v1.ContainerStateTerminated {
			if got := status(s, name, "app").LastTerminationState.Terminated; got != nil {
				return got
			}
			return status(s, name, "app").State.Terminated
		}
		if name == "kill" {
			w.kill(w.ids()["kill-node/app/0"])
			w.await(name+" ended", phase(name, v1.PodFailed))
		} else {
			w.write(name+".yaml", pod(name, c.script, "two"))
			w.await(name+" ended", runs(name, "app", 1))
		}
		got := last(w.await("its end is known", func(s server.State) bool { return last(s) != nil }))
		if got.ExitCode != c.code || got.Reason != c.reason {
			t.Errorf("%s ended as %+v, want %s, %d", name, got, c.reason, c.code)
		}
	}
	if told := w.told("OOMKilling", "kill-node", "app"); len(told) > 0 {
		t.Errorf("nobody ran out of memory there: %s", told)
	}
}

// C126: limits of logs, and the links by which they are found.
func TestLogLinks(t *testing.T) {
	w := newWorld(t)
	w.write("chatty.yaml", manifest("{name: chatty, namespace: ops}", shell("app", "echo attempt; trap 'exit 0' TERM; sleep 3600 & wait")))
	w.start()
	s := w.await("it runs", runningIn("ops", "chatty"))
	first := w.ids()["chatty-node/app/0"]
	got := w.inspect(first).HostConfig.LogConfig
	if got.Type != "json-file" || got.Config["max-size"] != "10485760" || got.Config["max-file"] != "5" {
		t.Errorf("log configuration %+v, want five files of 10 MiB", got)
	}
	w.kill(first)
	w.await("it runs again", runningIn("ops", "chatty"), func(s server.State) bool {
		return findIn(s, "ops", "chatty").Pod.Status.ContainerStatuses[0].RestartCount == 1
	})
	second := w.ids()["chatty-node/app/1"]
	byPod := filepath.Join(w.cfg.Logs.PodsDir, "ops_chatty-node_"+string(findIn(s, "ops", "chatty").Pod.UID), "app")
	byContainer := filepath.Join(w.cfg.Logs.ContainersDir, "chatty-node_ops_app-")
	for _, link := range []string{byPod + "/0.log", byPod + "/1.log", byContainer + first + ".log", byContainer + second + ".log"} {
		w.poll(link+" can be read", func() bool {
			data, err := os.ReadFile(link)
			return err == nil && strings.Contains(string(data), "attempt")
		})
	}
	w.remove("chatty.yaml")
	w.await("it is gone", func(s server.State) bool { return s.Ready && findIn(s, "ops", "chatty") == nil })
	err := filepath.WalkDir(w.path("logs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
