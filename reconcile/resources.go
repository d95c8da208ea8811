package reconcile

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/runtime"
)

// The engine's units of CPU, as the kubelet maps them.
const (
	sharesPerCPU = 1024
	minShares    = 2
	maxShares    = 262144
	quotaPeriod  = 100_000 // µs, where nothing else is set
	minQuota     = 1_000   // µs
)

// resources returns the limits of a container in the engine's units. What holds for
// the pod as a whole is its cgroup's to hold; where it was made in none, a container
// without a limit of its own is held to the pod's.
func resources(p *v1.Pod, c *v1.Container, node Node, parent string) runtime.Resources {
	var r runtime.Resources
	cpu, memory := c.Resources.Limits[v1.ResourceCPU], c.Resources.Limits[v1.ResourceMemory]
	if parent == "" {
		r.Pids = node.PodPIDs
		cpu, memory = orPods(p, v1.ResourceCPU, cpu), orPods(p, v1.ResourceMemory, memory)
	}
	request := c.Resources.Requests.Cpu().MilliValue()
	if _, asked := c.Resources.Requests[v1.ResourceCPU]; !asked {
		request = cpu.MilliValue()
	}
	r.CPUShares = shares(request)
	r.CPUQuota, r.CPUPeriod = node.quota(cpu)
	r.Memory = memory.Value()
	return r
}

func orPods(p *v1.Pod, name v1.ResourceName, limit resource.Quantity) resource.Quantity {
	if limit.IsZero() && p.Spec.Resources != nil {
		return p.Spec.Resources.Limits[name]
	}
	return limit
}

func shares(milli int64) int64 { return min(max(milli*sharesPerCPU/1000, minShares), maxShares) }

// quota returns what a limit of CPU comes to, both in µs; 0 for no limit.
func (n Node) quota(limit resource.Quantity) (quota, period int64) {
	if limit.IsZero() || n.NoCPUQuota {
		return 0, 0
	}
	period = n.CPUPeriod.Microseconds()
	if period == 0 {
		period = quotaPeriod
	}
	return max(limit.MilliValue()*period/1000, minQuota), period
}

// exempt returns the node as it is for what has CPUs of its own, if it has: these are
// all that it can use, and a quota of as many would only hold it back now and then.
func (n Node) exempt(own bool) Node {
	n.NoCPUQuota = n.NoCPUQuota || own
	return n
}

// podCgroup returns what the cgroup of a pod is to be, as the kubelet has it: the pod's
// own requests and limits where it has any, else those of its containers together. A
// limit that not every container has is none.
func podCgroup(p *v1.Pod, uid types.UID, node Node) cgroup.Pod {
	request, limit := manifests.ContainerRequests(p), manifests.ContainerLimits(p)
	for _, c := range members(p) {
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			if q := c.Resources.Limits[name]; q.IsZero() {
				delete(limit, name)
			}
		}
	}
	if whole := p.Spec.Resources; whole != nil {
		for name, q := range whole.Requests {
			request[name] = q
		}
		for name, q := range whole.Limits {
			limit[name] = q
		}
	}
	for name, q := range p.Spec.Overhead {
		for _, list := range []v1.ResourceList{request, limit} {
			if sum, ok := list[name]; ok {
				sum.Add(q)
				list[name] = sum
			}
		}
	}
	g := cgroup.Pod{UID: uid, Class: manifests.QOSClass(p)}
	g.CPUShares = shares(request.Cpu().MilliValue())
	g.CPUQuota, g.CPUPeriod = node.quota(*limit.Cpu())
	g.Memory, g.Pids = limit.Memory().Value(), node.PodPIDs
	pages := DemandOf(p)
	for name := range node.HugePages {
		if g.HugePages == nil {
			g.HugePages = make(map[string]int64)
		}
		g.HugePages[pageSize(name)] = pages[name]
	}
	return g
}

// pageSize returns the kernel's name of a size of huge pages, "2MB", of a resource.
func pageSize(name v1.ResourceName) string {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), v1.ResourceHugePagesPrefix))
	if err != nil {
		panic(err) // validation and the machine know no other
	}
	bytes, units := size.Value(), []string{"B", "KB", "MB", "GB"}
	for len(units) > 1 && bytes%1024 == 0 {
		bytes, units = bytes/1024, units[1:]
	}
	return fmt.Sprintf("%d%s", bytes, units[0])
}
