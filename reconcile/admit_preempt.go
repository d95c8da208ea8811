package reconcile

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// Preempt returns the pods that have to go so that there is room for a critical
// one, by key: none where there will be room anyway once those have gone that are
// being ended for it, and none where no pods can make enough. They are chosen as the
// kubelet does it: Guaranteed ones only where all others together do not do, then
// Burstable ones only where those of BestEffort do not, and of one class the few
// that come closest to what is missing.
func (r *Room) Preempt(p *pod.Pod) []*pod.Pod {
	if !pod.Critical(p.Object) {
		return nil
	}
	var classes [3][]*tenant // by rising quality of service
	for _, t := range r.tenants {
		if t.pod.Key() != p.Key() && !t.yields && makesRoom(t.pod, p) {
			class := 1
			switch manifests.QOSClass(t.pod.Object) {
			case v1.PodQOSBestEffort:
				class = 0
			case v1.PodQOSGuaranteed:
				class = 2
			}
			classes[class] = append(classes[class], t)
		}
	}
	var chosen []*tenant
	for class := len(classes) - 1; class >= 0; class-- {
		missing := r.missing(p).less(slices.Concat(classes[:class]...)).less(chosen)
		some, enough := closest(classes[class], missing)
		if !enough {
			return nil
		}
		chosen = append(chosen, some...)
	}
	victims := make([]*pod.Pod, len(chosen))
	for i, t := range chosen {
		victims[i] = t.pod
	}
	slices.SortFunc(victims, func(a, b *pod.Pod) int { return a.Key().Compare(b.Key()) })
	return victims
}

// makesRoom reports whether a pod may be ended for a critical one.
func makesRoom(p, critical *pod.Pod) bool {
	if !pod.Critical(p.Object) {
		return !pod.Exempt(p.Object)
	}
	return pod.Priority(p.Object) < pod.Priority(critical.Object)
}

// missing returns how much there is too little of for a pod, beside those that are
// not being ended for it.
func (r *Room) missing(p *pod.Pod) Demand {
	want, has := DemandOf(p.Object), r.holds(p.Key())
	used := r.used(func(key pod.Key, t *tenant) bool { return key != p.Key() && !t.yields })
	out := Demand{}
	for name := range want.growth(has) {
		if most, limited := r.capacity.limit(name); limited && want[name]+used[name] > most {
			out[name] = want[name] + used[name] - most
		}
	}
	return out
}

// less returns what is still missing when those have gone.
func (d Demand) less(gone []*tenant) Demand {
	out := Demand{}
	for name, amount := range d {
		for _, t := range gone {
			amount -= t.holds[name]
		}
		if amount > 0 {
			out[name] = amount
		}
	}
	return out
}

// closest takes one after the other of the pods, each time the one that comes
// closest to what is missing, until nothing is: of two the one of lower priority,
// then the smaller one.
func closest(from []*tenant, missing Demand) (chosen []*tenant, enough bool) {
	from = slices.Clone(from)
	for len(missing) > 0 {
		if len(from) == 0 {
			return nil, false
		}
		best := slices.MinFunc(from, func(a, b *tenant) int {
			return cmp.Or(
				cmp.Compare(missing.distance(a.holds), missing.distance(b.holds)),
				cmp.Compare(pod.Priority(a.pod.Object), pod.Priority(b.pod.Object)),
				cmp.Compare(a.holds[v1.ResourceMemory], b.holds[v1.ResourceMemory]),
				cmp.Compare(a.holds[v1.ResourceCPU], b.holds[v1.ResourceCPU]),
				a.pod.Key().Compare(b.pod.Key()),
			)
		})
		chosen, missing = append(chosen, best), missing.less([]*tenant{best})
		from = slices.DeleteFunc(from, func(t *tenant) bool { return t == best })
	}
	return chosen, true
}

// distance is how far an amount is from what is missing, each resource counting
// alike: 0 is enough of all.
func (d Demand) distance(has Demand) (sum float64) {
	for _, name := range sortedKeys(d) { // sums of floats depend on their order
		if left := float64(d[name]-has[name]) / float64(d[name]); left > 0 {
			sum += left * left
		}
	}
	return sum
}
