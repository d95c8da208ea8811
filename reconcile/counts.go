package reconcile

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile/probe"
)

// Counts is told what the loop does, by who counts that. Its methods do not wait;
// Probed is called by another goroutine than the rest.
type Counts interface {
	// Turned: the loop went round once, which took it so long.
	Turned(took time.Duration)
	// Planned: a pod was planned, which came to so many steps.
	Planned(steps int, took time.Duration)
	// Took: steps of a pod were taken beside each other.
	Took(wave []Taken)
	// Rejected: a pod is not let in, for another reason than before.
	Rejected(reason Reason)
	// Orphaned: of a pod that nobody wanted since the loop began, something is there that
	// is removed.
	Orphaned()
	// Up: a pod runs for the first time, so long after it was admitted.
	Up(took time.Duration)
	// Probed: a check of a container was made.
	Probed(c Checked)
}

// Taken is what one step came to.
type Taken struct {
	Step Step
	// Init: the step is about a container that others wait for.
	Init bool
	Took time.Duration
	// Err is nil where it succeeded; Reason is what that is called then.
	Err    error
	Reason Reason
}

// Checked is one check of a container, made by one of its probes.
type Checked struct {
	Pod       pod.Key
	UID       types.UID
	Container string
	Kind      probe.Kind
	Outcome   probe.Outcome
	Took      time.Duration
}

// uncounted is nobody.
type uncounted struct{}

func (uncounted) Turned(time.Duration)       {}
func (uncounted) Planned(int, time.Duration) {}
func (uncounted) Took([]Taken)               {}
func (uncounted) Rejected(Reason)            {}
func (uncounted) Orphaned()                  {}
func (uncounted) Up(time.Duration)           {}
func (uncounted) Probed(Checked)             {}

// took tells of a wave.
func (s *state) took(e *entry, outcomes []outcome) {
	wave := make([]Taken, 0, len(outcomes))
	for _, o := range outcomes {
		t := Taken{Step: o.step, Init: e.plan.Pod != nil && initialises(e.plan.Pod.Object, o.step.Container), Took: o.took, Err: o.err}
		if o.err != nil {
			t.Reason = failureReason(o)
		}
		wave = append(wave, t)
	}
	s.deps.Counts.Took(wave)
}

func initialises(p *v1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c v1.Container) bool { return c.Name == name })
}

// probed tells of a check.
func (l *Loop) probed(group string, t probe.Target, kind probe.Kind, found probe.Outcome, took time.Duration) {
	var key pod.Key
	if err := key.UnmarshalText([]byte(group)); err == nil { // it is one: see state.probe
		l.deps.Counts.Probed(Checked{key, t.UID, t.Container, kind, found, took})
	}
}
