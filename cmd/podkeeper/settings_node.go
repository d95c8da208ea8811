package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/podkeeper/podkeeper/agent"
)

// nodeSettings are the flags about the machine itself.
type nodeSettings struct {
	protectKernel bool
	oomScoreAdj   int
}

func (n *nodeSettings) flags(f *pflag.FlagSet) {
	f.BoolVar(&n.protectKernel, "protect-kernel-defaults", false, "refuse to start where kernel settings are not those of a kubelet, instead of setting them")
	f.IntVar(&n.oomScoreAdj, "oom-score-adj", -999, "how gladly the kernel kills the agent when memory runs out, from -1000 (never) to 1000")
}

// node returns what the flags say; check takes what is wrong with one. Only the
// agent of the default root dir changes the kernel's settings: another is a second
// one, or a trial.
func (n *nodeSettings) node(l location, check func(flag string, err error)) agent.NodeConfig {
	if n.oomScoreAdj < -1000 || n.oomScoreAdj > 1000 {
		check("oom-score-adj", fmt.Errorf("%d: want -1000 to 1000", n.oomScoreAdj))
	}
	cfg := agent.NodeConfig{OOMScoreAdj: n.oomScoreAdj}
	switch {
	case n.protectKernel:
		cfg.Kernel = agent.ProtectKernel
	case l.isDefault():
		cfg.Kernel = agent.SetKernel
	}
	return cfg
}
