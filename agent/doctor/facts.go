package doctor

import "github.com/podkeeper/podkeeper/runtime"

// Facts are what was found. They hold plain data only, so that a report of them
// can be written down and read again; texts of errors are for people.
type Facts struct {
	// UID is whose eyes these are. CanProtect: a process can be made less likely to
	// be killed for memory than it was started.
	UID        int
	CanProtect bool
	Engine     Engine
	Cgroups    Cgroups
	// Settings are the kernel's that a kubelet sets.
	Settings []Setting
	Ports    []Port
	Inotify  Inotify
	Disks    []Disk
	// Swap is in bytes.
	Swap int64
	// SCTP: the kernel knows the protocol.
	SCTP bool
	// NoQuotas is why the root dir's filesystem cannot limit folders; "" where it can.
	NoQuotas string
	// HugePages are those set aside, in bytes, by the resource of their size.
	HugePages map[string]int64
}

// Engine is the container engine.
type Engine struct {
	Address string
	// Problem is why it does not answer; "" where it does, and only then are its
	// features known. Denied: it is there, and we may not speak to it.
	Problem  string
	Denied   bool
	Features runtime.Features
}

// Cgroups are the machine's.
type Cgroups struct {
	// Problem is why they cannot be looked at.
	Problem string
	Version int
	Lacks   []Lack
	// Systemd runs the machine.
	Systemd bool
}

// Lack is a controller that is not there, and what that disables.
type Lack struct{ Controller, Disables string }

// Setting is a kernel parameter. Problem is why it could not be read.
type Setting struct {
	Name       string
	Have, Want int
	Problem    string
}

// Port is one of the TCP ports that a kubelet serves.
type Port struct {
	Port int
	// Taken: somebody listens there.
	Taken bool
	// Process is who, as far as that may be known.
	Process string
	PID     int
}

// Inotify is how changes of folders are noticed.
type Inotify struct {
	// Problem is why no instance can be had.
	Problem string
	// Instances, those Used (-1 is unknown) and Watches are each user's; 0 is unknown.
	Instances, Used, Watches int
}

// Disk is a filesystem in which something of ours grows.
type Disk struct {
	Of, Path string
	// Problem is why it could not be looked at.
	Problem                      string
	Available, Capacity          int64 // bytes
	InodesAvailable, InodesTotal int64 // 0 in total is no such limit
}
