package reconcile

import (
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// stopStrays stops every running container that must not run as it is: not in
// the pod, of an older attempt, of another definition, or in another sandbox.
func (g *generationPlan) stopStrays(sandbox runtime.SandboxRef) {
	for _, c := range g.observed {
		if c.IsSandbox() || c.State != runtime.Running {
			continue
		}
		spec := containerOf(g.pod.Object, c.Name)
		switch {
		case spec == nil:
			g.stop(c, Removed, "the pod has no such container any more")
		case c.Sandbox != sandbox:
			g.stop(c, SandboxChanged, "its sandbox is gone")
		default:
			g.stopMisfit(spec, c)
		}
	}
	g.removeStrays()
	if len(g.plan.Steps) > 0 {
		g.wave = 1
	}
}

// removeStrays removes dead containers that the pod does not name.
func (g *generationPlan) removeStrays() {
	for _, c := range g.observed {
		if !c.IsSandbox() && c.State != runtime.Running && containerOf(g.pod.Object, c.Name) == nil {
			g.add(Step{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: Removed})
		}
	}
}

// stopMisfit stops a container that runs in the right place, but not as it must.
func (g *generationPlan) stopMisfit(spec *v1.Container, c runtime.Container) {
	newest, _ := g.newest(c.Name)
	fields := g.definitionChange(c)
	failed := ""
	if found := g.in.Learnt[c.ID].Probes; found != nil {
		failed = found.Unhealthy
	}
	switch {
	case g.outlived(c):
		g.stopForRestart(c)
	case len(fields) > 0:
		g.stop(c, DefinitionChanged, fmt.Sprintf("%s changed", joined(fields)))
	case g.renewed(c):
		g.stop(c, RestartedByHand, renewedMessage)
	case g.resizeRestarts(spec, c):
		g.stop(c, ResourcesChanged, "its resizePolicy asks for a restart")
	case newest.ID != c.ID && (newest.State == runtime.Running || newest.Ended()):
		g.stop(c, Superseded, fmt.Sprintf("attempt %d is the newest", newest.Attempt))
	case g.in.Learnt[c.ID].Hook == HookFailed:
		g.stop(c, FailedPostStartHook, hookFailed)
	case failed != "":
		g.stopUnhealthy(spec, c, failed)
	}
}

// stopUnhealthy stops a container whose probe failed for good, within the grace
// period of that probe where it has one.
func (g *generationPlan) stopUnhealthy(spec *v1.Container, c runtime.Container, failed string) {
	grace := gracePeriod(g.pod)
	if p := probeOf(spec, failed); p != nil && p.TerminationGracePeriodSeconds != nil {
		grace = max(time.Duration(*p.TerminationGracePeriodSeconds)*time.Second, minGrace)
	}
	g.stopWithin(grace, c, Unhealthy, fmt.Sprintf("failed %s probe", failed))
}

func probeOf(spec *v1.Container, name string) *v1.Probe {
	switch name {
	case LivenessProbe:
		return spec.LivenessProbe
	case StartupProbe:
		return spec.StartupProbe
	default:
		return nil
	}
}

func (g *generationPlan) stop(c runtime.Container, reason Reason, message string) {
	g.stopWithin(gracePeriod(g.pod), c, reason, message)
}

// stopWithin ends a container with the hook that it was admitted with. One that is
// stopped for what befell it is to run again, however it ends now.
func (g *generationPlan) stopWithin(grace time.Duration, c runtime.Container, reason Reason, message string) {
	edit := reason == ResourcesChanged || reason == DefinitionChanged
	spec := containerOf(g.pod.Object, c.Name)
	switch {
	case reason == DefinitionChanged && !restartsAll(spec) && len(g.hashChange(c.Name, c.ContainerHash)) > 0:
		// Its hash will tell.
	case edit, reason == Unhealthy, reason == FailedPostStartHook, reason == SandboxChanged:
		was := g.state.container(c.Name)
		was.Stopped = Stopped{ID: c.ID, Message: message, Again: edit || g.restartable(c.Name), Edit: edit}
		g.state.Containers[c.Name] = was
	}
	hook := preStop(g.in.admitted(g.uid, g.pod), c.Name) != nil
	g.add(Step{Verb: StopContainer, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Grace: grace, Hook: hook, Reason: reason, Message: message})
}

// definitionChange returns what differs between the definition that a container
// was made with and the one wanted. A hash of this version decides; the fields
// that changed are looked up only to name them. With an unknown version the
// fields decide, and where they are lost nothing changed. An object counts where
// the pod wants it to.
func (g *generationPlan) definitionChange(c runtime.Container) []string {
	if fields := g.hashChange(c.Name, c.ContainerHash); len(fields) > 0 {
		return fields
	}
	return g.objectChange(c)
}

func (g *generationPlan) hashChange(name string, made pod.Hash) []string {
	want := g.pod.Containers[name]
	if made == want {
		return nil
	}
	fields := g.changedFields()[name]
	if made.Version == want.Version && len(fields) == 0 {
		return []string{"definition"}
	}
	return fields
}

// changedFields returns what differs between pod.json and the pod wanted, by
// container. Most plans need not know.
func (g *generationPlan) changedFields() map[string][]string {
	if g.changed == nil {
		g.changed = make(map[string][]string)
		if g.record.Pod != nil {
			maps.Copy(g.changed, manifests.Changed(g.record.Pod.Object, g.pod.Object).Containers)
		}
	}
	return g.changed
}
