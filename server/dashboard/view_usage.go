package dashboard

import (
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// usageView is what the machine and its pods use. The browser keeps the past of it.
type usageView struct {
	Node  useView            `json:"node"`
	Disks []diskView         `json:"disks,omitempty"`
	Pods  map[string]useView `json:"pods"` // by namespace/name
}

// useView is what one thing uses.
type useView struct {
	At int64 `json:"at"`
	// CPU is in billionths of one, and absent until two looks can be compared.
	CPU *uint64 `json:"cpu,omitempty"`
	// Memory is the working set in bytes, Free what there is beside it.
	Memory *uint64 `json:"memory,omitempty"`
	Free   *uint64 `json:"free,omitempty"`
	// Containers are those of a pod, by name.
	Containers map[string]useView `json:"containers,omitempty"`
}

// diskView is a filesystem.
type diskView struct {
	Name       string `json:"name"`
	Free       uint64 `json:"free"`
	Size       uint64 `json:"size"`
	InodesFree uint64 `json:"inodesFree,omitempty"`
	Inodes     uint64 `json:"inodes,omitempty"` // 0 is unknown
}

func viewUsage(s *stats.Summary) usageView {
	v := usageView{Node: viewUse(s.Node.CPU, s.Node.Memory), Pods: map[string]useView{}}
	for i := range s.Pods {
		p := &s.Pods[i]
		use := viewUse(p.CPU, p.Memory)
		use.Containers = map[string]useView{}
		for _, c := range p.Containers {
			use.Containers[c.Name] = viewUse(c.CPU, c.Memory)
		}
		v.Pods[p.PodRef.Namespace+"/"+p.PodRef.Name] = use
	}
	v.Disks = addDisk(v.Disks, "volumes, logs", s.Node.Fs)
	if r := s.Node.Runtime; r != nil {
		v.Disks = addDisk(v.Disks, "images", r.ImageFs)
		v.Disks = addDisk(v.Disks, "containers", r.ContainerFs)
	}
	return v
}

// addDisk adds a filesystem, to one of the list if that is the same.
func addDisk(list []diskView, name string, fs *stats.FsStats) []diskView {
	if fs == nil || fs.AvailableBytes == nil || fs.CapacityBytes == nil {
		return list
	}
	d := diskView{Name: name, Free: *fs.AvailableBytes, Size: *fs.CapacityBytes}
	if fs.InodesFree != nil && fs.Inodes != nil {
		d.InodesFree, d.Inodes = *fs.InodesFree, *fs.Inodes
	}
	for i, other := range list {
		if other.Name = d.Name; other == d {
			list[i].Name += ", " + name
			return list
		}
	}
	return append(list, d)
}

func viewUse(cpu *stats.CPUStats, memory *stats.MemoryStats) (v useView) {
	if cpu != nil {
		v.At, v.CPU = millis(cpu.Time.Time), cpu.UsageNanoCores
	}
	if memory != nil {
		v.Memory, v.Free = memory.WorkingSetBytes, memory.AvailableBytes
		if v.At == 0 {
			v.At = millis(memory.Time.Time)
		}
	}
	return v
}
