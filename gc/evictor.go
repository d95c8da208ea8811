package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
)

// Evictor watches what the node is short of, and states which pods have to end
// for that (law 9): one at a time, and the node is looked at again after each.
type Evictor struct {
	Policy EvictionPolicy
	// Period is how often it looks; 0 is every 10 s. Alarm is told when memory gets
	// short in between; nil is never.
	Period time.Duration
	Alarm  <-chan struct{}

	// Node is a cheap look at the node.
	Node func(context.Context) stats.Node
	// Pods returns those that run, without what they use. An error says that nobody
	// can tell now, and nothing is done.
	Pods func(context.Context) ([]Candidate, error)
	// Usage adds what is known of what they use, with files also on the disk. It does not
	// wait for who looks there.
	Usage func(ctx context.Context, list []Candidate, files bool) []Candidate
	// Reclaim gives up what nobody needs on the disk, with images also those.
	Reclaim func(ctx context.Context, images bool)
	// Press is told how the node is after each look.
	Press func(context.Context, Report)
	// Evict hands a verdict to the loop, Gone waits until nothing is left of the pod on
	// the node, or ctx ends.
	Evict func(context.Context, pod.Verdict)
	Gone  func(context.Context, types.UID)

	Events pod.Sink
	Log    *slog.Logger
}

// Report is how the node is.
type Report struct {
	Conditions map[pod.Cause]Condition
	// LowRoot and LowImages say why no new pod is let onto the disk; "" where one may
	// be.
	LowRoot, LowImages string
}

// patience is how long files that nobody has looked at are waited for when the disk
// is short: who was looked at would go in the place of who was not.
const patience = 2 * time.Minute

// cleanup is how long the removal of a pod is waited for before the next one goes.
const cleanup = 30 * time.Second

// Run looks at once, and then every period, until ctx ends.
func (e Evictor) Run(ctx context.Context) error {
	tick := time.NewTicker(cmp.Or(e.Period, 10*time.Second))
	defer tick.Stop()
	w := &watch{Evictor: e, said: make(map[Signal]bool), met: make(map[Signal]bool), silent: make(map[Signal]bool)}
	for {
		for w.pass(ctx) && ctx.Err() == nil {
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-e.Alarm:
		}
	}
}

// watch is what the evictor remembers from one pass to the next.
type watch struct {
	Evictor
	history History
	// said are the signals for which it was said that no pod may go, met those of which
	// it was said that something is given up for them, silent those of which it was said
	// that they cannot be told.
	said, met, silent map[Signal]bool
	// waiting is since when nobody goes for the disk, since not all were looked at.
	waiting time.Time
}

// pass looks once, and reports whether to look again at once.
func (w *watch) pass(ctx context.Context) (again bool) {
	node, due := w.look(ctx)
	if ctx.Err() != nil {
		return false
	}
	pods, err := w.Pods(ctx)
	if err != nil {
		return false
	}
	// Memory runs out faster than anybody looks through files.
	if urgent := len(due) > 0 && due[0].Signal == MemoryAvailable; !urgent && w.overLimit(ctx, pods) {
		return true
	}
	if len(due) == 0 {
		clear(w.said)
		clear(w.met)
		w.waiting = time.Time{}
		return false
	}
	w.sayMet(due[0])
	if s := due[0].Signal; s.cause() == pod.DiskPressure {
		w.Reclaim(ctx, imagesOn(s, node))
		if node, due = w.look(ctx); len(due) == 0 {
			return false
		}
	}
	return w.relieve(ctx, due[0], node, pods)
}

// look returns how the node is, and the thresholds to act for.
func (w *watch) look(ctx context.Context) (stats.Node, []Shortfall) {
	node := w.Node(ctx)
	readings := Readings(node)
	w.sayUnknown(readings)
	a, next := w.Policy.Assess(readings, w.history, time.Now())
	w.history = next
	report := Report{Conditions: a.Conditions}
	report.LowRoot, report.LowImages = w.Policy.LowDiskMessages(node)
	w.Press(ctx, report)
	return node, a.Due
}

