package reconcile

import (
	"github.com/podkeeper/podkeeper/runtime"
)

// retireSandboxes stops and removes all sandboxes but the one kept.
func (g *generationPlan) retireSandboxes(keep runtime.Container) {
	for _, c := range g.observed {
		if !c.IsSandbox() || c.ID == keep.ID {
			continue
		}
		s := Step{Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: Superseded, Wave: g.wave}
		switch {
		case keep.ID == "" && g.plan.Held && !g.plan.Finished:
			s.Reason = PodStopped
		case keep.ID == "":
			s.Reason = Finished
		}
		if c.FailedStart() {
			s.Reason = FailedToStart
		}
		if c.State == runtime.Running {
			s.Verb, s.Grace = StopContainer, minGrace
			g.add(s)
			s.Wave, s.Grace = s.Wave+1, 0
		}
		s.Verb = RemoveContainer
		g.add(s)
	}
}

// newSandbox makes a sandbox, and forecasts the containers in it.
func (g *generationPlan) newSandbox() {
	attempt, message, removed := g.state.Sandboxes, "", false
	for _, c := range g.observed {
		if !c.IsSandbox() {
			continue
		}
		// The engine would not make another of its name: one that was made from
		// what the manifest said before is not taken over.
		if c.State == runtime.Created && !c.FailedStart() && c.Identity == identity(g.pod, g.uid, c.Name, c.Attempt) {
			attempt = c.Attempt
			continue
		}
		why := SandboxChanged
		switch {
		case c.FailedStart():
			why = FailedToStart
		case c.State == runtime.Created:
			why = Superseded
		}
		if c.Ended() {
			message = "the former one ended"
		}
		g.add(Step{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: why, Wave: g.wave})
		removed = true
	}
	if removed {
		g.wave++ // one that cannot be removed may yet be started
	}
	g.images(g.nextAttempt)
	if f, ok := g.in.Failures[runtime.SandboxName]; ok && g.in.Now.Before(f.Retry) {
		g.plan.Blocked = f.Waiting
		g.wakeAt(f.Retry)
		return
	}
	if w := g.furnished(); w != (Waiting{}) {
		g.plan.Blocked = w
		return
	}
	if g.in.PodCgroups && g.in.Features == nil {
		g.plan.Blocked, g.plan.Asks = unheard, true
		return
	}
	reason := Added
	if attempt > 0 {
		reason = SandboxChanged
	}
	g.add(Step{Verb: CreateSandbox, Container: runtime.SandboxName, Attempt: attempt, Reason: reason, Message: message, Wave: g.wave})
	g.wave++
	g.containers(runtime.SandboxRef{})
}
