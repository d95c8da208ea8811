package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/pod"
)

// Room is who has how much of what the node has for pods, and who waits for some.
//
// Who waits longest is served first, critical pods before all others. A younger pod
// may pass an older one that does not fit yet, as long as it is not in its way: where
// the older one would fit once every pod that ends by itself has ended, it must
// still fit beside the younger one, and beside all that came in meanwhile. So a big
// pod is not starved by small ones that come and go, and one that can only be let
// in when somebody removes another holds nobody up (law 7).
type Room struct {
	capacity Demand
	tenants  map[pod.Key]*tenant // none is changed: see put
	total    Demand              // what they have together
	yielding map[pod.Key]bool    // those of them that yield
	waiting  map[pod.Key]waitingPod
	turn     uint64 // rises with each pod that comes in, or begins to wait
}

// tenant is a pod that has room.
type tenant struct {
	pod   *pod.Pod
	holds Demand
	// ends: it runs to its end, or is being ended.
	ends bool
	// yields: it is being ended to make room.
	yields bool
	turn   uint64 // when it last got some
}

// waitingPod is a pod that asks for room in vain.
type waitingPod struct {
	pod  *pod.Pod
	turn uint64
}

// before orders those who wait.
func (w waitingPod) before(o waitingPod) int {
	rank := func(p *v1.Pod) int32 {
		if pod.Critical(p) {
			return pod.Priority(p)
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(o.pod.Object), rank(w.pod.Object)), cmp.Compare(w.turn, o.turn))
}

// NewRoom returns room of that capacity in which nobody is.
func NewRoom(capacity Demand) *Room {
	return &Room{
		capacity: capacity, tenants: make(map[pod.Key]*tenant), total: Demand{},
		yielding: make(map[pod.Key]bool), waiting: make(map[pod.Key]waitingPod),
	}
}

// Lacks says what there is too little of to let pods in together; zero where there
// is enough. What a pod has already, with the version that it replaces, it has for
// good: only what it asks for beyond that can be lacking.
func (r *Room) Lacks(pods ...*pod.Pod) Waiting {
	group := make(map[pod.Key]bool)
	ask, grown := Demand{}, Demand{}
	for _, p := range pods {
		group[p.Key()] = true
		want, has := DemandOf(p.Object), r.holds(p.Key())
		ask.add(want.most(has))
		grown.add(want.growth(has))
	}
	if len(grown) == 0 {
		return Waiting{} // as mostly, among however many others
	}
	for name := range grown {
		grown[name] = ask[name]
	}
	used := maps.Clone(r.total)
	for key := range group {
		used.take(r.holds(key))
	}
	if name, exceeds := r.capacity.exceeding(grown, used); exceeds {
		return outOf(name, ask[name], used[name], r.capacity[name])
	}
	return r.keptForOthers(pods[0], grown, used, group)
}

// keptForOthers says which pod that waits longer would be passed for good.
func (r *Room) keptForOthers(p *pod.Pod, grown, used Demand, group map[pod.Key]bool) Waiting {
	if len(r.waiting) == 0 {
		return Waiting{}
	}
	own, waits := r.waiting[p.Key()]
	if !waits {
		own.turn = math.MaxUint64
	}
	own.pod = p
	stays := func(key pod.Key, t *tenant) bool { return !t.ends && !group[key] }
	kept := r.used(stays)
	var first *waitingPod
	for _, w := range r.Queue() {
		older := r.waiting[w.Key()]
		if group[w.Key()] || older.before(own) >= 0 {
			continue
		}
		more := DemandOf(w.Object)
		if t := r.tenants[w.Key()]; t != nil && stays(w.Key(), t) {
			for name, has := range t.holds {
				more[name] = max(more[name]-has, 0)
			}
		}
		if _, exceeds := r.capacity.exceeding(more, kept); exceeds {
			continue
		}
		kept.add(more)
		if first == nil {
			first = &older
		}
	}
	if first == nil {
		return Waiting{}
	}
	kept.add(r.used(func(key pod.Key, t *tenant) bool {
		return t.ends && !t.yields && t.turn > first.turn && !group[key]
	}))
	if name, exceeds := r.capacity.exceeding(grown, kept); exceeds {
		w := outOf(name, grown[name], used[name], r.capacity[name])
		w.Message += fmt.Sprintf("; what is left is kept for pod %s, which waits longer", first.pod.Key())
		return w
	}
	return Waiting{}
}

