package agent_test

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/server"
)

// cpusAllowed returns the CPUs that the kernel lets a container's process use: those
// of the cgroup that it is in.
func (w *world) cpusAllowed(container string) string {
	w.t.Helper()
	c, ok := w.containers()[container]
	if !ok {
		return ""
	}
	pid := strconv.Itoa(w.inspect(c.ID).State.Pid)
	data, err := os.ReadFile(filepath.Join("/proc", pid, "cgroup"))
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, file := range []string{
			filepath.Join("/sys/fs/cgroup/cpuset", parts[2], "cpuset.cpus"),
			filepath.Join("/sys/fs/cgroup", parts[2], "cpuset.cpus.effective"),
		} {
			if cpus, err := os.ReadFile(file); err == nil && (parts[1] == "cpuset" || parts[1] == "") && len(strings.TrimSpace(string(cpus))) > 0 {
				return strings.TrimSpace(string(cpus))
			}
		}
	}
	w.t.Fatalf("%s: no cpuset in\n%s", container, data)
	return ""
}

func wholeCPU(name string) string {
	return manifest("{name: "+name+"}", sleeping("c", "resources: {limits: {cpu: 1, memory: 32Mi}}"))
}

// Whole CPUs of a Guaranteed pod are its own: read back from the kernel, over a
// restart of the agent, and given back.
func TestStaticCPUs(t *testing.T) {
	cpus := goruntime.NumCPU()
	if cpus < 2 {
		t.Fatal("this takes two CPUs")
	}
	all, last := "0-"+strconv.Itoa(cpus-1), strconv.Itoa(cpus-1)
	rest := strings.TrimSuffix("0-"+strconv.Itoa(cpus-2), "-0")
	w := newWorld(t)
	w.cfg.Node = agent.NodeConfig{StaticCPUs: true, ReservedCPUs: rest}
	w.cfg.Node.System.CPU = int64(cpus-1) * 1000
	expect := func(when string, want map[string]string) {
		t.Helper()
		w.poll(when, func() bool {
			for name, cpus := range want {
				if w.cpusAllowed(name+"-node/c/0") != cpus {
					return false
				}
			}
			return true
		})
	}
	w.write("shared.yaml", manifest("{name: shared}", sleeping("c")))
	w.start()
	w.await("it runs", running("shared"))
	expect("all are shared", map[string]string{"shared": all})
	w.write("own.yaml", wholeCPU("own"))
	w.await("it runs", running("own"))
	expect("one is not", map[string]string{"shared": rest, "own": last})
	w.await("it shows which", func(s server.State) bool { return find(s, "own").CPUs["c"] == last })
	// As with a kubelet, no quota holds it back on it, nor the pod.
	c := w.cgroup(w.inspect(w.containers()["own-node/c/0"].ID).State.Pid)
	c.check(0, "quota of the container", "cpu.cfs_quota_us", "-1", "cpu.max", "max 100000")
	c.check(1, "quota of the pod", "cpu.cfs_quota_us", "-1", "cpu.max", "max 100000")

	w.write("late.yaml", wholeCPU("late"))
	w.restart()
	w.await("the first runs", running("own"))
	expect("the same has it after a restart", map[string]string{"shared": rest, "own": last})
	w.poll("the late one waits", func() bool { return len(w.said.lines("pod=default/late-node", "reason=")) > 0 })
	w.remove("own.yaml")
	w.await("it runs", running("late"))
	expect("it is the late one's", map[string]string{"shared": rest, "late": last})
	w.remove("late.yaml")
	expect("all are shared again", map[string]string{"shared": all})
}

// What the flags take from pods must leave something, and be there.
func TestSharesOfTheMachine(t *testing.T) {
	for name, c := range map[string]struct {
		node agent.NodeConfig
		want string
	}{
		"CPUs that are not there": {agent.NodeConfig{StaticCPUs: true, ReservedCPUs: "0,4096"}, "--reserved-cpus 0,4096: this machine has 0"},
		"all of the memory":       {agent.NodeConfig{System: agent.Reserved{Memory: 1 << 50}}, "leave no memory for pods"},
		"all of the CPUs":         {agent.NodeConfig{System: agent.Reserved{CPU: 1 << 30}, Kube: agent.Reserved{CPU: 1}}, "leave no cpu for pods"},
		"all of the disk":         {agent.NodeConfig{Kube: agent.Reserved{Storage: 1 << 60}}, "leave no ephemeral-storage for pods"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Node = c.node
			if err := agent.Run(t.Context(), w.cfg, w.log); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
