package reconcile

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// limits returns those that a container is to have.
func (g *generationPlan) limits(spec *v1.Container, c runtime.Container) runtime.Resources {
	r := resources(g.pod.Object, spec, g.in.Node.exempt(g.in.Pins.Own[spec.Name] != ""), c.CgroupParent)
	r.CPUSet = g.in.Pins.of(spec.Name, c.Resources.CPUSet)
	return r
}

// resized reports whether the limits of a running container are not those
// wanted. What was set in this process counts as set, however the engine spells it.
func (g *generationPlan) resized(spec *v1.Container, c runtime.Container) bool {
	want := g.limits(spec, c)
	done := g.in.Learnt[c.ID].Updated
	return c.Resources != want && !(done != nil && *done == want)
}

// resizeRestarts reports whether the limits that differ are set by a restart.
func (g *generationPlan) resizeRestarts(spec *v1.Container, c runtime.Container) bool {
	if !g.resized(spec, c) {
		return false
	}
	want := g.limits(spec, c)
	cpu := c.Resources.CPUShares != want.CPUShares
	if wholeCPUs(g.pod.Object, spec) == 0 { // else the limit is the request, and CPUs of its own come and go without a quota
		cpu = cpu || c.Resources.CPUQuota != want.CPUQuota || c.Resources.CPUPeriod != want.CPUPeriod
	}
	memory := c.Resources.Memory != want.Memory
	return slices.ContainsFunc(spec.ResizePolicy, func(p v1.ContainerResizePolicy) bool {
		return p.RestartPolicy == v1.RestartContainer && (p.ResourceName == v1.ResourceCPU && cpu || p.ResourceName == v1.ResourceMemory && memory)
	})
}

// resizeCgroup sets the limits of the pod's cgroup, if it has one: it grows before the
// containers in it do, and is made tighter when they are.
func (g *generationPlan) resizeCgroup(sandbox runtime.Container) {
	if !g.in.PodCgroups || sandbox.CgroupParent == "" {
		return
	}
	pending := slices.ContainsFunc(g.observed, func(c runtime.Container) bool {
		spec := containerOf(g.pod.Object, c.Name)
		return spec != nil && c.State == runtime.Running && g.resized(spec, c)
	})
	has, known := g.in.Cgroups[g.uid]
	if known && has.Equal(podCgroup(g.pod.Object, g.uid, g.in.Node.exempt(len(g.in.Pins.Own) > 0)).Limits) && (pending || !has.Grow) {
		return
	}
	s := Step{Verb: UpdateCgroup, Parent: sandbox.CgroupParent, Grow: pending, Wave: g.wave}
	if known {
		s.Reason = ResourcesChanged
	}
	g.add(s)
	if pending {
		g.wave++
	}
}

// resize sets the limits of a running container in place.
func (g *generationPlan) resize(spec *v1.Container, c runtime.Container) {
	if !g.resized(spec, c) {
		return
	}
	if g.held(spec.Name) {
		return
	}
	g.add(Step{Verb: UpdateResources, Container: c.Name, Attempt: c.Attempt, ID: c.ID, CPUs: g.in.Pins.of(spec.Name, c.Resources.CPUSet), Reason: ResourcesChanged, Wave: g.wave})
}
