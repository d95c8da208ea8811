package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// What can be set of evictions: see gc.
type (
	EvictionConfig = gc.EvictionConfig
	EvictionPolicy = gc.EvictionPolicy
	EvictionText   = gc.EvictionText
)

// eviction is what the evictor looks at. One goroutine owns it.
type eviction struct {
	*parts
	pressed reconcile.Pressure
	// views has the pods as they were listed last.
	views map[types.UID]reconcile.View
}

// evict runs the evictor until ctx ends. Without any thresholds it still holds pods
// to their own limits.
func (p *parts) evict(ctx context.Context) error {
	cfg := p.cfg.Eviction
	e := &eviction{parts: p}
	alarm := make(chan struct{}, 1)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		e.watchMemory(ctx, alarm)
	}()
	defer func() { <-watched }()
	return gc.Evictor{
		Policy: cfg.Policy, Period: cfg.Period, Alarm: alarm,
		Node: e.node, Pods: e.pods, Usage: e.used, Reclaim: e.reclaim,
		Press: e.press, Evict: e.evict, Gone: e.gone,
		Events: p.say, Log: p.log,
	}.Run(ctx)
}

// watchMemory raises the alarm when the kernel says that memory gets short.
func (e *eviction) watchMemory(ctx context.Context, alarm chan<- struct{}) {
	var below []int64
	for _, t := range e.cfg.Eviction.Policy.Thresholds {
		if t.Signal == gc.MemoryAvailable {
			below = append(below, t.Amount.Of(e.machine.Memory))
		}
	}
	if len(below) == 0 {
		return
	}
	err := e.usage.WatchMemory(ctx, below, func() {
		select {
		case alarm <- struct{}{}:
		default:
		}
	})
	if err != nil && ctx.Err() == nil {
		e.log.Warn("the kernel does not tell when memory gets short: it is only looked at now and then", "err", err)
	}
}

func (e *eviction) node(ctx context.Context) stats.Node {
	images := e.cfg.Eviction.Images
	if images == "" {
		images = e.engineRoot(ctx)
	}
	return e.usage.Node(stats.Paths{Root: e.cfg.RootDir, Images: images})
}

// reclaim gives up what nobody needs on the disk: dead containers, then images.
func (e *eviction) reclaim(ctx context.Context, images bool) {
	e.awaitRemoved(ctx)
	e.dead.Reclaim(ctx)
	if images {
		e.images.Reclaim(ctx)
	}
}

// awaitRemoved waits, not for ever, until the loop has taken away what is left of
// removed pods: while the disk is short their logs do not stay.
func (e *eviction) awaitRemoved(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var seen uint64
	for {
		snap, err := e.loop.Snapshot(ctx, seen)
		if err != nil || !slices.ContainsFunc(snap.Pods, leavesOnlyLogs) {
			return
		}
		seen = snap.Revision
	}
}

// leavesOnlyLogs reports whether nothing runs any more of a pod that nobody wants, and
// its removal is not held up.
func leavesOnlyLogs(v reconcile.View) bool {
	return v.Removing && v.Plan.Kept == "" && v.Plan.Blocked == (reconcile.Waiting{}) &&
		!slices.ContainsFunc(v.Containers, func(c runtime.Container) bool { return c.State == runtime.Running })
}

// pods returns those that could be evicted, or an error while nobody can tell.
func (e *eviction) pods(ctx context.Context) ([]gc.Candidate, error) {
	snap, err := e.loop.Snapshot(ctx, 0)
	if err != nil {
		return nil, err
	}
	if !snap.Ready || !snap.Online {
		return nil, errors.New("the engine is away")
	}
	e.views = make(map[types.UID]reconcile.View)
	for _, v := range snap.Pods {
		e.views[v.Object.UID] = v
	}
	return Candidates(snap), nil
}

// Candidates returns the pods that could be evicted, without what they use.
func Candidates(snap reconcile.Snapshot) []gc.Candidate {
	var list []gc.Candidate
	for _, v := range snap.Pods {
		if c, ok := candidate(v); ok {
			list = append(list, c)
		}
	}
	return list
}

