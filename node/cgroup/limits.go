package cgroup

import (
	"maps"
	"math"
	"slices"

	"github.com/containerd/cgroups/v3/cgroup2"
	systemd "github.com/coreos/go-systemd/v22/dbus"
	dbus "github.com/godbus/dbus/v5"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Keep is a limit that is left as it is.
const Keep = -1

// Limits are what the processes of a cgroup may have together.
type Limits struct {
	// CPUShares is the weight beside its neighbours in the units of cgroup v1, 2 to
	// 262144; 0 leaves it as it is.
	CPUShares int64
	// CPUQuota is how long they may run in each CPUPeriod, both in µs; 0 is no limit,
	// and Keep keeps both. A period of 0 is 100 ms.
	CPUQuota, CPUPeriod int64
	// Memory is in bytes, Pids in processes and threads; 0 is no limit, Keep what it
	// is.
	Memory, Pids int64
	// HugePages are in bytes, by the kernel's name of their size: "2MB". A size that
	// is not named is left as it is.
	HugePages map[string]int64
}

// Equal reports whether two say the same.
func (l Limits) Equal(m Limits) bool {
	return l.CPUShares == m.CPUShares && l.CPUQuota == m.CPUQuota && l.period() == m.period() &&
		l.Memory == m.Memory && l.Pids == m.Pids && maps.Equal(l.HugePages, m.HugePages)
}

// The kernel's bounds.
const (
	minShares, maxShares = 2, 262144
	minWeight, maxWeight = 1, 10000
	defaultPeriod        = 100_000 // µs
	percent              = 10_000  // µs of a second
)

// Weight returns the weight of cgroup v2 for shares of v1, by the linear map that
// Kubernetes has.
func Weight(shares int64) int64 {
	shares = min(max(shares, minShares), maxShares)
	return minWeight + (shares-minShares)*(maxWeight-minWeight)/(maxShares-minShares)
}

func (l Limits) period() int64 {
	if l.CPUPeriod == 0 {
		return defaultPeriod
	}
	return l.CPUPeriod
}

// atLeast returns the limits, but where they are tighter than those that hold.
func (l Limits) atLeast(holds Limits) Limits {
	looser := func(want, have int64) int64 {
		if want == 0 || have == 0 {
			return 0
		}
		return max(want, have)
	}
	if l.period() == holds.period() || holds.CPUQuota == 0 {
		l.CPUQuota = looser(l.CPUQuota, holds.CPUQuota)
	}
	l.Memory = looser(l.Memory, holds.Memory)
	l.Pids = looser(l.Pids, holds.Pids)
	return l
}

// v1 spells the limits for cgroup v1. It has no word for no limit of pids.
func (l Limits) v1() *specs.LinuxResources {
	period, quota, memory := uint64(l.period()), l.CPUQuota, l.Memory
	if quota == 0 {
		quota = -1
	}
	if memory == 0 {
		memory = -1
	}
	r := &specs.LinuxResources{CPU: &specs.LinuxCPU{Period: &period, Quota: &quota}}
	if l.CPUQuota == Keep {
		r.CPU = new(specs.LinuxCPU)
	}
	if l.Memory != Keep {
		r.Memory = &specs.LinuxMemory{Limit: &memory}
	}
	if l.CPUShares > 0 {
		shares := uint64(min(max(l.CPUShares, minShares), maxShares))
		r.CPU.Shares = &shares
	}
	if l.Pids > 0 {
		r.Pids = &specs.LinuxPids{Limit: &l.Pids}
	}
	for _, size := range slices.Sorted(maps.Keys(l.HugePages)) {
		r.HugepageLimits = append(r.HugepageLimits, specs.LinuxHugepageLimit{Pagesize: size, Limit: uint64(l.HugePages[size])})
	}
	return r
}

// v2 spells the limits for cgroup v2, without the controllers that are not there.
func (l Limits) v2(controllers []string) *cgroup2.Resources {
	memory, period := l.Memory, uint64(l.period())
	if memory == 0 {
		memory = math.MaxInt64 // the kernel then says max
	}
	cpu := new(cgroup2.CPU)
	switch {
	case l.CPUQuota > 0:
		cpu.Max = cgroup2.NewCPUMax(&l.CPUQuota, &period)
	case l.CPUQuota != Keep:
		cpu.Max = cgroup2.NewCPUMax(nil, &period)
	}
	if l.CPUShares > 0 {
		weight := uint64(Weight(l.CPUShares))
		cpu.Weight = &weight
	}
	r := &cgroup2.Resources{CPU: cpu}
	if l.Memory != Keep {
		r.Memory = &cgroup2.Memory{Max: &memory}
	}
	if l.Pids != Keep && slices.Contains(controllers, "pids") {
		r.Pids = &cgroup2.Pids{Max: l.Pids}
		if l.Pids == 0 {
			r.Pids.Max = -1
		}
	}
	if slices.Contains(controllers, "hugetlb") && len(l.HugePages) > 0 {
		r.HugeTlb = new(cgroup2.HugeTlb)
		for _, size := range slices.Sorted(maps.Keys(l.HugePages)) {
			*r.HugeTlb = append(*r.HugeTlb, cgroup2.HugeTlbEntry{HugePageSize: size, Limit: uint64(l.HugePages[size])})
		}
	}
	return r
}

// properties spells the limits for systemd on a version of cgroups. It has none for
// huge pages.
func (l Limits) properties(version int) []systemd.Property {
	var list []systemd.Property
	number := func(name string, value int64) {
		n := uint64(value)
		if value == 0 {
			n = math.MaxUint64 // infinity
		}
		if value != Keep {
			list = append(list, systemd.Property{Name: name, Value: dbus.MakeVariant(n)})
		}
	}
	if l.CPUQuota != Keep {
		// systemd counts in whole percents, and must not hold back more than we do.
		number("CPUQuotaPerSecUSec", (l.CPUQuota*1_000_000/l.period()+percent-1)/percent*percent)
		if l.period() != defaultPeriod {
			number("CPUQuotaPeriodUSec", l.period())
		}
	}
	number("TasksMax", l.Pids)
	shares, memory, weight := "CPUWeight", "MemoryMax", Weight(l.CPUShares)
	if version == 1 {
		shares, memory, weight = "CPUShares", "MemoryLimit", min(max(l.CPUShares, minShares), maxShares)
	}
	if l.CPUShares > 0 {
		number(shares, weight)
	}
	number(memory, l.Memory)
	return list
}
