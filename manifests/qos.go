package manifests

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/manifests/defaults"
)

// ContainerRequests returns what the containers of a pod ask for together, at
// the hungriest moment of its life.
func ContainerRequests(p *v1.Pod) v1.ResourceList {
	return defaults.Sum(&p.Spec, func(r *v1.ResourceRequirements) v1.ResourceList { return r.Requests })
}

// ContainerLimits returns what the containers of a pod are limited to together; one
// without a limit counts for nothing.
func ContainerLimits(p *v1.Pod) v1.ResourceList {
	return defaults.Sum(&p.Spec, func(r *v1.ResourceRequirements) v1.ResourceList { return r.Limits })
}

// QOSClass returns the quality of service class of a pod with its defaults:
// Guaranteed where each container has a limit for cpu and memory and requests as
// much, BestEffort where none asks for either, else Burstable.
func QOSClass(p *v1.Pod) v1.PodQOSClass {
	var all []v1.ResourceRequirements
	if r := p.Spec.Resources; r != nil && (asks(r.Requests) || asks(r.Limits)) {
		all = append(all, *r) // the pod's own settle it
	} else {
		for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range list {
				all = append(all, list[i].Resources)
			}
		}
	}
	asked, guaranteed := false, true
	for _, r := range all {
		asked = asked || asks(r.Requests) || asks(r.Limits)
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			limit, request := r.Limits[name], r.Requests[name]
			if limit.Sign() <= 0 || request.Sign() > 0 && request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case !asked:
		return v1.PodQOSBestEffort
	case guaranteed:
		return v1.PodQOSGuaranteed
	default:
		return v1.PodQOSBurstable
	}
}

// asks reports whether a list asks for cpu or memory.
func asks(list v1.ResourceList) bool {
	cpu, memory := list[v1.ResourceCPU], list[v1.ResourceMemory]
	return cpu.Sign() > 0 || memory.Sign() > 0
}