// candidate returns a pod of which something runs, unless that is being ended
// already.
func candidate(v reconcile.View) (gc.Candidate, bool) {
	plan := v.Plan
	if plan.Pod == nil || plan.Finished || plan.State.Evicted != nil {
		return gc.Candidate{}, false
	}
	for _, c := range v.Containers {
		if c.UID == plan.UID && c.State == runtime.Running && !c.IsSandbox() {
			return gc.Candidate{UID: plan.UID, Pod: plan.Pod, Since: plan.State.Admitted}, true
		}
	}
	return gc.Candidate{}, false
}

// used adds what is known of what pods use.
func (e *eviction) used(_ context.Context, list []gc.Candidate, files bool) []gc.Candidate {
	views := make([]reconcile.View, len(list))
	for i, c := range list {
		views[i] = e.views[c.UID]
	}
	var use []stats.Pod
	unseen := make([]bool, len(views))
	if files {
		use, unseen = e.podsHold(views) // which is all that counts there
	} else {
		use = e.podsUse(views)
	}
	out := slices.Clone(list)
	for i := range out {
		out[i].Stats, out[i].Unseen = &use[i], unseen[i]
	}
	return out
}

// Pressure is how the node is, as the loop is told.
func Pressure(r gc.Report) reconcile.Pressure {
	short := func(c pod.Cause) reconcile.Shortage {
		return reconcile.Shortage{Message: r.Conditions[c].Message, Over: r.Conditions[c].Over}
	}
	y := reconcile.Pressure{Looked: true, Memory: short(pod.MemoryPressure), Disk: short(pod.DiskPressure), PIDs: short(pod.PIDPressure)}
	switch {
	case r.LowRoot != "":
		y.LowDisk = reconcile.Waiting{Reason: reconcile.OutOfDisk, Message: r.LowRoot}
	case r.LowImages != "":
		y.LowDisk = reconcile.Waiting{Reason: reconcile.OutOfImageDisk, Message: r.LowImages}
	}
	return y
}

// press tells the loop what has changed of how the node is.
func (e *eviction) press(ctx context.Context, r gc.Report) {
	defer e.told()
	e.assessed.Store(time.Now().Unix())
	now := Pressure(r)
	if now == e.pressed {
		return
	}
	said := func(what string, was, is string) (changed bool) {
		switch {
		case was == "" && is != "":
			e.log.Warn(what, "message", is)
		case was != "" && is == "":
			e.log.Info(what + ": that is over")
		}
		return (was == "") != (is == "")
	}
	for _, y := range []struct {
		what    string
		cause   pod.Cause
		was, is reconcile.Shortage
	}{
		{"the node is under memory pressure", pod.MemoryPressure, e.pressed.Memory, now.Memory},
		{"the node is under disk pressure", pod.DiskPressure, e.pressed.Disk, now.Disk},
		{"the node is under PID pressure", pod.PIDPressure, e.pressed.PIDs, now.PIDs},
	} {
		if said(y.what, y.was.Message, y.is.Message) {
			e.sayCondition(y.cause, y.is.Message)
		}
	}
	said("the disk is nearly full", e.pressed.LowDisk.Message, now.LowDisk.Message)
	e.pressed = now
	e.counters.pressed(now)
	e.loop.Press(ctx, now)
}

func (e *eviction) evict(ctx context.Context, v pod.Verdict) {
	e.counters.Evicted(v.Signal)
	e.loop.Evict(ctx, v)
}

func (e *eviction) gone(ctx context.Context, uid types.UID) { AwaitGone(ctx, e.loop, uid) }

// AwaitGone waits until nothing is left of an evicted pod, or ctx ends.
func AwaitGone(ctx context.Context, loop *reconcile.Loop, uid types.UID) {
	var seen uint64
	for ctx.Err() == nil {
		snap, err := loop.Snapshot(ctx, seen)
		if err != nil {
			return
		}
		if !occupies(snap, uid) {
			return
		}
		seen = snap.Revision
	}
}

func occupies(snap reconcile.Snapshot, uid types.UID) bool {
	for _, v := range snap.Pods {
		if was := v.Plan.State.Evicted; v.Plan.UID == uid && was != nil && !was.Cleared {
			return true
		}
		for _, c := range v.Containers {
			if c.UID == uid {
				return true
			}
		}
	}
	return false
}
