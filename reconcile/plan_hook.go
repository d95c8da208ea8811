package reconcile

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

func postStart(c *v1.Container) *v1.LifecycleHandler {
	if c == nil || c.Lifecycle == nil {
		return nil
	}
	return c.Lifecycle.PostStart
}

func preStop(p *pod.Pod, name string) *v1.LifecycleHandler {
	if p == nil {
		return nil
	}
	c := containerOf(p.Object, name)
	if c == nil || c.Lifecycle == nil {
		return nil
	}
	return c.Lifecycle.PreStop
}

// foldHooks remembers which running containers have their postStart hook behind
// them. One without a hook is not given one by an edit: it is for the next start.
func (g *generationPlan) foldHooks() {
	for _, c := range g.observed {
		if c.IsSandbox() || c.State != runtime.Running {
			continue
		}
		if postStart(containerOf(g.pod.Object, c.Name)) == nil || g.in.Learnt[c.ID].Hook == HookDone {
			was := g.state.container(c.Name)
			was.PostStarted = c.ID
			g.state.Containers[c.Name] = was
		}
	}
}

// hooked reports whether a container that runs has its postStart hook behind it.
// If not, it plans to run it.
func (g *generationPlan) hooked(m member, c runtime.Container) bool {
	if g.state.container(m.Name).PostStarted == c.ID {
		return true
	}
	step := Step{Verb: PostStart, Pod: g.in.Key, UID: g.uid, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: Started}
	w := Waiting{g.creating(), "its postStart hook runs"}
	switch f, failed := g.in.Failures[step.failureKey()]; {
	case g.in.Learnt[c.ID].Hook == HookFailed:
		w = Waiting{FailedPostStartHook, hookFailed}
	case failed && g.in.Now.Before(f.Retry):
		g.wakeAt(f.Retry)
		w = f.Waiting
	default:
		g.plan.Hooks = append(g.plan.Hooks, step)
	}
	g.wait(m.Name, w)
	return false
}

// hookFailed says no more than the kubelet: what a hook printed may be secret.
const hookFailed = "PostStartHook failed"
