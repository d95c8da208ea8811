package reconcile

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// containers starts what is to run in the sandbox, in the order of the manifest.
func (g *generationPlan) containers(sandbox runtime.SandboxRef) {
	for i := range g.pod.Object.Spec.Containers {
		g.container(&g.pod.Object.Spec.Containers[i], sandbox)
	}
}

func (g *generationPlan) container(spec *v1.Container, sandbox runtime.SandboxRef) {
	if g.done(spec) {
		return
	}
	c, found := g.newest(spec.Name)
	switch {
	case found && c.State == runtime.Running:
		switch {
		case c.Sandbox != sandbox: // is being stopped
			g.wait(spec, Waiting{ContainerCreating, "waits for a new sandbox"})
		case len(g.definitionChange(c)) > 0:
			g.create(spec, sandbox, DefinitionChanged, 0)
		case g.resizeRestarts(spec, c):
			g.create(spec, sandbox, ResourcesChanged, 0)
		default:
			g.resize(spec, c)
		}
	case found && c.State == runtime.Created && !c.FailedStart():
		if c.Sandbox != sandbox || len(g.definitionChange(c)) > 0 || g.olderRuns(c) {
			g.add(Step{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: Superseded, Wave: g.wave})
			g.wait(spec, Waiting{ContainerCreating, ""})
			return
		}
		reason := Added
		if c.Attempt > 0 {
			reason = Exited
		}
		g.start(spec, c.ID, c.Attempt, reason)
	case found && len(g.definitionChange(c)) > 0:
		g.create(spec, sandbox, DefinitionChanged, g.wave)
	case found:
		g.restart(spec, c, sandbox)
	default:
		reason := Added
		if g.state.container(spec.Name).Attempt >= 0 {
			reason = Missing
		}
		g.create(spec, sandbox, reason, g.wave)
	}
}

// olderRuns reports whether an earlier attempt runs and is to go on.
func (g *generationPlan) olderRuns(c runtime.Container) bool {
	return slices.ContainsFunc(g.attempts(c.Name), func(o runtime.Container) bool {
		return o.Attempt < c.Attempt && o.State == runtime.Running && o.Sandbox == c.Sandbox && len(g.definitionChange(o)) == 0
	})
}

// restart makes the next attempt of a container that ended, after its back-off.
func (g *generationPlan) restart(spec *v1.Container, c runtime.Container, sandbox runtime.SandboxRef) {
	delay := crashDelay(g.state.container(spec.Name).Level)
	ended, seen := g.in.Ended[c.ID]
	if !seen {
		ended = g.in.Now
	}
	if until := ended.Add(delay); g.in.Now.Before(until) {
		g.wait(spec, Waiting{CrashLoopBackOff, backOffMessage(delay, spec.Name, g.in.Key)})
		g.wakeAt(until)
		return
	}
	g.create(spec, sandbox, Exited, g.wave)
}

// create makes the next attempt and starts it, once its image is there and it
// is not waiting after a failure.
func (g *generationPlan) create(spec *v1.Container, sandbox runtime.SandboxRef, reason Reason, wave int) {
	attempt := g.nextAttempt(spec.Name)
	if w, ok := g.image(spec, attempt); !ok {
		g.wait(spec, w)
		return
	}
	if w := g.configured(spec); w != (Waiting{}) {
		g.wait(spec, w)
		return
	}
	if g.held(spec) {
		return
	}
	g.wait(spec, Waiting{Reason: ContainerCreating})
	g.add(Step{Verb: CreateContainer, Container: spec.Name, Attempt: attempt, Image: spec.Image, Sandbox: sandbox, Reason: reason, Wave: wave})
	g.wave = max(g.wave, wave+1)
	g.start(spec, "", attempt, reason)
}

func (g *generationPlan) start(spec *v1.Container, id string, attempt int, reason Reason) {
	if g.held(spec) {
		return
	}
	g.wait(spec, Waiting{Reason: ContainerCreating})
	g.add(Step{Verb: StartContainer, Container: spec.Name, Attempt: attempt, ID: id, Reason: reason, Wave: g.wave})
	g.wave++
}

// held reports whether the container waits after a failed step.
func (g *generationPlan) held(spec *v1.Container) bool {
	f, ok := g.in.Failures[spec.Name]
	if !ok || !g.in.Now.Before(f.Retry) {
		return false
	}
	g.wait(spec, f.Waiting)
	g.wakeAt(f.Retry)
	return true
}
