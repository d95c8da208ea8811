package reconcile

import (
	"slices"
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
	if slices.ContainsFunc(everyContainer(p), func(c v1.Container) bool { return c.Resources.Limits.Memory().IsZero() }) {
		return 0
	}
	var most, sidecars int64
	for _, c := range p.Spec.InitContainers {
		limit := c.Resources.Limits.Memory().Value()
		most = max(most, sidecars+limit)
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			sidecars += limit
		}
	}
	for _, c := range p.Spec.Containers {
		sidecars += c.Resources.Limits.Memory().Value()
	}
	return max(most, sidecars)
}

// podPageSize returns the size in bytes of the huge pages that the containers of a
// pod ask for, 0 for none or several sizes.
func podPageSize(p *v1.Pod) int64 {
	var size int64
	for _, c := range everyContainer(p) {
		for _, list := range []v1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name := range list {
				text, huge := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
				if !huge {
					continue
				}
				q, err := resource.ParseQuantity(text)
				if err != nil || size != 0 && size != q.Value() {
					return 0
				}
				size = q.Value()
			}
		}
	}
	return size
}
