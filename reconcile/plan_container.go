package reconcile

import (
	"slices"

	"github.com/podkeeper/podkeeper/runtime"
)

// containers starts what is to run in the sandbox, each member when those before
// it have let it.
func (g *generationPlan) containers(sandbox runtime.SandboxRef) {
	if g.restartHolds() {
		return
	}
	initialized, open := g.initialized(sandbox), true
	for at, m := range g.members {
		switch {
		case m.kind == initial && (initialized || g.succeeded(at, sandbox)), m.kind == primary && g.done(m):
			continue
		case !open && !g.runs(m):
			g.queue(m)
			continue
		}
		g.container(m, sandbox)
		open = open && g.passed(at, sandbox, initialized)
	}
	if !open {
		return
	}
	g.state.Restart = Restart{}
	if len(g.pod.Object.Spec.InitContainers) > 0 {
		g.state.Initialized = sandbox
	}
}

func (g *generationPlan) runs(m member) bool {
	c, ok := g.newest(m.Name)
	return ok && c.State == runtime.Running
}

// queue has a container wait for its turn, and its image fetched meanwhile.
func (g *generationPlan) queue(m member) {
	w, ok := g.image(m.Container, g.nextAttempt(m.Name))
	if ok {
		w = Waiting{Reason: g.creating()}
	}
	g.wait(m.Name, w)
}

// container takes the next step with a container whose turn has come.
func (g *generationPlan) container(m member, sandbox runtime.SandboxRef) {
	c, found := g.newest(m.Name)
	switch {
	case found && c.State == runtime.Running:
		g.running(m, c, sandbox)
	case found && c.State == runtime.Created && !c.FailedStart():
		if c.Sandbox != sandbox || len(g.definitionChange(c)) > 0 || g.olderRuns(c) || g.outlived(c) {
			g.add(Step{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: Superseded, Wave: g.wave})
			g.wait(m.Name, Waiting{Reason: g.creating()})
			return
		}
		reason := Added
		if c.Attempt > 0 {
			reason = Exited
		}
		g.start(m, c.ID, c.Attempt, reason)
	case found && len(g.definitionChange(c)) > 0:
		g.create(m, sandbox, DefinitionChanged, g.wave)
	case found && g.outlived(c):
		g.create(m, sandbox, RestartingAllContainers, g.wave)
	case found && m.kind == initial && c.Sandbox != sandbox && c.ExitCode == 0:
		g.create(m, sandbox, SandboxChanged, g.wave)
	case found:
		g.restart(m, c, sandbox)
	default:
		reason := Added
		if g.state.container(m.Name).Attempt >= 0 {
			reason = Missing
		}
		g.create(m, sandbox, reason, g.wave)
	}
}

// running looks after a container that runs.
func (g *generationPlan) running(m member, c runtime.Container, sandbox runtime.SandboxRef) {
	switch {
	case c.Sandbox != sandbox: // is being stopped
		g.wait(m.Name, Waiting{ContainerCreating, "waits for a new sandbox"})
	case len(g.definitionChange(c)) > 0:
		g.create(m, sandbox, DefinitionChanged, 0)
	case g.renewed(c):
		g.create(m, sandbox, RestartedByHand, 0)
	case g.resizeRestarts(m.Container, c):
		g.create(m, sandbox, ResourcesChanged, 0)
	default:
		if g.hooked(m, c) {
			g.resize(m.Container, c)
		}
	}
}

// olderRuns reports whether an earlier attempt runs and is to go on.
func (g *generationPlan) olderRuns(c runtime.Container) bool {
	return slices.ContainsFunc(g.observed, func(o runtime.Container) bool {
		return o.Name == c.Name && o.ID != c.ID && o.State == runtime.Running && o.Sandbox == c.Sandbox && len(g.definitionChange(o)) == 0 && !g.renewed(o)
	})
}

// restart makes the next attempt of a container that ended, after its back-off.
func (g *generationPlan) restart(m member, c runtime.Container, sandbox runtime.SandboxRef) {
	if w, waits := g.backOff(m.Name, c); waits {
		g.wait(m.Name, w)
		return
	}
	g.create(m, sandbox, Exited, g.wave)
}

// backOff reports whether, and why, the next attempt of a container that ended has
// to wait.
func (g *generationPlan) backOff(name string, c runtime.Container) (Waiting, bool) {
	delay := crashDelay(g.state.container(name).Level)
	ended := g.in.Learnt[c.ID].Ended
	if ended.IsZero() {
		ended = g.in.Now
	}
	until := ended.Add(delay)
	if !g.in.Now.Before(until) {
		return Waiting{}, false
	}
	g.wakeAt(until)
	return Waiting{CrashLoopBackOff, backOffMessage(delay, name, g.in.Key)}, true
}

// create makes the next attempt and starts it, once its image is there and it
// is not waiting after a failure.
func (g *generationPlan) create(m member, sandbox runtime.SandboxRef, reason Reason, wave int) {
	if g.in.frozen != (Waiting{}) {
		g.wait(m.Name, g.in.frozen)
		return
	}
	attempt := g.nextAttempt(m.Name)
	if w, ok := g.image(m.Container, attempt); !ok {
		g.wait(m.Name, w)
		return
	}
	if w := g.configured(m.Container); w != (Waiting{}) {
		g.wait(m.Name, w)
		return
	}
	if _, w := security(g.pod.Object, m.Container, g.in.Images[m.Image].Info); w != (Waiting{}) {
		g.wait(m.Name, w)
		g.recheckImage(m.Container, attempt)
		return
	}
	if g.held(m.Name) {
		return
	}
	g.wait(m.Name, Waiting{Reason: g.creating()})
	g.add(Step{Verb: CreateContainer, Container: m.Name, Attempt: attempt, Image: m.Image, CPUs: g.in.Pins.of(m.Name, ""), Sandbox: sandbox, Reason: reason, Wave: wave})
	g.wave = max(g.wave, wave+1)
	g.start(m, "", attempt, reason)
}

func (g *generationPlan) start(m member, id string, attempt int, reason Reason) {
	if g.held(m.Name) {
		return
	}
	g.wait(m.Name, Waiting{Reason: g.creating()})
	g.add(Step{Verb: StartContainer, Container: m.Name, Attempt: attempt, ID: id, Reason: reason, Wave: g.wave})
	g.wave++
}

// held reports whether the container waits after a failed step.
func (g *generationPlan) held(name string) bool {
	f, ok := g.in.Failures[name]
	if !ok || !g.in.Now.Before(f.Retry) {
		return false
	}
	g.wait(name, f.Waiting)
	g.wakeAt(f.Retry)
	return true
}
