package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// Snapshot is the state of everything at one instant.
type Snapshot struct {
	// Revision rises with each change; see [Loop.Snapshot].
	Revision uint64
	// Ready: the engine was listed and the first set was taken over.
	Ready bool
	// Online: the engine answers.
	Online bool
	// Engine is its version; "" where that has not been said.
	Engine string
	// Pressure is what the node is short of, Shutdown that it goes down.
	Pressure Pressure
	Shutdown bool
	// Since is how long that, and being online, has been so; Looked when all containers
	// were listed last, or the loop began.
	Since     Since
	Looked    time.Time
	Pods      []View
	Sources   []pod.Source
	Conflicts []pod.Conflict
	// Holds has, by key, since when a pod is stopped by hand of which nothing is there.
	Holds map[pod.Key]time.Time
	// Objects are what pods can refer to now. The map is never modified.
	Objects map[pod.ObjectKey]*pod.Object
}

// View is one pod: what is wanted, how it is, and what is to be done.
type View struct {
	// Object is the pod with its status and its UID; for a pod that is being
	// removed it is the admitted one, or just its key where that is lost.
	Object *v1.Pod
	Origin pod.Origin
	Line   int
	Plan   Plan
	// Busy: a wave is under way. Removing: nothing wants the pod any more.
	Busy, Removing bool
	// Held is since when it is stopped by hand; zero where it is not.
	Held time.Time
	// Notes say what it asks for and, though it runs, does not get on this node.
	Notes []string
	// Containers are those of ours that bear its key.
	Containers []runtime.Container
	// Complaints are what probes found last that was not well, by container and
	// probe; those of containers that are gone are gone, too.
	Complaints []Complaint
}

// Settled reports whether the pod is as it should be, or waits for a timer.
func (v View) Settled() bool { return !v.Busy && v.Plan.Settled() }

// Gone reports whether nothing is left of a pod that nobody wants but containers that
// ended, with their logs, and nothing is to be done about them yet.
func (v View) Gone() bool {
	return v.Removing && v.Settled() && v.Plan.Kept == "" && v.Plan.Blocked == (Waiting{}) && !v.Plan.Wake.IsZero() &&
		!slices.ContainsFunc(v.Containers, func(c runtime.Container) bool { return c.State == runtime.Running })
}

type waiter struct {
	after uint64
	reply chan<- Snapshot
}

// Snapshot returns the state as soon as its revision is higher than after; with
// 0, at once. Its error is the context's.
func (l *Loop) Snapshot(ctx context.Context, after uint64) (Snapshot, error) {
	reply := make(chan Snapshot, 1)
	l.report(ctx, func(s *state) {
		if after > s.revision {
			after = 0 // it was another agent's
		}
		s.waiters = append(s.waiters, waiter{after, reply})
	})
	select {
	case snap := <-reply:
		return snap, nil
	case <-ctx.Done():
		return Snapshot{}, ctx.Err()
	}
}

// Looked returns when everything of ours was last listed, or the loop began, and how
// often that is done at least. Its error is the context's: a loop that does not answer
// before that ends hangs.
func (l *Loop) Looked(ctx context.Context) (last time.Time, period time.Duration, err error) {
	reply := make(chan time.Time, 1)
	l.report(ctx, func(s *state) { reply <- s.lastLook })
	select {
	case last = <-reply:
		return last, l.cfg.Period, nil
	case <-ctx.Done():
		return time.Time{}, 0, ctx.Err()
	}
}

// notify answers those who wait for a newer revision.
func (s *state) notify() {
	if !slices.ContainsFunc(s.waiters, func(w waiter) bool { return w.after < s.revision || w.after == 0 }) {
		return
	}
	snap := s.snapshot()
	s.waiters = slices.DeleteFunc(s.waiters, func(w waiter) bool {
		if w.after >= s.revision && w.after != 0 {
			return false
		}
		w.reply <- snap // has room for one
		return true
	})
}

func (s *state) snapshot() Snapshot {
	snap := Snapshot{
		Revision: s.revision, Ready: s.haveSet && s.listed, Online: s.online,
		Sources: s.set.Sources, Conflicts: s.conflicts, Objects: s.objects,
		Pressure: s.pressure, Shutdown: s.shutdown != nil, Since: s.since, Looked: s.lastLook,
	}
	if s.features != nil {
		snap.Engine = s.features.Version
	}
	for key, since := range s.held {
		if s.pods[key] == nil {
			if snap.Holds == nil {
				snap.Holds = make(map[pod.Key]time.Time)
			}
			snap.Holds[key] = since
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.pods), pod.Key.Compare) {
		snap.Pods = append(snap.Pods, s.view(s.pods[key]))
	}
	return snap
}

func (s *state) view(e *entry) View {
	v := View{Plan: e.plan, Busy: e.busy || !e.known(), Removing: e.desired == nil && e.plan.Pod == nil, Containers: e.observed(), Held: s.held[e.key]}
	for _, id := range sortedKeys(e.seen) {
		complaints := e.seen[id].complaints
		for _, kind := range sortedKeys(complaints) {
			v.Complaints = append(v.Complaints, complaints[kind])
		}
	}
	from := e.plan.Pod
	uid := e.plan.UID
	if from == nil {
		h := Input{Observed: v.Containers, Records: e.records}.Holder()
		uid, from = h.UID, e.records[h.UID].Pod
	}
	if from == nil {
		v.Object = &v1.Pod{}
		v.Object.Namespace, v.Object.Name, v.Object.UID = e.key.Namespace, e.key.Name, uid
		return v
	}
	v.Origin, v.Line = from.Origin, from.Line
	v.Notes = notes(from.Object, s.cfg.Node)
	object := *from.Object // what it points to is never changed
	v.Object = &object
	v.Object.UID = uid
	v.Object.Status = s.status(e, v.Containers, from, uid)
	return v
}

// status returns the status of a generation: from the newest plan for it and
// from what is seen now.
func (s *state) status(e *entry, observed []runtime.Container, p *pod.Pod, uid types.UID) v1.PodStatus {
	observed, state := ofUID(observed, uid), e.records[uid].State
	plan := e.plan
	if plan.UID == uid && plan.Pod != nil && plan.State.Key == e.key {
		state = plan.State
	}
	plan.Pod = p
	return Status(plan, observed, state.fold(observed), s.cfg.Node.Addresses, s.cfg.Wall())
}

// ofUID returns those of a generation: the list itself where it has no others.
func ofUID(list []runtime.Container, uid types.UID) []runtime.Container {
	other := func(c runtime.Container) bool { return c.UID != uid }
	if !slices.ContainsFunc(list, other) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), other)
}
