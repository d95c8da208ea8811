package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// shortOfHugePages says which huge pages the pod asks for that the machine has not
// set aside. have is in bytes, by size of page as resources name it.
func shortOfHugePages(p *v1.Pod, have map[v1.ResourceName]int64) Waiting {
	want := hugePages(p)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if want[name] > have[name] {
			return Waiting{Reason("OutOf" + string(name)), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: 0, capacity: %d", name, want[name], have[name])}
		}
	}
	return Waiting{}
}

// hugePages returns what a pod needs at a time, in bytes: that of the pod as a
// whole where it says so, else all containers and sidecars, or one init container
// with the sidecars before it.
func hugePages(p *v1.Pod) map[v1.ResourceName]int64 {
	need, peak := map[v1.ResourceName]int64{}, map[v1.ResourceName]int64{}
	each := func(list v1.ResourceList, do func(v1.ResourceName, int64)) {
		for name, quantity := range list {
			if strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
				do(name, quantity.Value())
			}
		}
	}
	for _, m := range members(p) {
		if m.kind == initial {
			each(m.Resources.Limits, func(name v1.ResourceName, bytes int64) { peak[name] = max(peak[name], need[name]+bytes) })
		} else {
			each(m.Resources.Limits, func(name v1.ResourceName, bytes int64) { need[name] += bytes })
		}
	}
	for name, bytes := range peak {
		need[name] = max(need[name], bytes)
	}
	if whole := p.Spec.Resources; whole != nil {
		each(whole.Limits, func(name v1.ResourceName, bytes int64) { need[name] = bytes })
	}
	return need
}
