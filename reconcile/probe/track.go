package probe

import (
	"hash/fnv"
	"time"

	v1 "k8s.io/api/core/v1"
)

// track is one probe of one container: what it has come to, and when it is due.
// Its methods decide and do nothing else.
type track struct {
	kind Kind
	spec *v1.Probe

	outcome Outcome
	last    Outcome // of the checks
	run     int     // how many of them in a row

	// begun: it has times. done: it is not made again for this container.
	begun, done bool
	// anchor is the first tick, tick the last one that was checked or left out.
	anchor, tick time.Time
	// try is the next check between the ticks, zero for none; gap is the distance to
	// the one after it.
	try time.Time
	gap time.Duration
}

// firstGap is the distance of the first two tries; each further one is doubled.
const firstGap = 250 * time.Millisecond

func newTrack(kind Kind, spec *v1.Probe, known Known) track {
	t := track{kind: kind, spec: spec}
	switch {
	case kind == Startup && known.Started:
		t.outcome, t.done = Success, true
	case kind == Liveness || kind == Readiness && known.Ready:
		t.outcome = Success
	case kind == Readiness:
		t.outcome = Failure
	}
	return t
}

func (t *track) period() time.Duration {
	return max(time.Duration(t.spec.PeriodSeconds)*time.Second, time.Second)
}

// begin sets the times of a probe that may be made from now on. gate is when its
// startup probe succeeded, zero where there is none or that was long ago.
func (t *track) begin(id string, began, gate, now time.Time) {
	t.begun = true
	base := began.Add(time.Duration(t.spec.InitialDelaySeconds) * time.Second)
	t.anchor = base.Add(time.Duration(phase(id, t.kind) * float64(t.period())))
	if t.anchor.Before(gate) {
		t.anchor = gate
	}
	// What would have been checked before now is left out.
	t.tick = t.lastTick(now.Add(-1))
	t.try, t.gap = time.Time{}, 0
	if t.kind == Startup || t.kind == Readiness && t.outcome != Success {
		t.try = latest(base, gate, now)
		t.gap = firstGap
	}
}

// lastTick returns the last tick up to an instant; zero for none.
func (t *track) lastTick(until time.Time) time.Time {
	since := until.Sub(t.anchor)
	if since < 0 {
		return time.Time{}
	}
	return t.anchor.Add(since.Truncate(t.period()))
}

// next returns when the probe is due. A tick that came while a check was under way
// is due at once after it; of several the last one is.
func (t *track) next() time.Time {
	tick := t.anchor
	if !t.tick.IsZero() {
		tick = t.tick.Add(t.period())
	}
	if !t.try.IsZero() && t.try.Before(tick) {
		return t.try
	}
	return tick
}

// start notes that a check begins, and reports whether its failure counts: it is
// the one of a tick.
func (t *track) start(now time.Time) (counts bool) {
	if tick := t.lastTick(now); tick.After(t.tick) {
		t.tick, counts = tick, true
	}
	for !t.try.IsZero() && !t.try.After(now) {
		t.try, t.gap = t.try.Add(t.gap), 2*t.gap
		if t.gap >= 2*t.period() {
			t.try = time.Time{}
		}
	}
	return counts
}

// fold takes a check into account, and reports whether the outcome changed.
func (t *track) fold(found Outcome, counts bool) (changed bool) {
	if found == Unknown {
		return false
	}
	if found != t.last {
		t.last, t.run = found, 0
	}
	if found == Success || counts {
		t.run++
	}
	threshold := t.spec.SuccessThreshold
	if found == Failure {
		threshold = t.spec.FailureThreshold
	}
	if found == t.outcome || t.run < max(int(threshold), 1) {
		return false
	}
	t.outcome = found
	if found == Success {
		t.try = time.Time{}
	}
	if t.kind == Startup || t.kind == Liveness {
		t.done = true
	}
	return true
}

// phase returns where in its period a probe ticks, from 0 to 1. It is the same
// each time, so that it survives the agent.
func phase(id string, k Kind) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id + string(k)))
	return float64(h.Sum64()>>11) / (1 << 53)
}

func latest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
