package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	summary "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podkeeper/podkeeper/node/stats"
)

// Summarize says the facts as the summary API of a kubelet does. With brief it has
// processors and memory only.
func Summarize(f Facts, brief bool) summary.Summary {
	s := summary.Summary{Node: f.node(brief), Pods: []summary.PodStats{}}
	for _, p := range f.Pods {
		s.Pods = append(s.Pods, f.pod(p, brief))
	}
	slices.SortFunc(s.Pods, func(a, b summary.PodStats) int {
		return cmp.Or(strings.Compare(a.PodRef.Namespace, b.PodRef.Namespace), strings.Compare(a.PodRef.Name, b.PodRef.Name))
	})
	return s
}

func (f Facts) node(brief bool) summary.NodeStats {
	n := summary.NodeStats{
		NodeName: f.NodeName, StartTime: metav1.NewTime(f.Host.Booted),
		CPU: cpu(f.Host.All, f.Time, f.Rates.of(Owner{})), Memory: memory(f.Host.All, f.Time, 0),
		Swap: swap(f.Host.Swap, f.Host.SwapFree, f.Time),
	}
	if n.Memory != nil {
		n.Memory.AvailableBytes = unsigned(f.Node.Memory.Available)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Groups)) {
		c := f.Groups[name]
		group := summary.ContainerStats{
			Name: name, StartTime: n.StartTime,
			CPU: cpu(c, f.Time, f.Rates.of(Owner{Group: name})), Memory: memory(c, f.Time, 0), Swap: used(c.Swap, f.Time),
		}
		n.SystemContainers = append(n.SystemContainers, group)
	}
	if brief {
		return n
	}
	n.IO = waiting(f.Host.All, f.Time)
	n.Network = network(f.Host.Network, f.Time)
	n.Fs = filesystem(f.Node.NodeFS, f.Time)
	n.Runtime = &summary.RuntimeStats{ImageFs: filesystem(f.Node.ImageFS, f.Time), ContainerFs: filesystem(f.Node.ContainerFS, f.Time)}
	n.Rlimit = &summary.RlimitStats{Time: metav1.NewTime(f.Node.Time), MaxPID: f.Node.PIDs.Max, NumOfRunningProcesses: f.Node.PIDs.Running}
	return n
}

func (f Facts) pod(p Pod, brief bool) summary.PodStats {
	use, at := p.Use, p.Use.Time
	s := summary.PodStats{
		PodRef: summary.PodReference{Name: p.Object.Name, Namespace: p.Object.Namespace, UID: string(p.Object.UID)},
		CPU:    cpu(use.Cgroup, at, f.Rates.of(Owner{UID: p.Object.UID})), Memory: memory(use.Cgroup, at, 0), Swap: used(use.Swap, at),
		Containers: []summary.ContainerStats{},
	}
	if p.Object.Status.StartTime != nil {
		s.StartTime = *p.Object.Status.StartTime
	}
	for _, c := range p.Containers {
		s.Containers = append(s.Containers, f.container(p, c, brief))
	}
	if brief {
		return s
	}
	s.IO = waiting(use.Cgroup, at)
	s.Network = network(use.Network, at)
	if use.Processes != nil {
		s.ProcessStats = &summary.ProcessStats{ProcessCount: unsigned(use.Processes)}
	}
	for _, name := range slices.Sorted(maps.Keys(use.Volumes)) {
		v := use.Volumes[name]
		volume := summary.VolumeStats{Name: name, FsStats: *held(cmp.Or(v.FS, f.Node.NodeFS), &v)}
		if claim := p.Claims[name]; claim != "" {
			volume.PVCRef = &summary.PVCReference{Name: claim, Namespace: p.Object.Namespace}
		}
		s.VolumeStats = append(s.VolumeStats, volume)
	}
	s.EphemeralStorage = f.ephemeral(p)
	return s
}

func (f Facts) container(p Pod, c Container, brief bool) summary.ContainerStats {
	at := p.Use.Time
	s := summary.ContainerStats{
		Name: c.Name, StartTime: metav1.NewTime(c.Started),
		CPU: cpu(c.Use.Cgroup, at, f.Rates.of(Owner{UID: p.Object.UID, Container: c.Name + "/" + c.ID})), Memory: memory(c.Use.Cgroup, at, c.Resources.Memory),
		Swap: used(c.Use.Swap, at),
	}
	if brief {
		return s
	}
	s.IO = waiting(c.Use.Cgroup, at)
	s.Rootfs, s.Logs = held(f.Node.ContainerFS, c.Use.RootFS), held(f.Node.ContainerFS, c.Use.Logs)
	return s
}

