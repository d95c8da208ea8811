package stats

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/cadvisor/lib/machine"
)

// Paths are the folders whose filesystems are looked at; "" is one that is not
// known.
type Paths struct {
	// Root is the agent's root dir, Images the engine's data.
	Root, Images string
}

// Node reads what the machine has and uses. It costs a few files of the kernel and
// a call for each filesystem.
func (r *Reader) Node(paths Paths) Node {
	n := Node{Time: time.Now()}
	memory, all := r.memory()
	n.Memory, n.CPU = memory, all.CPU
	var err error
	n.PIDs, err = pids()
	r.note("the number of processes", err)
	n.NodeFS = r.filesystem("the filesystem of the root dir", paths.Root)
	n.ImageFS = r.filesystem("the filesystem of the engine", paths.Images)
	n.ContainerFS = n.ImageFS
	return n
}

// memory returns what is known of the machine's memory, and of everything that runs.
func (r *Reader) memory() (NodeMemory, Cgroup) {
	var m NodeMemory
	capacity, err := machine.GetMachineMemoryCapacity()
	r.note("the machine's memory", err)
	if err == nil {
		m.Capacity = new(int64(capacity))
	}
	all, err := r.machine()
	r.note("what the machine uses", err)
	m.WorkingSet = all.WorkingSet
	if m.Capacity != nil && m.WorkingSet != nil {
		m.Available = new(max(*m.Capacity-*m.WorkingSet, 0))
	}
	return m, all
}

// machine reads the root of all cgroups.
func (r *Reader) machine() (Cgroup, error) {
	mounts, err := r.hierarchies()
	if err != nil {
		return Cgroup{}, err
	}
	all, _, err := r.read(root(mounts), 0)
	return all, err
}

// pids counts processes and threads: a thread takes a pid, too.
func pids() (PIDs, error) {
	var p PIDs
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		most, err := readNumber(file)
		if err != nil {
			return PIDs{}, err
		}
		if p.Max == nil || most < *p.Max {
			p.Max = &most
		}
	}
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return PIDs{}, err
	}
	running, err := scheduled(string(data))
	if err != nil {
		return PIDs{}, err
	}
	p.Running = &running
	return p, nil
}

// scheduled reads the number of all that can be scheduled, the second half of the
// fourth field of /proc/loadavg (proc(5)).
func scheduled(loadavg string) (int64, error) {
	fields := strings.Fields(loadavg)
	if len(fields) > 3 {
		if _, all, ok := strings.Cut(fields[3], "/"); ok {
			return strconv.ParseInt(all, 10, 64)
		}
	}
	return 0, fmt.Errorf("load average %q: want five fields", loadavg)
}
