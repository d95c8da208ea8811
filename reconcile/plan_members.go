package reconcile

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// kind is what a container is to its pod.
type kind int

const (
	// initial: it runs to its end before the next one starts.
	initial kind = iota
	// sidecar: the next one starts when it has started, and it goes on beside them.
	sidecar
	// primary: the pod is there for it, and has ended when all of these have.
	primary
)

// member is a container of a pod.
type member struct {
	*v1.Container
	kind kind
}

// members returns the containers of a pod in the order in which they start: what
// initialises it as the manifest has it, then the primary ones.
func members(p *v1.Pod) []member {
	list := make([]member, 0, len(p.Spec.InitContainers)+len(p.Spec.Containers))
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		m := member{c, initial}
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			m.kind = sidecar
		}
		list = append(list, m)
	}
	for i := range p.Spec.Containers {
		list = append(list, member{&p.Spec.Containers[i], primary})
	}
	return list
}

// containerOf returns the container of that name, nil for none.
func containerOf(p *v1.Pod, name string) *v1.Container {
	for _, m := range members(p) {
		if m.Name == name {
			return m.Container
		}
	}
	return nil
}

// initialized reports whether the pod was initialised in that sandbox. It is
// remembered, and the engine says so as well: a primary container is made only
// then, whatever became of the init containers since. A restart of all containers
// begins anew.
func (g *generationPlan) initialized(sandbox runtime.SandboxRef) bool {
	remembered := sandbox != (runtime.SandboxRef{}) && g.state.Initialized == sandbox && g.state.Restart == (Restart{})
	return remembered || slices.ContainsFunc(g.members, func(m member) bool {
		return m.kind == primary && g.madeIn(m, sandbox)
	})
}

func (g *generationPlan) madeIn(m member, sandbox runtime.SandboxRef) bool {
	return sandbox != (runtime.SandboxRef{}) && slices.ContainsFunc(g.observed, func(c runtime.Container) bool {
		return c.Name == m.Name && c.Sandbox == sandbox && !g.outlived(c)
	})
}

// passed reports whether what comes after that member may start.
func (g *generationPlan) passed(at int, sandbox runtime.SandboxRef, initialized bool) bool {
	switch m := g.members[at]; m.kind {
	case initial:
		return g.succeeded(at, sandbox)
	case sidecar:
		return initialized || g.started(m, sandbox)
	default:
		return postStart(m.Container) == nil || !g.starting(m)
	}
}

// starting reports whether a container is on its way: the plan starts it, or its
// postStart hook is not over. One that waits for its time delays nobody.
func (g *generationPlan) starting(m member) bool {
	c, found := g.newest(m.Name)
	return found && c.State == runtime.Running && g.state.container(m.Name).PostStarted != c.ID ||
		slices.ContainsFunc(g.plan.Steps, func(s Step) bool { return s.Verb == StartContainer && s.Container == m.Name })
}

// succeeded reports whether an init container has done its work in that sandbox.
// Where it is gone, it is remembered, and those made after it prove it.
func (g *generationPlan) succeeded(at int, sandbox runtime.SandboxRef) bool {
	m := g.members[at]
	if last := g.last(m.Name); last != nil && last.Sandbox == sandbox {
		return last.ExitCode == 0
	}
	return !g.madeIn(m, sandbox) && slices.ContainsFunc(g.members[at+1:], func(m member) bool { return g.madeIn(m, sandbox) })
}

// started reports whether a container runs and has come up.
func (g *generationPlan) started(m member, sandbox runtime.SandboxRef) bool {
	c, ok := g.newest(m.Name)
	if !ok || c.State != runtime.Running || c.Sandbox != sandbox {
		return false
	}
	return g.state.container(m.Name).started(m, c.ID)
}
