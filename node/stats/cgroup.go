package stats

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/cadvisor/lib/container/libcontainer"
)

// place is one cgroup: its folder by controller, or the one folder under the name
// "" where the tree is unified.
type place map[string]string

// root is the cgroup that everything is in.
func root(mounts map[string]string) place {
	p := make(place)
	for controller, mount := range mounts {
		if controller != "pids" { // which counts nothing there
			p[controller] = mount
		}
	}
	return p
}

// parent returns the cgroup that this one is in.
func (p place) parent() place {
	up := make(place, len(p))
	for controller, dir := range p {
		up[controller] = path.Dir(dir)
	}
	return up
}

// named reports whether the folder's own name has one of the texts in it.
func (p place) named(texts ...string) bool {
	for _, dir := range p {
		for _, text := range texts {
			if strings.Contains(path.Base(dir), text) {
				return true
			}
		}
	}
	return false
}

// placeOf returns the cgroup of a process from its file in /proc, which is exact
// for every driver and layout. A controller that is not mounted is left out.
func placeOf(cgroupFile string, mounts map[string]string) place {
	p := make(place)
	for line := range strings.Lines(cgroupFile) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, dir, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		for controller := range strings.SplitSeq(controllers, ",") {
			if mount, ok := mounts[controller]; ok {
				p[controller] = path.Join(mount, dir)
			}
		}
	}
	return p
}

// find returns the cgroup of a container by one of its processes. By now that
// may be another's, so the cgroup must bear the container's id.
func (r *Reader) find(id string, pid int) (place, error) {
	mounts, err := r.hierarchies()
	if err != nil {
		return nil, err
	}
	file, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return nil, err
	}
	p := placeOf(string(file), mounts)
	if !p.named(id) {
		return nil, fmt.Errorf("process %d is not of container %s: %w", pid, id, os.ErrNotExist)
	}
	return p, nil
}

// at returns the cgroup at a path below the mount points.
func at(mounts map[string]string, dir string) place {
	p := make(place)
	for controller, mount := range mounts {
		p[controller] = path.Join(mount, dir)
	}
	return p
}

// path returns where it lies below the mount points.
func (p place) path(mounts map[string]string) string {
	for _, controller := range []string{"memory", "cpu", ""} {
		if dir, ok := p[controller]; ok {
			return path.Join("/", strings.TrimPrefix(dir, mounts[controller]))
		}
	}
	return ""
}

// read returns what is counted for a cgroup, and with the process of a network,
// what went through that.
func (r *Reader) read(p place, pid int) (Cgroup, *Network, error) {
	mounts, err := r.hierarchies()
	if err != nil {
		return Cgroup{}, nil, err
	}
	manager, err := libcontainer.NewCgroupManager("", p)
	if err != nil {
		return Cgroup{}, nil, err
	}
	got, err := libcontainer.NewHandler(manager, "/", pid, counted).GetStats()
	if err != nil {
		return Cgroup{}, nil, err
	}
	c := fromModel(got, p)
	c.Path = p.path(mounts)
	c.Processes = processes(p)
	if got.Network == nil || len(got.Network.Interfaces) == 0 {
		return c, nil, nil
	}
	return c, network(got.Network.Interfaces), nil
}

// processes reads the one number that the library has only together with every
// open file of every process.
func processes(p place) *int64 {
	for _, controller := range []string{"pids", ""} {
		if dir, ok := p[controller]; ok {
			if n, err := readNumber(filepath.Join(dir, "pids.current")); err == nil {
				return &n
			}
		}
	}
	return nil
}

// OOMKills returns how many processes in a running container the kernel has killed
// for want of memory. ok is false where that cannot be told.
func (r *Reader) OOMKills(c Process) (n int64, ok bool) {
	p, err := r.find(c.ID, c.PID)
	if err != nil {
		return 0, false
	}
	// The kernel counts them where the victims are, of whichever limit it was.
	for controller, file := range map[string]string{"memory": "memory.oom_control", "": "memory.events"} {
		if dir, ok := p[controller]; ok {
			data, _ := os.ReadFile(filepath.Join(dir, file))
			return oomKills(string(data))
		}
	}
	return 0, false
}

// oomKills reads the line "oom_kill <n>", which both versions have.
func oomKills(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

func readNumber(file string) (int64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
}

// gone reports whether what was to be read went away meanwhile, which is no fault.
func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, errNoProcess)
}
