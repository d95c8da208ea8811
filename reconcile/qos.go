package reconcile

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// What the kernel's choice of whom to kill first is told of the classes.
const (
	lastToKill  = -997
	firstToKill = 1000
)

// oomScoreAdj returns the badness adjustment that the kubelet gives a container
// on a node with that many bytes of memory: the more of it the container asked
// for, the less it is to be killed.
func oomScoreAdj(p *v1.Pod, c *v1.Container, memory int64) int {
	if pod.Priority(p) >= pod.NodeCritical {
		return lastToKill
	}
	switch manifests.QOSClass(p) {
	case v1.PodQOSGuaranteed:
		return lastToKill
	case v1.PodQOSBestEffort:
		return firstToKill
	}
	if memory <= 0 {
		return firstToKill - 1
	}
	asked := c.Resources.Requests.Memory().Value()
	if beside(p, c) {
		// It is not killed before one that it serves.
		least := p.Spec.Containers[0].Resources.Requests.Memory().Value()
		for _, served := range p.Spec.Containers[1:] {
			least = min(least, served.Resources.Requests.Memory().Value())
		}
		asked = max(asked, least)
	}
	adj := firstToKill - 1000*(asked+unspent(p))/memory
	return int(min(max(adj, firstToKill+lastToKill), firstToKill-1))
}

// beside reports whether a container is a sidecar.
func beside(p *v1.Pod, c *v1.Container) bool {
	return slices.ContainsFunc(members(p), func(m member) bool { return m.Name == c.Name && m.kind == sidecar })
}

// unspent returns a container's share of the memory that the pod asks for beyond
// what its containers do, in bytes.
func unspent(p *v1.Pod) int64 {
	if p.Spec.Resources == nil {
		return 0
	}
	asked := manifests.ContainerRequests(p)
	left := p.Spec.Resources.Requests.Memory().Value() - asked.Memory().Value()
	return max(left, 0) / int64(len(p.Spec.Containers)+len(p.Spec.InitContainers))
}
