package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
)

// Host is the cgroups of the machine, by their paths below the mount point, which
// begin with a slash. The zero value is the machine's own. What is not mounted any
// more is an error of each call, and nothing is made where it was.
type Host struct {
	// Mount is where the cgroups are; "" is /sys/fs/cgroup.
	Mount string
	// Units talks to systemd; nil is the machine's own.
	Units Units
}

// The names of files that tell a cgroup from any other folder.
const (
	procsFile       = "cgroup.procs"
	controllersFile = "cgroup.controllers"
)

func (h Host) mount() string { return cmp.Or(h.Mount, "/sys/fs/cgroup") }

// Version returns 1 or 2.
func (h Host) Version() (int, error) {
	if there(filepath.Join(h.mount(), controllersFile)) {
		return 2, nil
	}
	if len(h.hierarchies()) > 0 {
		return 1, nil
	}
	return 0, fmt.Errorf("no cgroups are mounted at %s", h.mount())
}

// hierarchies returns the mount points of cgroup v1, those with a name too. Where
// controllers share one, it is there under several.
func (h Host) hierarchies() []string {
	entries, err := os.ReadDir(h.mount())
	if err != nil {
		return nil // none is mounted
	}
	var list []string
	for _, e := range entries {
		dir := filepath.Join(h.mount(), e.Name())
		if _, err := os.Stat(filepath.Join(dir, procsFile)); err == nil {
			list = append(list, dir)
		}
	}
	return list
}

// controllers are those of cgroup v1 that we set, or read the use of; the engine makes
// what it needs in others.
func (h Host) controllers() ([]cgroup1.Subsystem, error) {
	all := []cgroup1.Subsystem{
		cgroup1.NewCpu(h.mount()), cgroup1.NewCpuacct(h.mount()), cgroup1.NewCpuset(h.mount()),
		cgroup1.NewMemory(h.mount()), cgroup1.NewPids(h.mount()),
	}
	if huge, err := cgroup1.NewHugetlb(h.mount()); err == nil {
		all = append(all, huge)
	}
	all = slices.DeleteFunc(all, func(s cgroup1.Subsystem) bool {
		return !there(filepath.Join(h.mount(), string(s.Name()), procsFile))
	})
	for _, name := range []cgroup1.Name{cgroup1.Cpu, cgroup1.Memory} {
		if !slices.ContainsFunc(all, func(s cgroup1.Subsystem) bool { return s.Name() == name }) {
			return nil, fmt.Errorf("cgroup controller %s is not mounted at %s", name, h.mount())
		}
	}
	return all, nil
}

// Ensure makes a cgroup and those that it is in, or finds it there, and sets its
// limits.
func (h Host) Ensure(ctx context.Context, path string, l Limits) error {
	if err := h.ensure(ctx, path, l); err != nil {
		return fmt.Errorf("cgroup %s: %w", path, err)
	}
	return nil
}

func (h Host) ensure(ctx context.Context, path string, l Limits) error {
	version, err := h.Version()
	if err != nil {
		return err
	}
	if isSlice(path) {
		// systemd is told, or it would undo them; what it has no word for follows.
		if err := h.units().Start(ctx, filepath.Base(path), l.properties(version)); err != nil {
			return err
		}
	}
	return h.write(version, path, l)
}

// Set changes the limits of a cgroup that is there. With grow none is made tighter
// than it is.
func (h Host) Set(ctx context.Context, path string, l Limits, grow bool) error {
	version, err := h.Version()
	var holds Limits
	if err == nil {
		holds, err = h.read(version, path)
	}
	if grow {
		l = l.atLeast(holds)
	}
	if err == nil && isSlice(path) {
		err = h.units().Set(ctx, filepath.Base(path), l.properties(version))
	}
	if err == nil {
		err = h.write(version, path, l)
	}
	if err != nil {
		return fmt.Errorf("limits of cgroup %s: %w", path, err)
	}
	return nil
}

// write makes the folders that are missing.
func (h Host) write(version int, path string, l Limits) error {
	if version == 2 {
		_, err := cgroup2.NewManager(h.mount(), path, l.v2(h.enabled()))
		return err
	}
	controllers, err := h.controllers()
	if err != nil {
		return err
	}
	_, err = cgroup1.New(cgroup1.StaticPath(path), l.v1(), cgroup1.WithHierarchy(func() ([]cgroup1.Subsystem, error) { return controllers, nil }))
	if err != nil {
		return err
	}
	if pids := filepath.Join(h.mount(), "pids", path, "pids.max"); l.Pids == 0 && there(pids) {
		return os.WriteFile(pids, []byte("max"), 0)
	}
	return nil
}

// enabled returns the controllers that cgroup v2 has.
func (h Host) enabled() []string {
	data, err := os.ReadFile(filepath.Join(h.mount(), controllersFile))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

// Read returns the limits that hold in a cgroup, but those of huge pages. The error
// wraps fs.ErrNotExist where there is none. On cgroup v2, shares are the least that
// come to the weight.
func (h Host) Read(path string) (Limits, error) {
	version, err := h.Version()
	if err != nil {
		return Limits{}, err
	}
	l, err := h.read(version, path)
	if err != nil {
		return l, fmt.Errorf("read limits of cgroup %s: %w", path, err)
	}
	return l, nil
}

func (h Host) read(version int, path string) (Limits, error) {
	var l Limits
	if version == 1 {
		r := reader{dir: func(controller string) string { return filepath.Join(h.mount(), controller, path) }}
		l.CPUQuota, l.CPUPeriod = r.number("cpu", "cpu.cfs_quota_us", 0), r.number("cpu", "cpu.cfs_period_us", 0)
		l.Memory = r.number("memory", "memory.limit_in_bytes", 0)
		l.CPUShares, l.Pids = r.optional("cpu", "cpu.shares"), r.optional("pids", "pids.max")
		return l, r.err
	}
	r := reader{dir: func(string) string { return filepath.Join(h.mount(), path) }}
	l.CPUQuota, l.CPUPeriod = r.number("", "cpu.max", 0), r.number("", "cpu.max", 1)
	l.Memory, l.Pids = r.number("", "memory.max", 0), r.optional("", "pids.max")
	if weight := r.optional("", "cpu.weight"); weight > 0 {
		const shares, weights = maxShares - minShares, maxWeight - minWeight
		l.CPUShares = minShares + ((weight-minWeight)*shares+weights-1)/weights
	}
	return l, r.err
}

// reader reads numbers and keeps the first error.
type reader struct {
	dir func(controller string) string
	err error
}

// number returns the field of a file, 0 for what the kernel means by no limit.
func (r *reader) number(controller, file string, field int) int64 {
	data, err := os.ReadFile(filepath.Join(r.dir(controller), file))
	fields := strings.Fields(string(data))
	if err == nil && field >= len(fields) {
		err = fmt.Errorf("%s says %q", file, data)
	}
	const unlimited = 1<<63 - 1<<16 // a page may be as large
	var n int64
	if err == nil && fields[field] != "max" {
		n, err = strconv.ParseInt(fields[field], 10, 64)
	}
	if err != nil {
		r.err = cmp.Or(r.err, err)
		return 0
	}
	if n < 0 || n >= unlimited {
		return 0
	}
	return n
}

// optional returns 0 where there is no such file.
func (r *reader) optional(controller, file string) int64 {
	if !there(filepath.Join(r.dir(controller), file)) {
		return 0
	}
	return r.number(controller, file, 0)
}

func isSlice(path string) bool { return strings.HasSuffix(path, slice) }

// there reports whether a path is there as far as one can see.
func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}
