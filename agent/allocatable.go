package agent

import (
	"errors"
	"fmt"

	"k8s.io/utils/cpuset"

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
	left, failed := cfg.Node.allocatable(node.Allocatable, 0)
	return left, pinning, errors.Join(err, failed)
}

// allocatable returns what pods may ask for together: what the machine has, less what
// is reserved and what is to stay free of memory, and an error where nothing is left.
// What the machine has is 0 where that is unknown.
func (n NodeConfig) allocatable(machine reconcile.Allocatable, freeMemory int64) (reconcile.Allocatable, error) {
	left := machine
	for _, r := range []struct {
		name string
		of   *int64
		less int64
	}{
		{"cpu", &left.CPU, n.System.CPU + n.Kube.CPU},
		{"memory", &left.Memory, n.System.Memory + n.Kube.Memory + freeMemory},
		{"ephemeral-storage", &left.Storage, n.System.Storage + n.Kube.Storage},
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
