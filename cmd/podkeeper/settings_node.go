package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"

	"github.com/podkeeper/podkeeper/agent"
)

// nodeSettings are the flags about the machine itself.
type nodeSettings struct {
	protectKernel  bool
	oomScoreAdj    int
	cpuPolicy      string
	reservedCPUs   string
	systemReserved []string
	kubeReserved   []string
	reserveSettings
}

func (n *nodeSettings) flags(f *pflag.FlagSet) {
	f.BoolVar(&n.protectKernel, "protect-kernel-defaults", false, "refuse to start where kernel settings are not those of a kubelet, instead of setting them")
	f.IntVar(&n.oomScoreAdj, "oom-score-adj", -999, "how gladly the kernel kills the agent when memory runs out, from -1000 (never) to 1000")
	f.StringVar(&n.cpuPolicy, "cpu-manager-policy", "none", "`none|static`: with static, containers of Guaranteed pods that ask for whole CPUs have them for themselves; takes a reservation of CPU")
	f.StringVar(&n.reservedCPUs, "reserved-cpus", "", "the `CPUS` that no container has for itself, such as 0-1,8; instead of cpu in --system-reserved and --kube-reserved")
	f.StringSliceVar(&n.systemReserved, "system-reserved", nil, "what is kept from pods for the machine: `RESOURCES` such as cpu=500m,memory=1Gi,ephemeral-storage=1Gi,pid=100")
	f.StringSliceVar(&n.kubeReserved, "kube-reserved", nil, "what is kept from pods for the engine and the agent: `RESOURCES` as in --system-reserved")
	n.reserveSettings.flags(f)
}

// node returns what the flags say; check takes what is wrong with one. perQOS: pods
// have cgroups. Only the
// agent of the default root dir changes the kernel's settings: another is a second
// one, or a trial.
func (n *nodeSettings) node(l location, perQOS bool, check func(flag string, err error)) agent.NodeConfig {
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
	var err error
	cfg.System, err = parseReserved(n.systemReserved)
	check("system-reserved", err)
	cfg.Kube, err = parseReserved(n.kubeReserved)
	check("kube-reserved", err)
	n.cpus(&cfg, check)
	n.reserve(&cfg, perQOS, check)
	return cfg
}

func (n *nodeSettings) cpus(cfg *agent.NodeConfig, check func(flag string, err error)) {
	switch n.cpuPolicy {
	case "", "none":
	case "static":
		cfg.StaticCPUs = true
	default:
		check("cpu-manager-policy", fmt.Errorf("%q: want none or static", n.cpuPolicy))
	}
	if n.reservedCPUs != "" {
		cpus, err := cpuset.Parse(n.reservedCPUs)
		switch {
		case err != nil:
			check("reserved-cpus", fmt.Errorf("%q: want numbers and ranges, such as 0-1,8", n.reservedCPUs))
		case cpus.IsEmpty():
			check("reserved-cpus", fmt.Errorf("%q: it names none", n.reservedCPUs))
		}
		cfg.ReservedCPUs = cpus.String()
		// They are what is reserved of CPU, as for a kubelet.
		cfg.System.CPU, cfg.Kube.CPU = int64(cpus.Size())*1000, 0
	}
	if cfg.StaticCPUs && cfg.System.CPU+cfg.Kube.CPU == 0 {
		check("cpu-manager-policy", errors.New("static: something must be left for all others: reserve at least part of a CPU with --reserved-cpus, or with cpu in --system-reserved or --kube-reserved"))
	}
}

// parseReserved reads name=quantity pairs.
func parseReserved(pairs []string) (agent.Reserved, error) {
	var r agent.Reserved
	var errs []error
	seen := make(map[string]bool)
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		q, err := resource.ParseQuantity(text)
		switch {
		case !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, name):
			errs = append(errs, fmt.Errorf("%q: want cpu, memory, ephemeral-storage or pid", name))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %q: want a quantity", name, text))
		case q.Sign() < 0:
			errs = append(errs, fmt.Errorf("%s: %s: want 0 or more", name, text))
		case seen[name]:
			errs = append(errs, fmt.Errorf("%s: given twice", name))
		}
		seen[name] = true
		switch name {
		case "cpu":
			r.CPU = q.MilliValue()
		case "memory":
			r.Memory = q.Value()
		case "ephemeral-storage":
			r.Storage = q.Value()
		case "pid":
			r.PIDs = q.Value()
		}
	}
	return r, errors.Join(errs...)
}
