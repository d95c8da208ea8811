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
	// Containers by name: of each the attempt that runs.
	Containers map[string]Container
	// Volumes by name: those whose files are on this machine's disk, the pod's own.
	Volumes map[string]Usage
}

// Cgroup is what the kernel counts for a pod or a container. nil is not known.
type Cgroup struct {
	// CPU is processor time used since it was made.
	CPU *time.Duration
	// WorkingSet, MemoryUsage and RSS are bytes; WorkingSet is MemoryUsage but for
	// file pages that were not used lately.
	WorkingSet, MemoryUsage, RSS *int64
	// Processes is how many processes and threads there are.
	Processes *int64
}

// Network is what went through all interfaces of a pod, but for the loopback.
type Network struct {
	RxBytes, RxErrors, TxBytes, TxErrors int64
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
}
