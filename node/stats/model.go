package stats

import (
	"os"
	"path/filepath"
	"time"

	"github.com/google/cadvisor/lib/model"
)

// fromModel takes what was read of a cgroup. Whatever has processes has used memory and
// time: a zero is a controller that counts nothing.
func fromModel(s *model.ContainerStats, p place) Cgroup {
	var c Cgroup
	if s.Cpu != nil && s.Cpu.Usage.Total > 0 {
		use := s.Cpu.Usage
		c.CPU, c.CPUUser, c.CPUSystem = new(time.Duration(use.Total)), new(time.Duration(use.User)), new(time.Duration(use.System))
		if cfs := s.Cpu.CFS; cfs.Periods > 0 {
			c.Throttled = &Throttled{Periods: int64(cfs.Periods), Held: int64(cfs.ThrottledPeriods), Time: time.Duration(cfs.ThrottledTime)}
		}
	}
	if m := s.Memory; m != nil && m.Usage > 0 {
		c.MemoryUsage, c.WorkingSet, c.RSS = new(int64(m.Usage)), new(int64(m.WorkingSet)), new(int64(m.RSS))
		c.Cache, c.Mapped = new(int64(m.Cache)), new(int64(m.MappedFile))
		c.PageFaults, c.MajorFaults = new(int64(m.ContainerData.Pgfault)), new(int64(m.ContainerData.Pgmajfault))
		c.LimitHits = new(int64(m.Failcnt))
		if m.KernelUsage > 0 {
			c.Kernel = new(int64(m.KernelUsage))
		}
		if m.MaxUsage > 0 {
			c.Peak = new(int64(m.MaxUsage))
		}
		if p.has("memory", "memory.memsw.usage_in_bytes", "memory.swap.current") {
			c.Swap = new(int64(m.Swap))
		}
	}
	if p.has("", "", "cpu.pressure") && s.Cpu != nil && s.Memory != nil {
		c.CPUPressure, c.MemoryPressure = pressure(s.Cpu.PSI), pressure(s.Memory.PSI)
		if s.DiskIo != nil {
			c.IOPressure = pressure(s.DiskIo.PSI)
		}
	}
	return c
}

// whole is what is counted for a cgroup that holds others. With version 1 page faults are
// counted where they happen only.
func (p place) whole(c Cgroup) Cgroup {
	if _, unified := p[""]; !unified {
		c.PageFaults, c.MajorFaults = nil, nil
	}
	return c
}

// has reports whether the kernel has a file there: by version 1 of cgroups, or by
// version 2.
func (p place) has(controller, v1, v2 string) bool {
	name := v2
	dir, ok := p[""]
	if !ok {
		name = v1
		dir, ok = p[controller]
	}
	if !ok || name == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

func pressure(p model.PSIStats) *Pressure { return &Pressure{Some: stall(p.Some), Full: stall(p.Full)} }

func stall(d model.PSIData) Stall {
	return Stall{Total: time.Duration(d.Total) * time.Microsecond, Avg10: d.Avg10, Avg60: d.Avg60, Avg300: d.Avg300}
}

func network(list []model.InterfaceStats) *Network {
	var n Network
	for _, i := range list {
		n.Interfaces = append(n.Interfaces, Interface{
			Name:    i.Name,
			RxBytes: int64(i.RxBytes), RxPackets: int64(i.RxPackets), RxErrors: int64(i.RxErrors), RxDropped: int64(i.RxDropped),
			TxBytes: int64(i.TxBytes), TxPackets: int64(i.TxPackets), TxErrors: int64(i.TxErrors), TxDropped: int64(i.TxDropped),
		})
		n.RxBytes += int64(i.RxBytes)
		n.RxErrors += int64(i.RxErrors)
		n.TxBytes += int64(i.TxBytes)
		n.TxErrors += int64(i.TxErrors)
	}
	return &n
}
