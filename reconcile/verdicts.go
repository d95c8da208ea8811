package reconcile

import (
	"context"

	"github.com/podkeeper/podkeeper/pod"
)

// Press tells what the node is short of. It holds until it is told anew, and gives
// up when ctx ends.
func (l *Loop) Press(ctx context.Context, y Pressure) {
	l.report(ctx, func(s *state) { s.press(y) })
}

// Evict hands verdicts over, by which pods are ended. One about a generation that
// is not there, or has ended, is dropped.
func (l *Loop) Evict(ctx context.Context, verdicts ...pod.Verdict) {
	l.report(ctx, func(s *state) {
		for _, v := range verdicts {
			s.evict(v)
		}
	})
}

// press takes over what the node is short of, and has those look at it who wait
// for its end, and those of which only logs are left.
func (s *state) press(y Pressure) {
	if s.pressure == y {
		return
	}
	s.pressure = y
	for key, e := range s.pods {
		if e.pressed || len(e.out) > 0 || e.desired == nil {
			s.mark(key)
		}
	}
}

// evict has a verdict carried out by the plans of its pod.
func (s *state) evict(v pod.Verdict) {
	if !s.ready && v.Cause != pod.OwnLimit {
		return // who it is about may have ended: the engine has not said since it was away
	}
	for key, e := range s.pods {
		if _, ok := e.records[v.UID]; ok || e.plan.UID == v.UID {
			if v.At.IsZero() {
				v.At = s.cfg.Wall()
			}
			e.verdict = &v
			s.mark(key)
			return
		}
	}
}

// dropVerdicts forgets what was found about the node and is not written down: when the
// engine is there again, that may be long past.
func (s *state) dropVerdicts() {
	for key, e := range s.pods {
		if v := e.verdict; v != nil && v.Cause != pod.OwnLimit && e.records[v.UID].State.Evicted == nil {
			e.verdict = nil
			s.mark(key)
		}
	}
}

// carried forgets the verdict once it is written down, or no plan follows it.
func (e *entry) carried() {
	if v := e.verdict; v != nil && (e.plan.UID != v.UID || e.plan.State.Evicted == nil || e.records[v.UID].State.Evicted != nil) {
		e.verdict = nil
	}
}
