package agent_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/node/kernel"
	"github.com/podkeeper/podkeeper/server"
)

// inMounts runs a script, then the agent, with mounts of their own.
func inMounts(script string) []string {
	return []string{"unshare", "--mount", "sh", "-ec", script + `; exec "$0"`}
}

// mounts changes the mounts of an agent that has its own.
func (p *process) mounts(script string) {
	p.t.Helper()
	if out, err := exec.Command("nsenter", "--mount", "--target", strconv.Itoa(p.cmd.Process.Pid), "sh", "-ec", script).CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

const eachHierarchy = `for m in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts); do `

// A tree of cgroups that cannot be written to, or is gone: the agent stays up, keeps
// its pods, and says of new ones what it cannot do; they run when it can again.
func TestBrokenCgroups(t *testing.T) {
	w := newWorld(t)
	w.write("old.yaml", manifest("{name: old}", sleeping("a")))
	p := w.startProcess(inMounts("true")...)
	w.await("it runs", runs("old", "a", 0))
	ids := w.ids()
	says := func(name, text string) condition {
		return func(s server.State) bool {
			p := find(s, name)
			return p != nil && strings.Contains(fmt.Sprint(p.Pod.Status.Message, p.Blocked, p.Pod.Status.ContainerStatuses), text)
		}
	}
	p.mounts(eachHierarchy + "mount -o remount,bind,ro $m; done")
	w.write("new.yaml", manifest("{name: new}", sleeping("a")))
	w.await("it is said what cannot be written", says("new", "read-only file system"))
	p.mounts(eachHierarchy + "mount -o remount,bind,rw $m; done")
	w.await("it runs when it can be", runs("new", "a", 0))

	p.mounts(eachHierarchy + "umount -l $m; done")
	w.write("late.yaml", manifest("{name: late}", sleeping("a")))
	w.await("it is said what is not there", says("late", "no cgroups are mounted at /sys/fs/cgroup"))
	w.same(ids, "old-node/POD/0", "old-node/a/0")
	w.kill(ids["old-node/a/0"])
	w.await("what was there is kept", runs("old", "a", 1), runs("new", "a", 0))
}

// A controller that pods need and the machine has not is named, and nothing is started.
func TestMissingController(t *testing.T) {
	w := newWorld(t)
	lose := "umount -l /sys/fs/cgroup/memory"
	if exists("/sys/fs/cgroup/cgroup.controllers") {
		writeFile(t, w.path("controllers"), "cpu cpuset pids\n")
		lose = "mount --bind " + w.path("controllers") + " /sys/fs/cgroup/cgroup.controllers"
	}
	ctx, cancel := context.WithTimeout(t.Context(), *patience)
	defer cancel()
	out, err := w.process(ctx, inMounts(lose)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cgroup controller memory (without it: ") {
		t.Errorf("%v, it says\n%s", err, out)
	}
}

// The agent puts itself in its place, with the score that it is to have.
func TestThePlaceOfTheAgent(t *testing.T) {
	w := newWorld(t)
	var host cgroup.Host
	group := fmt.Sprintf("/podkeepertest%d_agent", os.Getpid())
	w.cfg.Node = agent.NodeConfig{OOMScoreAdj: 500, Groups: agent.ProcessGroups{Agent: group}}
	p := w.startProcess()
	t.Cleanup(func() {
		p.kill()
		if err := host.Remove(context.WithoutCancel(t.Context()), group); err != nil {
			t.Error(err)
		}
	})
	w.poll("it is in its cgroup", func() bool {
		pids, err := host.Processes(group)
		return err == nil && slices.Equal(pids, []int{p.cmd.Process.Pid})
	})
	if got := strings.TrimSpace(readFile(t, fmt.Sprintf("/proc/%d/oom_score_adj", p.cmd.Process.Pid))); got != "500" {
		t.Errorf("its oom_score_adj is %s, want 500", got)
	}
}

// Where the kernel's settings are only checked, those that differ keep the agent from
// starting.
func TestProtectedKernelSettings(t *testing.T) {
	w := newWorld(t)
	w.cfg.Node.Kernel = agent.ProtectKernel
	differ := kernel.Differ("/proc/sys", kernel.Wanted())
	if len(differ) == 0 {
		w.start()
		w.await("it is ready", func(s server.State) bool { return s.Ready })
		return
	}
	if got := w.refused(); !strings.Contains(got, differ[0].String()) || !strings.Contains(got, "--protect-kernel-defaults") {
		t.Errorf("the agent ended with %q, want %s named", got, differ[0])
	}
}
