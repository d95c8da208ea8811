package reconcile

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// ending returns the steps that end running containers of pods that are over:
// all beside each other, then the sidecars, the last one first. They share the
// grace period, and once it is over those that are left end together. want is the
// version of a generation that is still wanted.
func (in Input) ending(list []runtime.Container, want *pod.Pod, reason Reason) []Step {
	var elapsed time.Duration
	if !in.Ending.IsZero() {
		elapsed = in.Now.Sub(in.Ending)
	}
	turns := make(map[int][]Step)
	for _, c := range list {
		grace, turn := c.Grace, 0
		p := in.admitted(c.UID, want)
		if p != nil {
			grace, turn = gracePeriod(p), stopTurn(p, c.Name)
		}
		least := minGrace
		if in.grace > 0 {
			grace, least = min(grace, in.grace), min(least, in.grace)
		}
		if elapsed >= grace {
			turn = 0
		}
		turns[turn] = append(turns[turn], Step{
			Verb: StopContainer, UID: c.UID, Container: c.Name, Attempt: c.Attempt, ID: c.ID,
			Grace: max(grace-elapsed, least), Hook: preStop(p, c.Name) != nil, Reason: reason,
		})
	}
	var steps []Step
	for wave, turn := range sortedKeys(turns) {
		for _, s := range turns[turn] {
			s.Wave = wave
			steps = append(steps, s)
		}
	}
	return steps
}

// admitted returns what a generation was made from, as far as that is known; else
// what is wanted now.
func (in Input) admitted(uid types.UID, want *pod.Pod) *pod.Pod {
	return cmp.Or(in.Records[uid].Pod, want)
}

// stopTurn orders the ends of a pod's containers.
func stopTurn(p *pod.Pod, name string) int {
	all := members(p.Object)
	at := slices.IndexFunc(all, func(m member) bool { return m.Name == name })
	if at < 0 || all[at].kind != sidecar {
		return 0
	}
	return len(all) - at
}

// removal returns the steps that take containers away: all end, then their
// sandboxes, which carry their network until then.
func (in Input) removal(list []runtime.Container, reason Reason) []Step {
	running := slices.DeleteFunc(slices.Clone(list), func(c runtime.Container) bool { return c.IsSandbox() || c.State != runtime.Running })
	steps := in.ending(running, nil, reason)
	wave := 0
	next := func() {
		if len(steps) > 0 {
			wave = steps[len(steps)-1].Wave + 1
		}
	}
	add := func(verb Verb, c runtime.Container) {
		s := Step{Verb: verb, UID: c.UID, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: reason, Wave: wave}
		if verb == StopContainer {
			s.Grace = minGrace
		}
		steps = append(steps, s)
	}
	next()
	for _, c := range list {
		switch {
		case !c.IsSandbox():
			add(RemoveContainer, c)
		case c.State == runtime.Running:
			add(StopContainer, c)
		}
	}
	next()
	for _, c := range list {
		if c.IsSandbox() {
			add(RemoveContainer, c)
		}
	}
	return steps
}

// keepLogs leaves containers of a pod that nobody wants where they are for a while
// after they ended, so that their logs can be read to the end, and with them all that
// is to go after them. Their network goes at once, and when all have ended their
// volumes: those hold secrets, and memory.
func (in Input) keepLogs(plan *Plan) {
	last := -1 // wave of those that stay
	plan.Steps = slices.DeleteFunc(plan.Steps, func(s Step) bool {
		ended := in.Learnt[s.ID].Ended
		until := ended.Add(in.KeepLogs)
		if s.Verb != RemoveContainer || s.Container == runtime.SandboxName || ended.IsZero() || !in.Now.Before(until) {
			return false
		}
		last = s.Wave // that of all containers
		if plan.Wake.IsZero() || until.Before(plan.Wake) {
			plan.Wake = until
		}
		return true
	})
	if last < 0 {
		return
	}
	plan.Steps = slices.DeleteFunc(plan.Steps, func(s Step) bool {
		return s.Wave > last && (s.Verb != RemoveFolder || in.Vacated[s.UID])
	})
	for i, s := range plan.Steps {
		if s.Verb == RemoveFolder {
			plan.Steps[i].Verb, plan.Steps[i].Wave = RemoveVolumes, last+1
		}
	}
}
