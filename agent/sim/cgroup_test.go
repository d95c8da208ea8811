package sim

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/reconcile"
)

// cgroups are those of the machine's pods in the hands of one incarnation of the agent.
// A folder of the pod, which comes first and goes last, says whose one is.
type cgroups struct {
	session
	onRemove func(types.UID)
}

var _ reconcile.Cgroups = cgroups{}

func parentOf(uid types.UID) string { return "/kubepods/pod" + string(uid) }

// EnsurePod implements reconcile.Cgroups.
func (c cgroups) EnsurePod(_ context.Context, p cgroup.Pod) (string, error) {
	err := c.do("mkdir", string(p.UID), func() { c.claims[p.UID] = true })
	if err == nil {
		err = c.do("mkcgroup", string(p.UID), func() { c.groups[p.UID] = p.Limits })
	}
	return parentOf(p.UID), err
}

// SetPod implements reconcile.Cgroups.
func (c cgroups) SetPod(_ context.Context, parent string, p cgroup.Pod, grow bool) error {
	return c.do("setcgroup", string(p.UID), func() {
		if has, ok := c.groups[p.UID]; ok && parent == parentOf(p.UID) {
			if grow && p.Memory > 0 {
				p.Memory = max(p.Memory, has.Memory)
			}
			c.groups[p.UID] = p.Limits
		}
	})
}

// RemovePod implements reconcile.Cgroups.
func (c cgroups) RemovePod(_ context.Context, uid types.UID) error {
	return c.do("rmcgroup", string(uid), func() {
		if _, ok := c.groups[uid]; ok {
			c.onRemove(uid)
		}
		delete(c.groups, uid)
	})
}
