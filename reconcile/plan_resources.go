package reconcile

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// limits returns those of a container that has those CPUs now.
func (g *generationPlan) limits(spec *v1.Container, cpus string) runtime.Resources {
	r := resources(g.pod.Object, spec, g.in.Node)
	r.CPUSet = g.in.Pins.of(spec.Name, cpus)
	return r
}

// resized reports whether the limits of a running container are not those
// wanted. What was set in this process counts as set, however the engine spells it.
func (g *generationPlan) resized(spec *v1.Container, c runtime.Container) bool {
	want := g.limits(spec, c.Resources.CPUSet)
	done := g.in.Learnt[c.ID].Updated
	return c.Resources != want && !(done != nil && *done == want)
}

// resizeRestarts reports whether the limits that differ are set by a restart.
func (g *generationPlan) resizeRestarts(spec *v1.Container, c runtime.Container) bool {
	if !g.resized(spec, c) {
		return false
	}
	want := g.limits(spec, c.Resources.CPUSet)
	cpu := c.Resources.CPUShares != want.CPUShares || c.Resources.CPUQuota != want.CPUQuota || c.Resources.CPUPeriod != want.CPUPeriod
	memory := c.Resources.Memory != want.Memory
	return slices.ContainsFunc(spec.ResizePolicy, func(p v1.ContainerResizePolicy) bool {
		return p.RestartPolicy == v1.RestartContainer && (p.ResourceName == v1.ResourceCPU && cpu || p.ResourceName == v1.ResourceMemory && memory)
	})
}

// resize sets the limits of a running container in place.
func (g *generationPlan) resize(spec *v1.Container, c runtime.Container) {
	if !g.resized(spec, c) {
		return
	}
	if g.held(spec.Name) {
		return
	}
	g.add(Step{Verb: UpdateResources, Container: c.Name, Attempt: c.Attempt, ID: c.ID, CPUs: g.in.Pins.of(spec.Name, c.Resources.CPUSet), Reason: ResourcesChanged})
}
