package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/podkeeper/podkeeper/agent"
)

// cgroupSettings are the flags about pods' cgroups.
type cgroupSettings struct {
	perQOS    bool
	root      string
	driver    string
	cpuQuota  bool
	cpuPeriod time.Duration
}

func (c *cgroupSettings) flags(f *pflag.FlagSet) {
	f.BoolVar(&c.perQOS, "cgroups-per-qos", true, "give each pod a cgroup, below one for its quality of service class; pods that have none or one stay so")
	f.StringVar(&c.root, "cgroup-root", "", "the `CGROUP` that kubepods is made in (default /; with another root dir one that is named after it)")
	f.StringVar(&c.driver, "cgroup-driver", "", "refuse an engine whose cgroup driver is not this one: `cgroupfs|systemd` (default to take the engine's)")
	f.BoolVar(&c.cpuQuota, "cpu-cfs-quota", true, "hold limits of CPU")
	f.DurationVar(&c.cpuPeriod, "cpu-cfs-quota-period", 100*time.Millisecond, "the period in which a limit of CPU is used up, from 1ms to 1s")
}

// cgroups returns what the flags say; check takes what is wrong with one.
func (c *cgroupSettings) cgroups(l location, check func(flag string, err error)) agent.CgroupConfig {
	cfg := agent.CgroupConfig{Off: !c.perQOS, Root: c.root, Driver: agent.CgroupDriver(c.driver), NoCPUQuota: !c.cpuQuota, CPUPeriod: c.cpuPeriod}
	if cfg.Root == "" && l.isDefault() {
		cfg.Root = "/"
	}
	if cfg.Root != "" {
		check("cgroup-root", agent.CheckCgroupRoot(cfg.Root))
	}
	if d := cfg.Driver; d != "" && d != agent.Cgroupfs && d != agent.Systemd {
		check("cgroup-driver", fmt.Errorf("%q: want %s or %s", d, agent.Cgroupfs, agent.Systemd))
	}
	if c.cpuPeriod < time.Millisecond || c.cpuPeriod > time.Second {
		check("cpu-cfs-quota-period", fmt.Errorf("%s: want 1ms to 1s", c.cpuPeriod))
	}
	return cfg
}
