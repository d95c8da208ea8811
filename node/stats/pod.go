package stats

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// errNoProcess is what reading a file of a process says that ended meanwhile.
const errNoProcess = unix.ESRCH

// Target is a pod to read, as the engine has it.
type Target struct {
	UID types.UID
	// Sandbox holds the pod's network.
	Sandbox Process
	// HostNetwork: it has none of its own.
	HostNetwork bool
	// Containers that run, by name.
	Containers map[string]Process
}

// Process is a running container: its id, and the main process on the host.
type Process struct {
	ID  string
	PID int
}

// Pod reads what the kernel counts for a pod. What ended meanwhile, and what cannot
// be read, is not known. It walks through no folder: RootFS, Logs and Volumes are
// left to the walker.
//
// A pod that has a cgroup of its own is what that says, and any other the sum of
// its containers and its sandbox.
func (r *Reader) Pod(t Target) Pod {
	p := Pod{UID: t.UID, Time: time.Now(), Containers: make(map[string]Container, len(t.Containers))}
	sum := new(total)
	var own place
	var fault error
	look := func(c Process, network bool) Cgroup {
		if c.PID == 0 {
			sum.unknown = true
			return Cgroup{}
		}
		at, err := r.find(c.ID, c.PID)
		if err != nil {
			sum.unknown = true
			if !gone(err) {
				fault = err
			}
			return Cgroup{}
		}
		if up := at.parent(); up.named(string(t.UID), strings.ReplaceAll(string(t.UID), "-", "_")) {
			own = up
		}
		pid := 0
		if network {
			pid = c.PID
		}
		got, through, err := r.read(at, pid)
		if err != nil && !gone(err) {
			fault = err
		}
		if network {
			p.Network = through
		}
		sum.add(got)
		return got
	}
	p.Sandbox = look(t.Sandbox, !t.HostNetwork)
	for name, c := range t.Containers {
		p.Containers[name] = Container{Cgroup: look(c, false)}
	}
	p.Cgroup = sum.cgroup()
	if own != nil {
		got, _, err := r.read(own, 0)
		if err == nil {
			if got = own.whole(got); got.PageFaults == nil {
				all := sum.cgroup()
				got.PageFaults, got.MajorFaults = all.PageFaults, all.MajorFaults
			}
			p.Cgroup = got
		} else if !gone(err) {
			fault = err
		}
	}
	r.note("what pod "+string(t.UID)+" uses", fault)
	return p
}

// total adds up cgroups. A sum with an unknown part is unknown.
type total struct {
	Cgroup
	unknown bool
	some    bool
}

func (t *total) add(c Cgroup) {
	if !t.some {
		// What has no sum is of nobody.
		c.Path, c.Throttled, c.Peak, c.CPUPressure, c.MemoryPressure, c.IOPressure = "", nil, nil, nil, nil, nil
		t.Cgroup, t.some = c, true
		return
	}
	add(&t.CPU, c.CPU)
	add(&t.CPUUser, c.CPUUser)
	add(&t.CPUSystem, c.CPUSystem)
	for was, more := range map[**int64]*int64{
		&t.WorkingSet: c.WorkingSet, &t.MemoryUsage: c.MemoryUsage, &t.RSS: c.RSS, &t.Cache: c.Cache, &t.Mapped: c.Mapped,
		&t.Kernel: c.Kernel, &t.Swap: c.Swap, &t.LimitHits: c.LimitHits, &t.PageFaults: c.PageFaults, &t.MajorFaults: c.MajorFaults,
		&t.Processes: c.Processes,
	} {
		add(was, more)
	}
}

func (t *total) cgroup() Cgroup {
	if t.unknown {
		return Cgroup{}
	}
	return t.Cgroup
}

func add[N int64 | time.Duration](sum **N, n *N) {
	if *sum == nil || n == nil {
		*sum = nil
		return
	}
	*sum = new(**sum + *n)
}
