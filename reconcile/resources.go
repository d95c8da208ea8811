package reconcile

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/runtime"
)

// The engine's units of CPU, as the kubelet maps them.
const (
	sharesPerCPU = 1024
	minShares    = 2
	maxShares    = 262144
	quotaPeriod  = 100_000 // µs
	minQuota     = 1_000   // µs
)

// resources returns the limits of a container in the engine's units. One without
// a limit of its own is held to the pod's.
func resources(p *v1.Pod, c *v1.Container, node Node) runtime.Resources {
	r := runtime.Resources{Pids: node.PodPIDs}
	request, limit := c.Resources.Requests.Cpu().MilliValue(), limitOf(p, c, v1.ResourceCPU).MilliValue()
	if _, asked := c.Resources.Requests[v1.ResourceCPU]; !asked {
		request = limit
	}
	r.CPUShares = min(max(request*sharesPerCPU/1000, minShares), maxShares)
	if limit > 0 {
		r.CPUPeriod = quotaPeriod
		r.CPUQuota = max(limit*quotaPeriod/1000, minQuota)
	}
	r.Memory = limitOf(p, c, v1.ResourceMemory).Value()
	return r
}

func limitOf(p *v1.Pod, c *v1.Container, name v1.ResourceName) *resource.Quantity {
	limit := c.Resources.Limits[name]
	if limit.IsZero() && p.Spec.Resources != nil {
		limit = p.Spec.Resources.Limits[name]
	}
	return &limit
}
