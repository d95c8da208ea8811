package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// This file is the loop's side of admission; admit*.go decide.

// holdAdmitted notes, before any pod is admitted, who has which port and how much
// room: the pods that run, then those that were admitted before, the older first. A
// pod whose sandbox was just being replaced when the agent died has lost nothing; one
// that gave its ports up, since it was evicted or stopped by hand, asks for them anew.
// What a pod that runs was admitted with may be lost; then it counts, and has the ports
// that the engine lists.
func (s *state) holdAdmitted(list []runtime.Summary) {
	for _, c := range list {
		if c.IsSandbox() && c.State == runtime.Running && s.pods[c.Key].records[c.UID].Pod == nil {
			s.ledger.HoldListed(c.Key, c.Ports)
			s.room.HoldListed(c.Key)
		}
	}
	type admission struct {
		pod *pod.Pod
		at  time.Time
	}
	var former []admission
	for _, key := range slices.SortedFunc(maps.Keys(s.pods), pod.Key.Compare) {
		e, up := s.pods[key], false
		for uid, rec := range e.records {
			for _, c := range e.observed() {
				if c.UID == uid && c.IsSandbox() && c.State == runtime.Running && rec.Pod != nil {
					s.ledger.Hold(rec.Pod)
					s.room.Hold(rec.Pod)
					up = true
				}
			}
		}
		in := s.input(e)
		for _, rec := range e.records {
			if !up && rec.Pod != nil && !rec.State.Leaving && !rec.State.unadmitted() && !in.over(rec.Pod) {
				former = append(former, admission{rec.Pod, rec.State.Admitted})
			}
		}
	}
	slices.SortFunc(former, func(a, b admission) int {
		return cmp.Or(a.at.Compare(b.at), a.pod.Key().Compare(b.pod.Key()))
	})
	for _, f := range former {
		if s.room.Lacks(f.pod) != (Waiting{}) {
			continue
		}
		if admitted, _ := s.ledger.Admit(f.pod, nil); len(admitted) > 0 {
			s.room.Hold(f.pod)
		}
	}
}

// admit asks whether the pod may have what it asks for of the machine, and gets it
// its host ports, once for each version of it, and room for it.
func (s *state) admit(e *entry, in *Input) {
	delete(s.asking, e.key)
	delete(s.awaiting, e.key)
	e.pressed = false
	want, _ := in.wanted()
	if want == nil || in.over(want) {
		e.refused = Waiting{}
		s.leaveQueue(e.key)
		return
	}
	forbidden := cmp.Or(in.Policy.refusal(want), in.Node.mismatch(want.Object), in.unsupported(want))
	pressed := in.Pressure.refusal(want.Object)
	if in.Shutdown != nil {
		pressed = Waiting{NodeShutdown, "Pod was rejected as the node is shutting down."}
	}
	up := running(in.Observed, want.Hash)
	if up && !remembered(in, want.Hash) {
		s.room.Hold(want) // it has it in fact
	}
	had := e.admitted != nil && e.admitted.Hash == want.Hash
	if up || had && len(in.Observed) > 0 {
		pressed = Waiting{} // one of which nothing is there yet waits, as if it had come after the pressure
	}
	switch {
	case forbidden == (Waiting{}) && pressed != (Waiting{}):
		forbidden, e.pressed = pressed, true
	case forbidden != (Waiting{}) && !had && !up:
	case !had && !up:
		if !s.claim(e, want) {
			in.Refused = e.refused
			return
		}
	default:
		if lacks := s.room.Lacks(want); forbidden == (Waiting{}) && lacks != (Waiting{}) {
			s.wait(want)
			in.Refused = lacks
			s.sayRefused(e, lacks)
			return
		}
		if !had {
			s.ledger.Release(e.key)
			s.hold(want) // it has them in fact
			s.wakeWaiting()
			e.admitted = want
		}
	}
	s.leaveQueue(e.key)
	if forbidden == (Waiting{}) {
		s.room.Hold(want)
	}
	in.Refused = forbidden
	s.sayRefused(e, forbidden)
	if in.Awaits = s.ledger.Awaits(want); in.Awaits != (Waiting{}) {
		s.awaiting[e.key] = true
	}
}

// remembered reports whether it is known what a generation that runs was admitted as.
func remembered(in *Input, hash pod.Hash) bool {
	return slices.ContainsFunc(in.Observed, func(c runtime.Container) bool {
		return liveSandbox(c) && c.PodHash == hash && in.Records[c.UID].Pod != nil
	})
}

