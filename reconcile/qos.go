package reconcile

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// qosClass returns the class that Kubernetes gives a pod by its CPU and memory
// requests and limits, which are defaulted already.
func qosClass(p *v1.Pod) v1.PodQOSClass {
	guaranteed, any := true, false
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
				request, limit := positive(c.Resources.Requests, name), positive(c.Resources.Limits, name)
				any = any || request != nil || limit != nil
				if limit == nil || request == nil || request.Cmp(*limit) != 0 {
					guaranteed = false
				}
			}
		}
	}
	switch {
	case !any:
		return v1.PodQOSBestEffort
	case guaranteed:
		return v1.PodQOSGuaranteed
	default:
		return v1.PodQOSBurstable
	}
}

func positive(list v1.ResourceList, name v1.ResourceName) *resource.Quantity {
	if q, ok := list[name]; ok && q.Sign() > 0 {
		return &q
	}
	return nil
}

// criticalPriority is the lowest priority of a critical pod in Kubernetes.
const criticalPriority = 2_000_000_000

func critical(p *v1.Pod) bool {
	if p.Spec.Priority != nil {
		return *p.Spec.Priority >= criticalPriority
	}
	return p.Spec.PriorityClassName == "system-node-critical" || p.Spec.PriorityClassName == "system-cluster-critical"
}

// oomScoreAdj returns the badness adjustment that the kubelet gives a container
// on a node with that many bytes of memory.
func oomScoreAdj(p *v1.Pod, c *v1.Container, memory int64) int {
	if critical(p) {
		return -997
	}
	switch qosClass(p) {
	case v1.PodQOSGuaranteed:
		return -997
	case v1.PodQOSBestEffort:
		return 1000
	}
	if memory <= 0 {
		return 999
	}
	adj := 1000 - 1000*c.Resources.Requests.Memory().Value()/memory
	return int(min(max(adj, 3), 999))
}
