package reconcile

import (
	"slices"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// This file is the loop's side of preemption; admit_preempt.go chooses.

// makeRoom has pods ended for the critical ones that wait for room, once all that is
// due was looked at: what is over holds nothing by then. It reports whether there is
// something new to plan.
func (s *state) makeRoom() bool {
	for _, key := range s.room.Yielding() {
		if e := s.pods[key]; e != nil && e.verdict == nil && e.plan.State.Evicted == nil {
			s.room.Stay(key) // it is another generation by now
		}
	}
	if s.shutdown != nil || !s.ready {
		return false // nobody could have the room
	}
	for _, p := range s.room.Queue() {
		for _, victim := range s.room.Preempt(p) {
			s.preempt(s.pods[victim.Key()], p)
		}
	}
	return len(s.due) > 0
}

// preempt ends a pod for the sake of a critical one. One of which nothing is there yet
// just waits again.
func (s *state) preempt(e *entry, critical *pod.Pod) {
	there := e.busy || slices.ContainsFunc(e.observed(), func(c runtime.Container) bool { return c.State != runtime.Exited })
	if !there {
		e.admitted = nil
		s.ledger.Release(e.key)
		s.room.Release(e.key)
		s.mark(e.key)
		s.wakeWaiting()
		return
	}
	if e.plan.Pod == nil {
		return // it is on its way out
	}
	v := pod.Verdict{
		UID: e.plan.UID, Hash: e.plan.Pod.Hash, Reason: pod.Preempting, Cause: pod.Preempted, Grace: gracePeriod(e.plan.Pod),
		Message: "Preempted in order to admit critical pod " + critical.Key().String(),
	}
	s.room.Yield(e.key)
	s.evict(v)
}
