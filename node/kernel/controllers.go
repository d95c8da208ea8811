package kernel

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Controllers are the cgroup controllers that are there to be used, sorted.
type Controllers struct {
	// Version is 1 or 2.
	Version int
	Names   []string
}

// ReadControllers looks at what is mounted at root, which is /sys/fs/cgroup. Where
// that is not the one tree of version 2, each controller has a tree of its own.
func ReadControllers(root string) (Controllers, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return Controllers{}, fmt.Errorf("look at %s: %w", root, err)
	}
	if fs.Type == unix.CGROUP2_SUPER_MAGIC {
		data, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
		if err != nil {
			return Controllers{}, fmt.Errorf("read cgroup controllers: %w", err)
		}
		return Controllers{2, slices.Sorted(strings.FieldsSeq(string(data)))}, nil
	}
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup"))
	if err != nil {
		return Controllers{}, fmt.Errorf("read cgroup mounts: %w", err)
	}
	return Controllers{1, controllersOf(mounts)}, nil
}

// controllersOf returns the controllers that have a tree of version 1 mounted. Other
// options of such a mount are no controllers, and do no harm.
func controllersOf(mounts []*mountinfo.Info) []string {
	var names []string
	for _, m := range mounts {
		names = append(names, strings.Split(m.VFSOptions, ",")...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Lack is a controller that is needed and not there, and what that disables.
type Lack struct{ Controller, Disables string }

func (l Lack) String() string { return l.Controller + " (without it: " + l.Disables + ")" }

// Lacks returns what is missing of the controllers that pods need.
func (c Controllers) Lacks() []Lack {
	needed := []Lack{
		{"cpu", "no CPU requests nor limits"},
		{"cpuacct", "no CPU usage"},
		{"cpuset", "no CPUs of their own for containers"},
		{"memory", "no memory limits, no memory usage"},
	}
	if c.Version == 2 {
		// There cpu also accounts.
		needed[1] = Lack{"pids", "no limit of processes"}
	}
	return slices.DeleteFunc(needed, func(l Lack) bool { return slices.Contains(c.Names, l.Controller) })
}

// CheckControllers says what is missing. perQOS: pods are to have cgroups of their
// own, which then cannot be.
func CheckControllers(c Controllers, perQOS bool, log *slog.Logger) error {
	var errs []error
	for _, l := range c.Lacks() {
		if perQOS {
			errs = append(errs, fmt.Errorf("cgroup controller %s", l))
			continue
		}
		log.Warn("a cgroup controller is missing", "controller", l.Controller, "disables", l.Disables, "version", c.Version)
	}
	if len(errs) > 0 {
		return fmt.Errorf("missing on this machine (switch it on at boot, or go without cgroups of pods: --cgroups-per-qos=false): %w", errors.Join(errs...))
	}
	return nil
}
