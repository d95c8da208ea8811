package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
)

// Processes returns the ids of the processes of a cgroup, less those in cgroups below
// it. On cgroup v1 it is the memory controller's that counts. The error wraps
// fs.ErrNotExist where there is no such cgroup.
func (h Host) Processes(path string) ([]int, error) {
	version, err := h.Version()
	dir := filepath.Join(h.mount(), path)
	if version == 1 {
		dir = filepath.Join(h.mount(), "memory", path)
	}
	var pids []int
	if err == nil {
		pids, err = processes(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("processes of cgroup %s: %w", path, err)
	}
	return pids, nil
}

// Move puts a process, with all of its threads, into a cgroup that is there. One that
// has ended is syscall.ESRCH; a kernel thread that cannot leave is syscall.EINVAL.
func (h Host) Move(path string, pid int) error {
	version, err := h.Version()
	if err == nil {
		err = h.move(version, path, pid)
	}
	if err != nil {
		return fmt.Errorf("move process %d to cgroup %s: %w", pid, path, err)
	}
	return nil
}

func (h Host) move(version int, path string, pid int) error {
	if version == 2 {
		m, err := cgroup2.Load(path, cgroup2.WithMountpoint(h.mount()))
		if err != nil {
			return err
		}
		return m.AddProc(uint64(pid))
	}
	controllers, err := h.controllers()
	if err != nil {
		return err
	}
	c, err := cgroup1.Load(cgroup1.StaticPath(path), cgroup1.WithHierarchy(func() ([]cgroup1.Subsystem, error) { return controllers, nil }))
	if err != nil {
		return err
	}
	return c.AddProc(uint64(pid))
}

// removeTime is how long killed processes may take to be gone.
const removeTime = 10 * time.Second

// Remove removes a cgroup and all that are in it, in every hierarchy. What still runs
// there is killed. One that is gone is success.
func (h Host) Remove(ctx context.Context, path string) error {
	if path == "/" || filepath.Clean(path) != path {
		return fmt.Errorf("remove cgroup %q: %w", path, fs.ErrInvalid)
	}
	dirs, err := h.folders(path)
	if err != nil || len(dirs) == 0 {
		return err
	}
	if isSlice(path) {
		if err := h.units().Stop(ctx, filepath.Base(path)); err != nil {
			return fmt.Errorf("remove cgroup %s: %w", path, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	for _, dir := range dirs {
		if err := clear(ctx, dir); err != nil {
			return fmt.Errorf("remove cgroup %s: %w", path, err)
		}
	}
	return nil
}

// folders returns the folders that a cgroup has, one in each hierarchy.
func (h Host) folders(path string) ([]string, error) {
	version, err := h.Version()
	if err != nil {
		return nil, err
	}
	roots := []string{h.mount()}
	if version == 1 {
		roots = h.hierarchies()
	}
	var dirs []string
	for _, root := range roots {
		if dir := filepath.Join(root, path); there(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// clear kills what runs in a folder of cgroups and removes it, the innermost first. A
// process is in its cgroup until it is gone.
func clear(ctx context.Context, dir string) error {
	const first, most = time.Millisecond, 100 * time.Millisecond
	for delay := first; ; delay = min(2*delay, most) {
		left, err := prune(dir)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return fmt.Errorf("processes %v do not end: %w", left, err)
		}
	}
}

// prune does so once, and returns what it killed.
func prune(dir string) (killed []int, err error) {
	var dirs []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, path := range slices.Backward(dirs) {
		pids, failed := processes(path)
		for _, pid := range pids {
			// 0 stands for one that cannot be seen from here.
			if pid > 1 && pid != os.Getpid() {
				failed = errors.Join(failed, kill(pid))
				killed = append(killed, pid)
			}
		}
		if failed == nil {
			failed = syscall.Rmdir(path)
		}
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return killed, err
}

func kill(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}

func processes(dir string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join(dir, procsFile))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, line := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
