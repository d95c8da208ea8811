package reconcile

import (
	"cmp"
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// finished reports whether the pod has come to its end: every primary container
// had its last attempt, or it cannot be initialised, or the node ended it.
func (g *generationPlan) finished() bool {
	if g.state.End != (End{}) || g.state.Evicted != nil {
		return true
	}
	over := true
	for _, m := range g.members {
		switch m.kind {
		case initial:
			if last := g.last(m.Name); last != nil && last.ExitCode != 0 && g.done(m) {
				return true
			}
		case primary:
			over = over && g.done(m)
		}
	}
	return over
}

// over reports whether the pod that is wanted has come to its end or is held by hand,
// so that it needs nothing of the machine unless it comes back.
func (in Input) over(want *pod.Pod) bool {
	if !in.Held.IsZero() {
		return true
	}
	uid, current, _ := in.split(want)
	g := in.generation(Plan{}, want, uid, current)
	g.condemn()
	g.plan.Finished = g.finished()
	g.meetDeadline()
	return g.plan.Finished
}

// done reports whether a container ended and is not to be started again.
func (g *generationPlan) done(m member) bool {
	last, was := g.last(m.Name), g.state.container(m.Name)
	if last == nil || was.Stopped.Again && was.Stopped.ID == last.ID || len(g.hashChange(m.Name, was.Hash)) > 0 {
		return false
	}
	return !restarts(g.pod.Object, m, last.ExitCode)
}

// last returns how the newest attempt of a container ended; nil where it did not,
// and where it is of before the last restart of all.
func (g *generationPlan) last(name string) *Termination {
	was := g.state.container(name)
	// That a start failed is remembered before the engine is asked once more.
	ended := func(c runtime.Container) bool {
		return c.Ended() || c.State != runtime.Running && c.Attempt <= was.Ended
	}
	if c, ok := g.newest(name); ok && c.Attempt >= was.Attempt && !ended(c) {
		return nil
	}
	if was.Last == nil || was.Last.Attempt != was.Attempt || was.Last.Attempt < was.From {
		return nil
	}
	return was.Last
}

// meetDeadline fails a pod that was active for as long as it may be.
func (g *generationPlan) meetDeadline() {
	seconds := g.pod.Object.Spec.ActiveDeadlineSeconds
	if seconds == nil || g.plan.Finished {
		return
	}
	begun, ok := g.in.Begun[g.uid]
	if !ok {
		begun = g.in.Now
	}
	if until := begun.Add(time.Duration(*seconds) * time.Second); g.in.Now.Before(until) {
		g.wakeAt(until)
		return
	}
	g.state.End = End{DeadlineExceeded, "Pod was active on the node longer than the specified deadline"}
	g.plan.Finished = true
}

// finish ends what still runs of a pod that has come to its end, in its order,
// and takes its sandbox away.
func (g *generationPlan) finish() {
	g.state.Restart = Restart{}
	left := slices.DeleteFunc(slices.Clone(g.observed), func(c runtime.Container) bool { return c.IsSandbox() || c.State != runtime.Running })
	for _, s := range g.in.ending(left, g.pod, cmp.Or(g.state.End.Reason, Finished)) {
		g.add(s)
		g.wave, g.plan.Ending = s.Wave+1, true
	}
	g.removeStrays()
	g.retireSandboxes(runtime.Container{})
}
