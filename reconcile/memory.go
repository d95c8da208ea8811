package reconcile

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podMemoryLimit returns the bytes that the containers of a pod may use at most at
// one time, 0 where one of them has no limit and the pod as a whole has none.
func podMemoryLimit(p *v1.Pod) int64 {
	if p.Spec.Resources != nil {
		if limit := p.Spec.Resources.Limits.Memory().Value(); limit > 0 {
			return limit
		}
	}
	var need, peak int64
	for _, m := range members(p) {
		limit := m.Resources.Limits.Memory().Value()
		switch {
		case limit == 0:
			return 0
		case m.kind == initial:
			peak = max(peak, need+limit)
		default:
			need += limit
		}
	}
	return max(need, peak)
}

// podPageSize returns the size in bytes of the huge pages that the containers of a
// pod ask for, 0 for none or several sizes.
func podPageSize(p *v1.Pod) int64 {
	var page int64
	for name := range DemandOf(p) {
		text, huge := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
		if !huge {
			continue
		}
		size, err := resource.ParseQuantity(text)
		if err != nil || page != 0 {
			return 0
		}
		page = size.Value()
	}
	return page
}
