package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/podkeeper/podkeeper/pod"
)

// Demand is how much there is of resources, or how much is asked for: pods and
// what extended resources count, CPU in thousandths of one, all else in bytes.
type Demand map[v1.ResourceName]int64

// DemandOf returns what a pod asks for as a whole, as Kubernetes reckons it: its
// requests at the hungriest moment of its life, and the overhead that it states.
func DemandOf(p *v1.Pod) Demand {
	d := Demand{v1.ResourcePods: 1}
	for name, q := range resource.PodRequests(p, resource.PodResourcesOptions{}) {
		d[name] = q.Value()
		if name == v1.ResourceCPU {
			d[name] = q.MilliValue()
		}
	}
	return d
}

// Capacity returns what pods may have of the node together. What is missing is
// not limited, but for huge pages, of which there are none then.
func (n Node) Capacity() Demand {
	d := Demand(maps.Clone(n.HugePages))
	if d == nil {
		d = Demand{}
	}
	for name, amount := range map[v1.ResourceName]int64{
		v1.ResourcePods: n.Allocatable.Pods, v1.ResourceCPU: n.Allocatable.CPU,
		v1.ResourceMemory: n.Allocatable.Memory, v1.ResourceEphemeralStorage: n.Allocatable.Storage,
	} {
		if amount > 0 {
			d[name] = amount
		}
	}
	return d
}

// limit returns how much there may be of a resource in all.
func (d Demand) limit(name v1.ResourceName) (most int64, limited bool) {
	most, limited = d[name]
	return most, limited || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// exceeding returns the first resource of which want is more than is left of d
// beside used.
func (d Demand) exceeding(want, used Demand) (name v1.ResourceName, exceeds bool) {
	for _, name := range want.names() {
		if most, limited := d.limit(name); limited && want[name] > 0 && used[name]+want[name] > most {
			return name, true
		}
	}
	return "", false
}

// names returns the resources in the order in which the kubelet complains of them.
func (d Demand) names() []v1.ResourceName {
	first := []v1.ResourceName{v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(d)), func(name v1.ResourceName) bool { return slices.Contains(first, name) })
	return append(first, rest...)
}

// add adds more to d.
func (d Demand) add(more Demand) {
	for name, amount := range more {
		d[name] += amount
	}
}

// take takes what was added to d away.
func (d Demand) take(less Demand) {
	for name, amount := range less {
		d[name] -= amount
	}
}

// most returns of each resource what is more.
func (d Demand) most(o Demand) Demand {
	out := maps.Clone(d)
	for name, amount := range o {
		out[name] = max(out[name], amount)
	}
	return out
}

// growth returns what d has more of than o.
func (d Demand) growth(o Demand) Demand {
	out := Demand{}
	for name, amount := range d {
		if amount > o[name] {
			out[name] = amount
		}
	}
	return out
}

// outOf is the kubelet's refusal.
func outOf(name v1.ResourceName, requested, used, capacity int64) Waiting {
	return Waiting{
		Reason("OutOf" + string(name)),
		fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, requested, used, capacity),
	}
}

// runsOn reports whether a pod, left alone, never comes to its end.
func runsOn(p *pod.Pod) bool { return p.Object.Spec.RestartPolicy == v1.RestartPolicyAlways }
