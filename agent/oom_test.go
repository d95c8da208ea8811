package agent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/node/kernel"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// seen is a pod with a sandbox and containers in these states.
func seen(name string, containers ...runtime.Container) reconcile.View {
	v := reconcile.View{}
	for _, c := range append(containers, runtime.Container{ID: name + "-sandbox", Identity: runtime.Identity{Name: runtime.SandboxName}}) {
		c.Key, c.UID = pod.Key{Namespace: "default", Name: name}, types.UID("uid-of-"+name)
		v.Containers = append(v.Containers, c)
	}
	return v
}

func TestWhoWasKilled(t *testing.T) {
	pods := []reconcile.View{seen("web", runningAs("c1d2", "app")), seen("db", runningAs("e3f4", "main"))}
	event := func(reason, pod_, container, message string) *pod.Event {
		e := &pod.Event{Type: pod.EventWarning, Reason: reason, Container: container, Message: message}
		if pod_ != "" {
			e.Pod, e.UID = pod.Key{Namespace: "default", Name: pod_}, types.UID("uid-of-"+pod_)
		}
		return e
	}
	for name, c := range map[string]struct {
		kill kernel.Kill
		want *pod.Event
	}{
		"a container at its limit": {
			kernel.Kill{PID: 7, Process: "stress", Cgroup: "/kubepods/podx/c1d2", Limit: "/kubepods/podx/c1d2"},
			event("OOMKilling", "web", "app", "memory limit reached: process 7 (stress) was killed"),
		},
		"in a cgroup of systemd": {
			kernel.Kill{PID: 7, Process: "stress", Cgroup: "/kubepods.slice/kubepods-podx.slice/docker-e3f4.scope", Limit: "/kubepods.slice/kubepods-podx.slice/docker-e3f4.scope"},
			event("OOMKilling", "db", "main", "memory limit reached: process 7 (stress) was killed"),
		},
		"in a cgroup that the container made": {
			kernel.Kill{PID: 7, Process: "stress", Cgroup: "/kubepods/podx/c1d2/inner", Limit: "/kubepods/podx/c1d2"},
			event("OOMKilling", "web", "app", "memory limit reached: process 7 (stress) was killed"),
		},
		"the pod, or all pods, at the limit": {
			kernel.Kill{PID: 7, Process: "stress", Cgroup: "/kubepods/podx/c1d2", Limit: "/kubepods"},
			event("OOMKilling", "web", "app", "memory limit of /kubepods reached: process 7 (stress) was killed"),
		},
		"the machine, and a process of a pod": {
			kernel.Kill{System: true, PID: 7, Process: "stress", Cgroup: "/kubepods/podx/c1d2"},
			event("SystemOOM", "web", "app", "the machine is out of memory: process 7 (stress) was killed"),
		},
		"the machine, and a process of somebody's": {
			kernel.Kill{System: true, PID: 7, Process: "bash", Cgroup: "/user.slice"},
			event("SystemOOM", "", "", "the machine is out of memory: process 7 (bash) was killed"),
		},
		"a container of somebody's at its limit": {kernel.Kill{PID: 7, Cgroup: "/docker/9999", Limit: "/docker/9999"}, nil},
		"nobody knows whose it was":              {kernel.Kill{PID: 7}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := agent.Killed(c.kill, pods)
			if c.want == nil {
				if ok {
					t.Errorf("told of %+v", got)
				}
				return
			}
			if diff := cmp.Diff(*c.want, got); diff != "" || !ok {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func runningAs(id, name string) runtime.Container {
	return runtime.Container{ID: id, Identity: runtime.Identity{Name: name}, State: runtime.Running, PID: 1}
}

func exitedAs(id, name string, code int, flag bool) runtime.Container {
	return runtime.Container{ID: id, Identity: runtime.Identity{Name: name}, State: runtime.Exited, ExitCode: code, OOMKilled: flag}
}

// Where the kernel's log cannot be read.
func TestKillsThatAreCounted(t *testing.T) {
	var counted map[string]int64
	count := func(p stats.Process) (int64, bool) {
		n, ok := counted[p.ID]
		return n, ok
	}
	var c agent.OOMCounts
	for _, step := range []struct {
		what    string
		counted map[string]int64
		app     runtime.Container
		want    []string
	}{
		{"what was before the agent is not told", map[string]int64{"1": 4}, runningAs("1", "app"), nil},
		{"nothing happened", map[string]int64{"1": 4}, runningAs("1", "app"), nil},
		{"a child was killed", map[string]int64{"1": 5}, runningAs("1", "app"), []string{"OOMKilling default/web app"}},
		{"it cannot be read", nil, runningAs("1", "app"), nil},
		{"it can again", map[string]int64{"1": 5}, runningAs("1", "app"), nil},
		{"C119: it ended otherwise, with the engine's flag", nil, exitedAs("1", "app", 143, true), nil},
		{"the next one runs", map[string]int64{"2": 0}, runningAs("2", "app"), nil},
		{"it was killed as a whole", nil, exitedAs("2", "app", 137, true), []string{"OOMKilling default/web app"}},
		{"which is told once", nil, exitedAs("2", "app", 137, true), nil},
		{"somebody killed the next one", nil, exitedAs("3", "app", 137, false), nil},
		{"one came and went in between", nil, exitedAs("4", "app", 137, true), []string{"OOMKilling default/web app"}},
	} {
		counted = step.counted
		if diff := cmp.Diff(step.want, c.Look([]reconcile.View{seen("web", step.app)}, count)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}
