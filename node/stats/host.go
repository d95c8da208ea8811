package stats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Host reads what [Reader.Node] leaves. Nothing of it is needed for a decision.
func (r *Reader) Host() Host {
	var h Host
	text, err := os.ReadFile("/proc/stat")
	if err == nil {
		h.Booted, err = booted(string(text))
	}
	r.note("when the machine started", err)
	if mounts, err := r.hierarchies(); err == nil {
		everything := root(mounts)
		h.All, h.Network, err = r.read(everything, os.Getpid())
		h.All = everything.whole(h.All)
		r.note("what the machine uses", err)
	}
	for what, into := range map[string]**Pressure{"cpu": &h.All.CPUPressure, "memory": &h.All.MemoryPressure, "io": &h.All.IOPressure} {
		if p, err := readPressure(filepath.Join("/proc/pressure", what)); err == nil {
			*into = p
		} else if !errors.Is(err, os.ErrNotExist) {
			r.note("the pressure of "+what, err)
		}
	}
	text, err = os.ReadFile("/proc/meminfo")
	if err == nil {
		h.Swap, h.SwapFree = meminfo(string(text), "SwapTotal:"), meminfo(string(text), "SwapFree:")
	}
	r.note("the machine's swap", err)
	return h
}

// Cgroup reads the one at a path as [Cgroup.Path] has it. ok is false where there is
// none.
func (r *Reader) Cgroup(path string) (c Cgroup, ok bool) {
	mounts, err := r.hierarchies()
	if err != nil {
		return Cgroup{}, false
	}
	p := at(mounts, path)
	c, _, err = r.read(p, 0)
	return p.whole(c), err == nil && c.MemoryUsage != nil
}

// Own reads the cgroup of this process. ok is false where it has none of its own.
func (r *Reader) Own() (c Cgroup, ok bool) {
	mounts, err := r.hierarchies()
	if err != nil {
		return Cgroup{}, false
	}
	file, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Cgroup{}, false
	}
	p := placeOf(string(file), mounts)
	if dir := p.path(mounts); dir == "" || dir == "/" {
		return Cgroup{}, false
	}
	c, _, err = r.read(p, 0)
	return p.whole(c), err == nil
}

// booted reads the line "btime <seconds>" of /proc/stat (proc(5)).
func booted(text string) (time.Time, error) {
	for line := range strings.Lines(text) {
		if seconds, ok := strings.CutPrefix(line, "btime "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
			return time.Unix(n, 0), err
		}
	}
	return time.Time{}, errors.New("/proc/stat does not say")
}

// meminfo returns the bytes of a line of /proc/meminfo (proc(5)); nil where it has none.
func meminfo(text, name string) *int64 {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name {
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return new(kib << 10)
			}
		}
	}
	return nil
}

// readPressure reads one of the kernel's files about stalls; what it has no line about
// never stalled.
func readPressure(file string) (*Pressure, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parsePressure(string(text))
}

func parsePressure(text string) (*Pressure, error) {
	var p Pressure
	for line := range strings.Lines(text) {
		var what string
		var d Stall
		var total int64
		if _, err := fmt.Sscanf(line, "%s avg10=%f avg60=%f avg300=%f total=%d", &what, &d.Avg10, &d.Avg60, &d.Avg300, &total); err != nil {
			return nil, fmt.Errorf("pressure %q: %w", line, err)
		}
		d.Total = time.Duration(total) * time.Microsecond
		switch what {
		case "some":
			p.Some = d
		case "full":
			p.Full = d
		}
	}
	return &p, nil
}