// sayUnknown says once of each threshold that it cannot be watched.
func (w *watch) sayUnknown(readings map[Signal]Reading) {
	for _, t := range w.Policy.Thresholds {
		_, known := readings[t.Signal]
		if !known && !w.silent[t.Signal] {
			w.Log.Warn("nobody can tell how much is left: no pod is evicted for it", "signal", string(t.Signal))
		}
		w.silent[t.Signal] = !known
	}
}

// sayMet tells, once until nothing is short any more, for what something is given up.
func (w *watch) sayMet(s Shortfall) {
	if w.met[s.Signal] {
		return
	}
	w.met[s.Signal] = true
	w.Events(pod.Event{Type: pod.EventWarning, Reason: pod.EvictionThresholdMet, Message: fmt.Sprintf(
		"Attempting to reclaim %s: %s is %s, the threshold is %s", s.Signal.resource(), s.Signal, s.Signal.show(s.Available), s.show(s.Capacity))})
}

// overLimit ends the pods that use more of the disk than they may, and reports
// whether there were any.
func (w *watch) overLimit(ctx context.Context, pods []Candidate) bool {
	limited := slices.DeleteFunc(slices.Clone(pods), func(c Candidate) bool { return !Limited(c.Pod.Object) })
	if len(limited) == 0 {
		return false
	}
	found := false
	for _, c := range w.Usage(ctx, limited, true) {
		if v, ok := OverLimit(c); ok {
			w.evict(ctx, c, v)
			found = true
		}
	}
	return found
}

// relieve ends the pod that ranks first, and reports whether to look again at once: a
// disk may tell late of what was freed.
func (w *watch) relieve(ctx context.Context, s Shortfall, node stats.Node, pods []Candidate) bool {
	disk := s.Signal.cause() == pod.DiskPressure
	ranked := Rank(s, node, w.Usage(ctx, pods, disk))
	if ctx.Err() != nil || disk && w.early(ranked) {
		return false
	}
	if len(ranked) == 0 {
		if !w.said[s.Signal] {
			w.Log.Warn("no pod can be evicted: none runs, or all are exempt", "signal", string(s.Signal),
				"available", s.Signal.show(s.Available), "threshold", s.show(s.Capacity))
			w.said[s.Signal] = true
		}
		return false
	}
	alarmed := w.evict(ctx, ranked[0], w.Policy.Verdict(s, node, ranked[0]))
	return alarmed || !disk
}

// early reports whether to wait until the files of more of the pods were looked at.
func (w *watch) early(ranked []Candidate) bool {
	switch {
	case !slices.ContainsFunc(ranked, Candidate.awaited):
		w.waiting = time.Time{}
		return false
	case w.waiting.IsZero():
		w.waiting = time.Now()
	case time.Since(w.waiting) >= patience:
		w.waiting = time.Time{}
		return false
	}
	return true
}

// evict ends a pod, and waits until it is gone. Where it does not go for memory, an
// alarm ends that, and is reported.
func (w *watch) evict(ctx context.Context, c Candidate, v pod.Verdict) (alarmed bool) {
	w.Events(pod.Event{Type: pod.EventWarning, Reason: v.Reason, Pod: c.Pod.Key(), UID: c.UID, Message: v.Message})
	w.Evict(ctx, v)
	within, cancel := context.WithTimeout(ctx, v.Grace+cleanup)
	defer cancel()
	defer func() {
		if errors.Is(within.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
			w.Events(pod.Event{
				Type: pod.EventWarning, Reason: pod.ExceededGracePeriod, Pod: c.Pod.Key(), UID: c.UID,
				Message: "Container runtime did not kill the pod within specified grace period.",
			})
		}
	}()
	if v.Cause == pod.MemoryPressure {
		w.Gone(within, c.UID)
		return false
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		w.Gone(within, c.UID)
	}()
	select {
	case <-gone:
	case <-w.Alarm:
		alarmed = true
		cancel()
		<-gone
	}
	return alarmed
}
