package sim

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// pinned: every container of the pod asks for a whole CPU. It follows from the name,
// as an edit of it is not what is tried here.
func (p *podSpec) pinned() bool { return p.name[len(p.name)-1]%3 == 0 }

// pinning is a machine with CPUs enough for all that are ever up.
func pinning() reconcile.Pinning {
	p := reconcile.Pinning{Static: true, Reserved: cpuset.New(0)}
	for id := range 32 {
		p.Online = append(p.Online, reconcile.CPU{ID: id, Core: id / 2, Socket: id / 16})
	}
	return p
}

// apart checks that a container with a CPU for itself shares it with none that runs,
// and that all others share what is left. Before a pod is initialised, what does that
// uses what it needs later, so that no two of these run.
func (d *driver) apart(when string) {
	taken, shared := cpuset.New(0), ""
	for _, c := range d.engine.Containers() {
		if !ours(c) || c.IsSandbox() || c.State != runtime.Running {
			continue
		}
		cpus, err := cpuset.Parse(c.Resources.CPUSet)
		switch own := c.Resources.CPUShares == 1024 && d.guaranteed(c); {
		case err != nil || own && c.Resources.CPUQuota > 0 || own && cpus.Size() != 1 || !own && (shared != "" && shared != cpus.String()):
			d.laws.violate(cpuLaw, "%s: %s may use %q, others %q", when, c.Name, c.Resources.CPUSet, shared)
		case own && !cpus.Intersection(taken).IsEmpty():
			d.laws.violate(cpuLaw, "%s: %s shares %s with another", when, c.Name, cpus)
		case own:
			taken = taken.Union(cpus)
		default:
			shared = cpus.String()
		}
	}
	if rest, err := cpuset.Parse(shared); err != nil || !rest.Intersection(taken).IsSubsetOf(cpuset.New(0)) {
		d.laws.violate(cpuLaw, "%s: %s are shared, and %s are others' own", when, shared, taken)
	}
}

// guaranteed reports whether a container's pod is of that class. A file that was cut off
// in a lucky place has one container without what the others state.
func (d *driver) guaranteed(c fake.View) bool {
	return d.truth.ever(c.Key, func(p *pod.Pod) bool {
		return p.Hash == c.PodHash && manifests.QOSClass(p.Object) == v1.PodQOSGuaranteed
	})
}

// lavish never takes a CPU from a container.
type lavish struct{ runtime.Runtime }

func (l lavish) UpdateResources(ctx context.Context, id string, r runtime.Resources) error {
	r.CPUSet = ""
	return l.Runtime.UpdateResources(ctx, id, r)
}