// Queue returns the pods that wait for room, the first one first.
func (r *Room) Queue() []*pod.Pod {
	list := slices.SortedFunc(maps.Values(r.waiting), waitingPod.before)
	out := make([]*pod.Pod, len(list))
	for i, w := range list {
		out[i] = w.pod
	}
	return out
}

// used returns what those tenants have together.
func (r *Room) used(who func(pod.Key, *tenant) bool) Demand {
	sum := Demand{}
	for key, t := range r.tenants {
		if who(key, t) {
			sum.add(t.holds)
		}
	}
	return sum
}

func (r *Room) holds(key pod.Key) Demand {
	if t := r.tenants[key]; t != nil {
		return t.holds
	}
	return nil
}

// put has a tenant in place of the one of that key; nil is none.
func (r *Room) put(key pod.Key, t *tenant) {
	if was := r.tenants[key]; was != nil {
		r.total.take(was.holds)
	}
	delete(r.tenants, key)
	delete(r.yielding, key)
	if t == nil {
		return
	}
	r.tenants[key] = t
	r.total.add(t.holds)
	if t.yields {
		r.yielding[key] = true
	}
}

// Hold lets a pod in, whether there is room or not. Beside what this version asks
// for it keeps what it had, until it settles.
func (r *Room) Hold(p *pod.Pod) {
	delete(r.waiting, p.Key())
	want, next := DemandOf(p.Object), tenant{}
	if t := r.tenants[p.Key()]; t != nil && len(want.growth(t.holds)) == 0 {
		next = *t
	} else {
		r.turn++
		next = tenant{turn: r.turn, holds: r.holds(p.Key())}
	}
	next.pod, next.holds, next.ends = p, want.most(next.holds), !runsOn(p)
	r.put(p.Key(), &next)
}

// HoldListed lets a pod in of which nothing is known but that it runs. It counts as
// one, and is ended for nobody.
func (r *Room) HoldListed(key pod.Key) {
	r.Hold(&pod.Pod{Object: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       v1.PodSpec{PriorityClassName: "system-node-critical"},
	}})
}

// Settle notes that nothing is left of other versions of a tenant, and reports
// whether that leaves room.
func (r *Room) Settle(p *pod.Pod) bool {
	t := r.tenants[p.Key()]
	if t == nil {
		return false
	}
	next := *t
	next.pod, next.holds = p, DemandOf(p.Object)
	r.put(p.Key(), &next)
	return len(t.holds.growth(next.holds)) > 0
}

// Yield notes that a tenant is being ended to make room. What it has is kept for
// those who wait for it.
func (r *Room) Yield(key pod.Key) {
	if t := r.tenants[key]; t != nil {
		next := *t
		next.ends, next.yields = true, true
		r.put(key, &next)
	}
}

// Stay takes back what Yield said.
func (r *Room) Stay(key pod.Key) {
	if t := r.tenants[key]; t != nil {
		next := *t
		next.ends, next.yields = !runsOn(t.pod), false
		r.put(key, &next)
	}
}

// Yielding are the tenants that are being ended to make room.
func (r *Room) Yielding() []pod.Key { return slices.Collect(maps.Keys(r.yielding)) }

// Release takes back what a pod has, and reports whether it had anything.
func (r *Room) Release(key pod.Key) bool {
	_, had := r.tenants[key]
	r.put(key, nil)
	return had
}

// Wait puts a pod in the queue. One that is in it keeps its place, edited or not; it
// reports whether such a one asks for another amount now.
func (r *Room) Wait(p *pod.Pod) (changed bool) {
	w, ok := r.waiting[p.Key()]
	if ok {
		changed = w.pod != p && !maps.Equal(DemandOf(w.pod.Object), DemandOf(p.Object))
	} else {
		r.turn++
		w.turn = r.turn
	}
	w.pod = p
	r.waiting[p.Key()] = w
	return changed
}

// Leave takes a pod out of the queue.
func (r *Room) Leave(key pod.Key) { delete(r.waiting, key) }

// Waits reports whether a pod is in the queue.
func (r *Room) Waits(key pod.Key) bool { _, ok := r.waiting[key]; return ok }