// ephemeral adds up what a pod takes of the disk: writable layers, logs and emptyDirs
// that are not in memory. nil as long as one of them is not known.
func (f Facts) ephemeral(p Pod) *summary.FsStats {
	sum := stats.Usage{Time: p.Use.Time}
	add := func(u *stats.Usage) bool {
		if u != nil {
			sum.Bytes += u.Bytes
			sum.Inodes += u.Inodes
		}
		return u != nil
	}
	for _, c := range p.Containers {
		if !add(c.Use.RootFS) || c.LogPath != "" && !add(c.Use.Logs) {
			return nil
		}
	}
	for _, v := range p.Object.Spec.Volumes {
		if v.EmptyDir == nil {
			continue
		}
		u, ok := p.Use.Volumes[v.Name]
		if !ok {
			return nil
		}
		if u.FS == nil {
			add(&u)
		}
	}
	return held(f.Node.NodeFS, &sum)
}

func cpu(c stats.Cgroup, at time.Time, rate *uint64) *summary.CPUStats {
	if c.CPU == nil {
		return nil
	}
	return &summary.CPUStats{
		Time: metav1.NewTime(at), UsageNanoCores: rate, UsageCoreNanoSeconds: new(uint64(*c.CPU)), PSI: psi(c.CPUPressure),
	}
}

// memory has what is left of a limit, where there is one.
func memory(c stats.Cgroup, at time.Time, limit int64) *summary.MemoryStats {
	if c.MemoryUsage == nil {
		return nil
	}
	m := &summary.MemoryStats{
		Time: metav1.NewTime(at), UsageBytes: unsigned(c.MemoryUsage), WorkingSetBytes: unsigned(c.WorkingSet), RSSBytes: unsigned(c.RSS),
		PageFaults: unsigned(c.PageFaults), MajorPageFaults: unsigned(c.MajorFaults), PSI: psi(c.MemoryPressure),
	}
	if limit > 0 && c.WorkingSet != nil {
		m.AvailableBytes = new(uint64(max(limit-*c.WorkingSet, 0)))
	}
	return m
}

func waiting(c stats.Cgroup, at time.Time) *summary.IOStats {
	if c.IOPressure == nil {
		return nil
	}
	return &summary.IOStats{Time: metav1.NewTime(at), PSI: psi(c.IOPressure)}
}

// used has no available bytes: our engines tell no limit of swap.
func used(bytes *int64, at time.Time) *summary.SwapStats {
	if bytes == nil {
		return nil
	}
	return &summary.SwapStats{Time: metav1.NewTime(at), SwapUsageBytes: unsigned(bytes)}
}

func swap(all, free *int64, at time.Time) *summary.SwapStats {
	if all == nil || free == nil {
		return nil
	}
	return &summary.SwapStats{Time: metav1.NewTime(at), SwapAvailableBytes: unsigned(free), SwapUsageBytes: unsigned(new(*all - *free))}
}

func psi(p *stats.Pressure) *summary.PSIStats {
	if p == nil {
		return nil
	}
	data := func(s stats.Stall) summary.PSIData {
		return summary.PSIData{Total: uint64(s.Total), Avg10: s.Avg10, Avg60: s.Avg60, Avg300: s.Avg300}
	}
	return &summary.PSIStats{Some: data(p.Some), Full: data(p.Full)}
}

// firstInterface is the one whose numbers stand for a pod's network.
const firstInterface = "eth0"

func network(n *stats.Network, at time.Time) *summary.NetworkStats {
	if n == nil || len(n.Interfaces) == 0 {
		return nil
	}
	s := &summary.NetworkStats{Time: metav1.NewTime(at)}
	for _, i := range n.Interfaces {
		s.Interfaces = append(s.Interfaces, summary.InterfaceStats{
			Name: i.Name, RxBytes: unsigned(&i.RxBytes), RxErrors: unsigned(&i.RxErrors), TxBytes: unsigned(&i.TxBytes), TxErrors: unsigned(&i.TxErrors),
		})
	}
	at0 := max(slices.IndexFunc(s.Interfaces, func(i summary.InterfaceStats) bool { return i.Name == firstInterface }), 0)
	s.InterfaceStats = s.Interfaces[at0]
	return s
}

func filesystem(fs *stats.Filesystem, at time.Time) *summary.FsStats {
	if fs == nil {
		return nil
	}
	s := &summary.FsStats{
		Time: metav1.NewTime(at), AvailableBytes: unsigned(&fs.Available), CapacityBytes: unsigned(&fs.Capacity), UsedBytes: unsigned(&fs.Used),
		InodesFree: unsigned(fs.InodesFree), Inodes: unsigned(fs.Inodes),
	}
	if fs.Inodes != nil && fs.InodesFree != nil {
		s.InodesUsed = new(uint64(*fs.Inodes - *fs.InodesFree))
	}
	return s
}

// held is what a folder takes of the filesystem that it is on.
func held(fs *stats.Filesystem, u *stats.Usage) *summary.FsStats {
	if u == nil {
		return nil
	}
	s := filesystem(fs, u.Time)
	if s == nil {
		s = &summary.FsStats{}
	}
	s.Time, s.UsedBytes, s.InodesUsed = metav1.NewTime(u.Time), unsigned(&u.Bytes), unsigned(&u.Inodes)
	return s
}

func unsigned(n *int64) *uint64 {
	if n == nil || *n < 0 {
		return nil
	}
	return new(uint64(*n))
}
