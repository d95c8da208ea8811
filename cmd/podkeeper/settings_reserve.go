package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/podkeeper/podkeeper/agent"
)

// reserveSettings are the flags about cgroups that are of no pod, and about what holds
// all pods together.
type reserveSettings struct {
	enforce        []string
	systemReserved string
	kubeReserved   string
	system         string
	runtime        string
	kubelet        string
}

func (r *reserveSettings) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&r.enforce, "enforce-node-allocatable", []string{"pods"}, "what is held to its share: `LIST` of pods, system-reserved and kube-reserved (which need their cgroups below), or none")
	f.StringVar(&r.systemReserved, "system-reserved-cgroup", "", "the `CGROUP`, which must be there, that is held to --system-reserved")
	f.StringVar(&r.kubeReserved, "kube-reserved-cgroup", "", "the `CGROUP`, which must be there, that is held to --kube-reserved")
	f.StringVar(&r.system, "system-cgroups", "", "the `CGROUP` that processes are moved to which are in none (default they stay)")
	f.StringVar(&r.runtime, "runtime-cgroups", "", "the `CGROUP` that the engine's own processes are moved to (default they stay)")
	f.StringVar(&r.kubelet, "kubelet-cgroups", "", "the `CGROUP` that the agent moves to (default it stays)")
}

// reserve adds what the flags say; check takes what is wrong with one. perQOS: pods
// have cgroups.
func (r *reserveSettings) reserve(cfg *agent.NodeConfig, perQOS bool, check func(flag string, err error)) {
	path := func(flag, value string) string {
		if value == "/" {
			check(flag, errors.New(`"/" holds all others: name one below it`))
		} else if value != "" {
			check(flag, agent.CheckCgroupRoot(value))
		}
		return value
	}
	cfg.Groups = agent.ProcessGroups{
		System: path("system-cgroups", r.system), Engine: path("runtime-cgroups", r.runtime), Agent: path("kubelet-cgroups", r.kubelet),
	}
	system, kube := path("system-reserved-cgroup", r.systemReserved), path("kube-reserved-cgroup", r.kubeReserved)
	if cfg.ReservedCPUs != "" && system+kube != "" {
		check("reserved-cpus", errors.New("it cannot be held to by --system-reserved-cgroup or --kube-reserved-cgroup"))
	}
	const flag = "enforce-node-allocatable"
	for _, what := range r.enforce {
		switch what {
		case "none":
			if len(r.enforce) > 1 {
				check(flag, fmt.Errorf("none excludes all others in %q", strings.Join(r.enforce, ",")))
			}
		case "pods":
			cfg.HoldPods = true
		case "system-reserved":
			cfg.SystemCgroup = system
			if system == "" {
				check(flag, errors.New("system-reserved takes --system-reserved-cgroup"))
			}
		case "kube-reserved":
			cfg.KubeCgroup = kube
			if kube == "" {
				check(flag, errors.New("kube-reserved takes --kube-reserved-cgroup"))
			}
		case "":
		default:
			check(flag, fmt.Errorf("%q: want pods, system-reserved, kube-reserved or none", what))
		}
	}
	if reserved := slices.Contains(r.enforce, "system-reserved") || slices.Contains(r.enforce, "kube-reserved"); reserved && !perQOS {
		check(flag, errors.New("it takes --cgroups-per-qos"))
	}
}