// claim reports whether a pod is admitted, with those that have to be with it for the
// sake of their ports.
func (s *state) claim(e *entry, want *pod.Pod) bool {
	group, refusal := s.ledger.together(want, s.asking)
	if len(group) > 0 {
		refusal = s.room.Lacks(group...)
	} else if !pod.Critical(want.Object) {
		refusal = cmp.Or(s.room.Lacks(want), refusal) // what the kubelet names first
	}
	switch {
	case refusal == (Waiting{}):
	case len(group) == 1:
		s.wait(want)
		s.sayRefused(e, refusal)
		return false
	default: // room alone does not do: none is kept for it, and nobody ended
		s.leaveQueue(e.key)
		s.sayRefused(e, refusal)
		s.asking[e.key] = want
		return false
	}
	s.ledger.take(group)
	for _, p := range group {
		s.pods[p.Key()].admitted = p
		s.room.Hold(p)
		delete(s.asking, p.Key())
		if p != want {
			s.mark(p.Key())
		}
	}
	s.wakeWaiting() // former versions may have held others
	return true
}

// wait has a pod wait for room. Where it asks for another amount than before, others
// may fit beside it.
func (s *state) wait(want *pod.Pod) {
	if s.room.Wait(want) {
		s.wakeWaiting()
	}
}

// leaveQueue has a pod wait for room no longer. What was kept for it is free.
func (s *state) leaveQueue(key pod.Key) {
	if s.room.Waits(key) {
		s.room.Leave(key)
		s.wakeWaiting()
	}
}

// sayRefused notes why the pod is not admitted, and logs it once.
func (s *state) sayRefused(e *entry, why Waiting) {
	same := e.refused == why || (e.pressed || s.room.Waits(e.key)) && e.refused.Reason == why.Reason // the numbers change
	if !same && why != (Waiting{}) && why != unheard {
		s.deps.Counts.Rejected(why.Reason)
		s.deps.Log.Warn("pod waits", "pod", e.key, "reason", why.Reason, "message", why.Message)
	}
	e.refused = why
}

// hold notes the ports of what runs. Who was to have one of them, and does not run
// yet, has to ask again: what was to give it up went back on that.
func (s *state) hold(p *pod.Pod) {
	for _, key := range s.ledger.Hold(p) {
		e := s.pods[key]
		if e == nil || e.admitted == nil || running(e.observed(), e.admitted.Hash) {
			continue
		}
		e.admitted = nil
		s.ledger.Release(key)
		for _, c := range e.observed() {
			if was := e.records[c.UID].Pod; liveSandbox(c) && was != nil {
				s.ledger.Hold(was)
			}
		}
		s.mark(key)
	}
}

// wakeWaiting lets those who wait for a port or for room try again.
func (s *state) wakeWaiting() {
	for _, p := range s.room.Queue() {
		s.mark(p.Key())
	}
	for key := range s.asking {
		s.mark(key)
	}
	for key := range s.awaiting {
		s.mark(key)
	}
}

func running(observed []runtime.Container, hash pod.Hash) bool {
	return slices.ContainsFunc(observed, func(c runtime.Container) bool { return liveSandbox(c) && c.PodHash == hash })
}

// release gives back what a pod has of the machine once nothing of it is left that
// could hold it, and lets those who wait try again.
func (s *state) release(e *entry, observed []runtime.Container) {
	live, former := false, false
	for _, c := range observed {
		if c.IsSandbox() && c.State != runtime.Exited {
			live = true
			former = former || e.admitted == nil || e.admitted.Hash != c.PodHash
		}
	}
	if !former && s.ledger.Clear(e.key) {
		s.wakeWaiting()
	}
	// An edit that takes less has taken effect once there is nothing left to do.
	if !former && e.plan.Pod != nil && e.plan.Settled() && s.room.Settle(e.plan.Pod) {
		s.wakeWaiting()
	}
	// What may come back as it was once its source has been looked at, or the engine
	// has said what it can do.
	undecided := e.plan.Pod == nil && e.plan.Kept != "" && !s.set.LookedAt() || e.refused == unheard
	if live || undecided || e.plan.Pod != nil && !e.plan.Finished && !e.plan.Held && e.refused == (Waiting{}) {
		return
	}
	e.admitted = nil
	if s.asking[e.key] == nil && !e.pressed && !s.room.Waits(e.key) {
		e.refused = Waiting{}
	}
	ports, room := s.ledger.Release(e.key), s.room.Release(e.key)
	if ports || room {
		s.wakeWaiting()
	}
}
