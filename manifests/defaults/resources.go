package defaults

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// roundUp rounds each quantity up to a thousandth, the finest that the API
// keeps.
func roundUp(list v1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

// requestLimits requests what is limited and not requested.
func requestLimits(r *v1.ResourceRequirements) {
	if r.Limits == nil {
		return
	}
	if r.Requests == nil {
		r.Requests = v1.ResourceList{}
	}
	fill(r.Requests, r.Limits, everyResource)
}

func fill(list, from v1.ResourceList, wanted func(v1.ResourceName) bool) {
	for name, quantity := range from {
		if _, has := list[name]; !has && wanted(name) {
			list[name] = quantity.DeepCopy()
		}
	}
}

func everyResource(v1.ResourceName) bool { return true }

// The resources that can be set for a pod as a whole are cpu, memory and huge
// pages. Of these only huge pages cannot be limited above what is requested.
func podResource(name v1.ResourceName) bool {
	return sharedPodResource(name) || hugePages(name)
}

func sharedPodResource(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory
}

func hugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// setPodResources completes resources that are set on the pod itself from those
// of its containers. The order matters: limits of huge pages are taken over into
// requests, and requests are a lower bound of the limits that come last.
func setPodResources(spec *v1.PodSpec) {
	r := spec.Resources
	if len(r.Limits) == 0 && len(r.Requests) == 0 {
		return
	}
	limits, requests := r.Limits, r.Requests
	if limits == nil {
		limits = v1.ResourceList{}
	}
	if requests == nil {
		requests = v1.ResourceList{}
	}
	limitSum := Sum(spec, func(r *v1.ResourceRequirements) v1.ResourceList { return r.Limits })
	requestSum := Sum(spec, func(r *v1.ResourceRequirements) v1.ResourceList { return r.Requests })

	fill(limits, limitSum, func(name v1.ResourceName) bool {
		_, requested := requests[name]
		return hugePages(name) && !requested
	})
	fill(requests, requestSum, sharedPodResource)
	fill(requests, limits, podResource)
	for name, request := range requests {
		if _, limited := limits[name]; limited || !podResource(name) {
			continue
		}
		limit, has := limitSum[name]
		if !has || !limitedEverywhere(spec, name) {
			continue
		}
		if request.Cmp(limit) > 0 {
			limit = request
		}
		limits[name] = limit.DeepCopy()
	}

	if len(limits) > 0 {
		r.Limits = limits
	}
	if len(requests) > 0 {
		r.Requests = requests
	}
}

// limitedEverywhere reports whether every container limits the resource: one
// that does not could use all that the pod has.
func limitedEverywhere(spec *v1.PodSpec, name v1.ResourceName) bool {
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if _, has := list[i].Resources.Limits[name]; !has {
				return false
			}
		}
	}
	for i := range spec.EphemeralContainers {
		if _, has := spec.EphemeralContainers[i].Resources.Limits[name]; !has {
			return false
		}
	}
	return true
}

// Sum returns what the containers need together: the containers and sidecars that run
// side by side, or an init container with the sidecars that were started before
// it, whichever is more.
func Sum(spec *v1.PodSpec, of func(*v1.ResourceRequirements) v1.ResourceList) v1.ResourceList {
	total, sidecars, peak := v1.ResourceList{}, v1.ResourceList{}, v1.ResourceList{}
	for i := range spec.Containers {
		add(total, of(&spec.Containers[i].Resources))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		own := of(&c.Resources)
		step := v1.ResourceList{}
		add(step, own)
		add(step, sidecars)
		raise(peak, step)
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			add(total, own)
			add(sidecars, own)
		}
	}
	raise(total, peak)
	return total
}

func add(list, more v1.ResourceList) {
	for name, quantity := range more {
		have, ok := list[name]
		if !ok {
			list[name] = quantity.DeepCopy()
			continue
		}
		have.Add(quantity)
		list[name] = have
	}
}

func raise(list, least v1.ResourceList) {
	for name, quantity := range least {
		if have, ok := list[name]; !ok || quantity.Cmp(have) > 0 {
			list[name] = quantity.DeepCopy()
		}
	}
}
