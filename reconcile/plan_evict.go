package reconcile

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// Eviction is a verdict that is being carried out, or was: nothing of the pod runs
// until it comes back.
type Eviction struct {
	Reason  Reason        `json:"reason"`
	Message string        `json:"message"`
	Cause   pod.Cause     `json:"cause"`
	Grace   time.Duration `json:"grace,omitempty"`
	At      time.Time     `json:"at"`
	// Config is the hash of the whole pod as it was then: an edited one runs again.
	Config string `json:"config,omitempty"`
	// Cleared: nothing of the pod is left on the node but what is remembered of it.
	Cleared bool `json:"cleared,omitempty"`
}

// condemn takes a verdict about the generation over. One that has come to its end
// is not ended once more.
func (g *generationPlan) condemn() {
	v := g.in.Verdict
	if v == nil || v.UID != g.uid || v.Hash != g.pod.Hash || g.state.Evicted != nil || g.finished() {
		return
	}
	g.state.Evicted = &Eviction{
		Reason: Reason(v.Reason), Message: v.Message, Cause: v.Cause, Grace: v.Grace, At: v.At,
		Config: g.pod.Object.Annotations[configHash],
	}
	if v.Cause != pod.OwnLimit {
		return
	}
	if begun, ok := g.in.Begun[g.uid]; ok && g.in.Now.Sub(begun) >= crashReset {
		g.state.OverLimit = 0
	}
	g.state.OverLimit = min(g.state.OverLimit+1, maxLevel)
}

// evict ends the pod in its order, and takes away all that it occupies. The
// verdict is written down first: after a crash, containers that ended without it
// would be started again. Where it cannot be written, since the disk is full, that
// holds nothing up.
func (g *generationPlan) evict() {
	was := *g.state.Evicted
	g.state.Restart = Restart{}
	if g.record.State.Evicted == nil {
		g.wave = 1
	}
	in := g.in
	in.grace = max(was.Grace, time.Second)
	steps := in.removal(g.observed, was.Reason)
	wave := g.wave
	for _, s := range steps {
		s.Wave += g.wave
		wave = s.Wave + 1
		g.plan.Ending = g.plan.Ending || s.Verb == StopContainer
		g.add(s)
	}
	switch {
	case len(g.observed) > 0 || !was.Cleared && !g.in.Emptied[g.uid].Equal(was.At):
		g.add(Step{Verb: EmptyFolder, Reason: was.Reason, Wave: wave})
		was.Cleared = false
	default:
		was.Cleared = true
	}
	g.state.Evicted = &was
	g.plan.Blocked = Waiting{was.Reason, was.Message}
	if was.Cleared {
		g.plan.Blocked.Message += "; " + g.outlook(was)
	}
}

// outlook says when an evicted pod runs again.
func (g *generationPlan) outlook(was Eviction) string {
	if !g.comesBack() {
		return "it runs again when it is edited or restarted by hand"
	}
	switch was.Cause {
	case pod.OwnLimit:
		return fmt.Sprintf("it runs again %s after that", overLimitDelay(g.state.OverLimit))
	case pod.Preempted:
		return "it runs again when there is room"
	default:
		return "it runs again when the node has had enough for the transition period"
	}
}

// comesBack reports whether the pod runs again of itself.
func (g *generationPlan) comesBack() bool {
	return g.pod.Object.Spec.RestartPolicy == v1.RestartPolicyAlways && g.pod.Origin.Source.Kind != pod.APISource
}

// comeBack forgets the eviction when the pod is to run again, and reports whether
// it did. That is written down, and what it did before counts for nothing; then it
// has to be admitted like a new one.
func (g *generationPlan) comeBack() bool {
	was := g.state.Evicted
	if was == nil || !was.Cleared || len(g.observed) > 0 || !g.edited(was) && !g.due(was) {
		return false
	}
	g.state.Evicted, g.state.End, g.state.Restart = nil, End{}, Restart{}
	g.state.Initialized = runtime.SandboxRef{}
	g.state.Admitted = time.Time{}
	for _, m := range g.members {
		s := g.state.container(m.Name)
		s.Level, s.From = 0, g.nextAttempt(m.Name)
		g.state.Containers[m.Name] = s
	}
	return true
}

// edited reports whether the manifest is not what it was when the pod was evicted.
func (g *generationPlan) edited(was *Eviction) bool {
	return g.pod.Object.Annotations[configHash] != was.Config
}

// due reports whether the time of a pod that comes back has come.
func (g *generationPlan) due(was *Eviction) bool {
	if !g.comesBack() {
		return false
	}
	var at time.Time
	switch shortage, ofNode := g.in.Pressure.of(was.Cause); {
	case ofNode && (!g.in.Pressure.Looked || shortage.Over.IsZero()):
		return false
	case ofNode:
		at = shortage.Over
	case was.Cause == pod.OwnLimit:
		out, ok := g.in.Out[g.uid]
		if !ok {
			out = g.in.Now
		}
		at = out.Add(overLimitDelay(g.state.OverLimit))
	}
	if g.in.Now.Before(at) {
		g.wakeAt(at)
		return false
	}
	return true
}
