package agent

import (
	"context"
	"errors"
	"io/fs"

	"github.com/podkeeper/podkeeper/node/kernel"
)

// NodeConfig is what the agent does about the machine itself. Its zero value
// changes nothing of it.
type NodeConfig struct {
	// Kernel says what is done about kernel settings.
	Kernel kernel.Mode
	// OOMScoreAdj is how gladly the kernel kills the agent; 0 leaves it as it was
	// started.
	OOMScoreAdj int
	// StaticCPUs gives containers that ask for whole CPUs some for themselves.
	StaticCPUs bool
	// ReservedCPUs are those that no container has for itself, as the kernel spells a
	// list. With "" they are as many as are reserved below.
	ReservedCPUs string
	// System and Kube are kept from pods: for the machine, and for the engine and the
	// agent.
	System, Kube Reserved
	// HoldPods keeps all pods together to what is not reserved, in their cgroup.
	// SystemCgroup and KubeCgroup are cgroups that are there, which are held to what is
	// reserved for them; "" holds none.
	HoldPods                 bool
	SystemCgroup, KubeCgroup string
	// Groups are where processes of no pod are put.
	Groups ProcessGroups
}

// Reserved is how much of a machine is not for pods.
type Reserved struct {
	CPU             int64 // in thousandths of one
	Memory, Storage int64 // in bytes
	PIDs            int64
}

// What to do about kernel settings that are not as wanted.
const (
	LeaveKernel   = kernel.Leave
	SetKernel     = kernel.Set
	ProtectKernel = kernel.Protect
)

// prepareNode brings the machine to what pods need, once, at the start.
func (p *parts) prepareNode(ctx context.Context) error {
	n, log := p.cfg.Node, p.log
	if p.wrong != nil {
		return p.wrong
	}
	if err := kernel.EnsureSettings("/proc/sys", n.Kernel, log); err != nil {
		return err
	}
	have, err := kernel.ReadControllers("/sys/fs/cgroup")
	switch {
	case errors.Is(err, fs.ErrNotExist): // no cgroups here, as with an engine elsewhere
	case err != nil:
		log.Warn("cgroup controllers cannot be looked at", "err", err)
	default:
		if err := kernel.CheckControllers(have, !p.cfg.Cgroups.Off, log); err != nil {
			return err
		}
	}
	if err := p.holdReserved(ctx, p.machine); err != nil {
		return err
	}
	if n.OOMScoreAdj == 0 {
		return nil
	}
	if err := kernel.EnsureOOMScoreAdj("/proc/self", n.OOMScoreAdj); err != nil {
		log.Warn("the agent may be among the first to be killed when memory runs out", "err", err)
	}
	return nil
}
