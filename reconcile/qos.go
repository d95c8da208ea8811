package reconcile

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/manifests"
)

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
	switch manifests.QOSClass(p) {
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
