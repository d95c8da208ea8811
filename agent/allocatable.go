package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/cpuset"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/node/kernel"
	"github.com/podkeeper/podkeeper/reconcile"
)

// shares returns what of a machine is for pods, and how its CPUs are shared out.
func (cfg Config) shares(node reconcile.Node) (reconcile.Allocatable, reconcile.Pinning, error) {
	online, unknown := kernel.ReadCPUs("/sys/devices/system/cpu")
	pinning, err := cfg.Node.pinning(online)
	if err != nil {
		err = errors.Join(err, unknown)
	}
	free := reconcile.Allocatable{
		Memory:  keptFree(cfg.Eviction.Policy, gc.MemoryAvailable, node.Memory),
		Storage: keptFree(cfg.Eviction.Policy, gc.NodeFSAvailable, node.Storage),
	}
	left, failed := cfg.Node.allocatable(node.Allocatable, free)
	return left, pinning, errors.Join(err, failed)
}

// keptFree returns how much is to stay free for good of what a signal is about: below
// that, pods are evicted at once. As for a kubelet, it is therefore not for pods.
func keptFree(policy EvictionPolicy, signal gc.Signal, capacity int64) int64 {
	for _, t := range policy.Thresholds {
		if t.Signal == signal && !t.Soft {
			return t.Amount.Of(capacity)
		}
	}
	return 0
}

// allocatable returns what pods may ask for together: what the machine has, less what
// is reserved and what is to stay free, and an error where nothing is left. What the
// machine has is 0 where that is unknown.
func (n NodeConfig) allocatable(machine, free reconcile.Allocatable) (reconcile.Allocatable, error) {
	left := machine
	for _, r := range []struct {
		name string
		of   *int64
		less int64
	}{
		{"cpu", &left.CPU, n.System.CPU + n.Kube.CPU},
		{"memory", &left.Memory, n.System.Memory + n.Kube.Memory + free.Memory},
		{"ephemeral-storage", &left.Storage, n.System.Storage + n.Kube.Storage + free.Storage},
	} {
		have := *r.of
		if have == 0 {
			continue
		}
		if *r.of -= r.less; *r.of <= 0 {
			return machine, fmt.Errorf("--system-reserved, --kube-reserved and --eviction-hard leave no %s for pods: of %d, they take %d", r.name, have, r.less)
		}
	}
	return left, nil
}

// pinning returns how these CPUs are shared out.
func (n NodeConfig) pinning(online []kernel.CPU) (reconcile.Pinning, error) {
	var p reconcile.Pinning
	for _, cpu := range online {
		p.Online = append(p.Online, reconcile.CPU(cpu))
	}
	if !n.StaticCPUs {
		return p, nil
	}
	if len(online) == 0 {
		return p, fmt.Errorf("--cpu-manager-policy static: this machine does not tell which CPUs it has")
	}
	p.Static = true
	if n.ReservedCPUs == "" {
		const whole = 1000
		p.Reserved = reconcile.TakeCPUs(p.Online, int((n.System.CPU+n.Kube.CPU+whole-1)/whole))
		return p, nil
	}
	reserved, err := cpuset.Parse(n.ReservedCPUs)
	if err != nil {
		return p, fmt.Errorf("--reserved-cpus %s: %w", n.ReservedCPUs, err)
	}
	if p.Reserved = reserved; !reserved.IsSubsetOf(p.All()) {
		return p, fmt.Errorf("--reserved-cpus %s: this machine has %s", n.ReservedCPUs, p.All())
	}
	return p, nil
}

// holdReserved has cgroups held to what is reserved, and to what is left.
func (p *parts) holdReserved(ctx context.Context, machine reconcile.Node) error {
	n := p.cfg.Node
	if n.HoldPods && !p.cfg.Cgroups.Off {
		if err := p.cgroups.SetNode(ctx, n.left(machine)); err != nil {
			return err
		}
	}
	var host cgroup.Host
	for _, c := range []struct {
		flag, path string
		reserved   Reserved
	}{
		{"system-reserved-cgroup", n.SystemCgroup, n.System}, {"kube-reserved-cgroup", n.KubeCgroup, n.Kube},
	} {
		if c.path == "" {
			continue
		}
		if err := host.Set(ctx, c.path, c.reserved.only(), false); err != nil {
			return fmt.Errorf("--%s: %w", c.flag, err)
		}
	}
	return nil
}

// left returns the limits of all pods together: what is not reserved. What is to stay
// free of memory they can use, or nobody would be evicted for it.
func (n NodeConfig) left(machine reconcile.Node) cgroup.Limits {
	less := func(have, system, kube int64) int64 { return max(have-system-kube, 0) }
	left := Reserved{
		CPU:    less(machine.Allocatable.CPU, n.System.CPU, n.Kube.CPU),
		Memory: less(machine.Allocatable.Memory, n.System.Memory, n.Kube.Memory),
	}
	if n.System.PIDs+n.Kube.PIDs > 0 {
		left.PIDs = less(kernel.MaxPIDs(), n.System.PIDs, n.Kube.PIDs)
	}
	return left.limits()
}

// limits returns what a cgroup is held to that is to have so much; what is 0 is not
// limited.
func (r Reserved) limits() cgroup.Limits {
	l := cgroup.Limits{Memory: r.Memory, Pids: r.PIDs}
	if r.CPU > 0 {
		const perCPU, least, most = 1024, 2, 262144
		l.CPUShares = min(max(r.CPU*perCPU/1000, least), most)
	}
	return l
}

// only returns limits that leave what is not reserved as it is: the cgroup is
// somebody else's.
func (r Reserved) only() cgroup.Limits {
	l := r.limits()
	l.CPUQuota, l.Memory, l.Pids = cgroup.Keep, cmp.Or(l.Memory, cgroup.Keep), cmp.Or(l.Pids, cgroup.Keep)
	return l
}
