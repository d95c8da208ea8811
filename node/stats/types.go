package stats

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Node is what the machine has and uses.
type Node struct {
	Time   time.Time
	Memory NodeMemory
	// NodeFS holds the root dir of the agent, ImageFS the engine's images, and
	// ContainerFS the writable layers of containers, which with our engines is the
	// ImageFS. nil where the filesystem is not known or does not answer.
	NodeFS, ImageFS, ContainerFS *Filesystem
	PIDs                         PIDs
	// CPU is the time that all processors spent at work since the machine started.
	CPU *time.Duration
}

// NodeMemory is in bytes; nil is not known.
type NodeMemory struct {
	Capacity *int64
	// WorkingSet is what could not be given up without pain: what is in use but for
	// file pages that were not used lately.
	WorkingSet *int64
	// Available is Capacity less WorkingSet, as the kubelet counts it.
	Available *int64
}

// PIDs are numbers of processes and threads; nil is not known.
type PIDs struct{ Max, Running *int64 }

// Filesystem is one mounted filesystem. Two with the same Device are one.
type Filesystem struct {
	// Path is any folder on it.
	Path string
	// Device identifies the filesystem for as long as it is mounted.
	Device string
	// Capacity and Available are bytes; Available is what users without privileges
	// may still write.
	Capacity, Available int64
	// Used is bytes that are in use by anybody. With Available it is less than Capacity
	// where some is kept for the privileged.
	Used int64
	// Inodes and InodesFree are nil where it has no fixed number of them.
	Inodes, InodesFree *int64
}

// Pod is what one pod uses. A field that is nil is not known.
type Pod struct {
	UID  types.UID
	Time time.Time
	Cgroup
	// Network is of the pod's own network; nil for a pod on the host's.
	Network *Network
	// Sandbox is what holds that, which is a part of the pod's own numbers.
	Sandbox Cgroup
	// Containers by name: of each the attempt that runs.
	Containers map[string]Container
	// Volumes by name: those whose files are on this machine's disk, the pod's own.
	Volumes map[string]Usage
}

// Cgroup is what the kernel counts for a pod or a container. nil is not known.
type Cgroup struct {
	// Path is where it lies below the mount points of cgroups, "/" for what has all
	// others in it; "" is not known.
	Path string
	// CPU is processor time used since it was made; CPUUser and CPUSystem are parts of
	// it.
	CPU, CPUUser, CPUSystem *time.Duration
	Throttled               *Throttled
	// WorkingSet, MemoryUsage and RSS are bytes; WorkingSet is MemoryUsage but for
	// file pages that were not used lately.
	WorkingSet, MemoryUsage, RSS *int64
	// Cache is file pages, Mapped those of them that are mapped, Kernel what the kernel
	// keeps for the processes, and Peak the highest MemoryUsage so far; in bytes.
	Cache, Mapped, Kernel, Peak *int64
	// Swap is bytes.
	Swap *int64
	// LimitHits is how often MemoryUsage was at its limit.
	LimitHits               *int64
	PageFaults, MajorFaults *int64
	// CPUPressure, MemoryPressure and IOPressure are how long work had to wait.
	CPUPressure, MemoryPressure, IOPressure *Pressure
	// Processes is how many processes and threads there are.
	Processes *int64
}

// Throttled is what a CPU quota did: in how many of its periods something ran, in how
// many of those it was held up, and for how long in all.
type Throttled struct {
	Periods, Held int64
	Time          time.Duration
}

// Pressure is how long work had to wait for something: some of it, or all that there
// was.
type Pressure struct{ Some, Full Stall }

// Stall is the time since the start, and per cent of the last 10, 60 and 300 seconds.
type Stall struct {
	Total                time.Duration
	Avg10, Avg60, Avg300 float64
}

// Network is what went through the interfaces of a pod or of the machine, but for the
// loopback: through all of them, and through each.
type Network struct {
	RxBytes, RxErrors, TxBytes, TxErrors int64
	Interfaces                           []Interface
}

// Interface is what went through one interface.
type Interface struct {
	Name                                    string
	RxBytes, RxPackets, RxErrors, RxDropped int64
	TxBytes, TxPackets, TxErrors, TxDropped int64
}

// Host is what else is counted of the machine, for those who watch it.
type Host struct {
	// Booted is when it started; zero is not known.
	Booted time.Time
	// All is everything that runs. Its pressures are known on version 1 of cgroups, too.
	All Cgroup
	// Swap is what there is, SwapFree what is left of it; in bytes, nil is not known.
	Swap, SwapFree *int64
	// Network is of the machine's own interfaces.
	Network *Network
}

// Container is what one container uses.
type Container struct {
	Cgroup
	// RootFS is what is in the writable layer, Logs what the engine's log files
	// take; nil where nobody has looked.
	RootFS, Logs *Usage
}

// Usage is what the files below a folder take on the disk.
type Usage struct {
	// Time is when that was found.
	Time          time.Time
	Bytes, Inodes int64
	// FS is the filesystem, where the folder is one of its own; nil is that of the disk.
	FS *Filesystem
}
