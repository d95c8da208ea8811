package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/runtime"
)

// CgroupConfig is how pods' cgroups are kept. With its zero value each pod has one,
// below a cgroup of this root dir's own, made as the engine makes its own.
type CgroupConfig struct {
	// Off makes none. Those that are there are kept as long as their pods.
	Off bool
	// Root is the cgroup that kubepods is made in, "/" for the hierarchy's own; "" is
	// one that is named after the root dir.
	Root string
	// Driver is the one that the engine must have; "" takes the engine's.
	Driver cgroup.Driver
	// NoCPUQuota does not hold limits of CPU. CPUPeriod is that of their quota, 0 for
	// 100 ms.
	NoCPUQuota bool
	CPUPeriod  time.Duration
}

// CgroupDriver is who makes cgroups: see cgroup.Driver.
type CgroupDriver = cgroup.Driver

// CheckCgroupRoot says what is wrong with a CgroupConfig.Root.
func CheckCgroupRoot(root string) error { return cgroup.CheckRoot(root) }

// The cgroup drivers.
const (
	Cgroupfs = cgroup.Cgroupfs
	Systemd  = cgroup.Systemd
)

// root returns the cgroup that kubepods is in.
func (c CgroupConfig) root(rootDir string) string {
	if c.Root != "" {
		return c.Root
	}
	return fmt.Sprintf("/podkeeper_%x", sha256.Sum256([]byte(rootDir)))[:len("/podkeeper_")+8]
}

// podCgroups are those of the pods of this root dir.
type podCgroups struct {
	*cgroup.Tree
	cfg     CgroupConfig
	rootDir string
	list    func(context.Context) ([]runtime.Summary, error)
	entries func(dir string) ([]string, error)
}

// EnsurePod implements reconcile.Cgroups. The pod's folder says that it is ours.
func (g *podCgroups) EnsurePod(ctx context.Context, p cgroup.Pod) (parent string, err error) {
	if g.cfg.Off {
		return "", nil
	}
	if err := os.MkdirAll(filepath.Join(g.rootDir, "pods", string(p.UID)), 0o700); err != nil {
		return "", fmt.Errorf("folder of the pod: %w", err)
	}
	return g.Tree.EnsurePod(ctx, p)
}

// RemovePod implements reconcile.Cgroups.
func (g *podCgroups) RemovePod(ctx context.Context, uid types.UID) error {
	if _, err := g.Version(); err != nil && g.cfg.Off {
		return nil // a machine without cgroups
	}
	return g.Tree.RemovePod(ctx, uid)
}

// accept takes over how the engine makes cgroups, or says why pods cannot have any.
func (g *podCgroups) accept(ctx context.Context, f runtime.Features) error {
	if g.cfg.Off {
		return nil
	}
	const without = "(--cgroups-per-qos=false does without pods' cgroups)"
	driver := cgroup.Driver(f.CgroupDriver)
	switch {
	case g.cfg.Driver != "" && g.cfg.Driver != driver:
		return fmt.Errorf("--cgroup-driver is %s, that of the engine %s: give the engine's, or none to follow it", g.cfg.Driver, driver)
	case !slices.Contains(cgroup.Drivers(), driver):
		return fmt.Errorf("the engine makes no cgroups: its driver is %q %s", driver, without)
	}
	version, err := g.Version()
	if err != nil {
		return fmt.Errorf("%w %s", err, without)
	}
	if f.CgroupVersion != 0 && f.CgroupVersion != version {
		return fmt.Errorf("the engine has cgroup v%d, this machine v%d: it is not the engine's %s", f.CgroupVersion, version, without)
	}
	if err := g.foreign(ctx); err != nil {
		return err
	}
	g.Use(driver)
	return nil
}

// foreign says whose pods there are, besides ours, where ours are to be (law 6).
func (g *podCgroups) foreign(ctx context.Context) error {
	ours := make(map[types.UID]bool)
	folders, err := g.entries("pods")
	if err != nil {
		return err
	}
	for _, uid := range folders {
		ours[types.UID(uid)] = true
	}
	uids, err := g.Running(ours)
	if err != nil || len(uids) == 0 {
		return err
	}
	list, err := g.list(ctx) // a folder may be lost
	if err != nil {
		return err
	}
	for _, c := range list {
		ours[c.UID] = true
	}
	for _, uid := range uids {
		if !ours[uid] {
			return fmt.Errorf("cgroup kubepods in %s holds pods that are not ours, such as the one with uid %s: if a kubelet or another agent runs here, name a place of our own with --cgroup-root", g.cfg.root(g.rootDir), uid)
		}
	}
	return nil
}

// keepPeriod is how often it is looked whether cgroups are as they are to be.
const keepPeriod = time.Minute

// keep does so until ctx ends. What cannot be done is said once, until it changes.
func (g *podCgroups) keep(ctx context.Context, log *slog.Logger) error {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(keepPeriod):
		}
		if g.cfg.Off {
			continue
		}
		text := ""
		if err := g.Keep(ctx); err != nil && ctx.Err() == nil {
			text = err.Error()
		}
		switch {
		case text == said:
		case text != "":
			log.Warn("the cgroups of pods cannot be kept as they are to be", "err", text)
		default:
			log.Info("the cgroups of pods can be kept again")
		}
		said = text
	}
}

// drop removes what is left of a tree in which no pod is.
func (g *podCgroups) drop(ctx context.Context) error {
	if _, err := g.Version(); err != nil {
		return nil // there is nothing then
	}
	err := g.Drop(ctx)
	if g.cfg.Root == "" && err == nil {
		for _, d := range cgroup.Drivers() {
			err = errors.Join(err, g.Remove(ctx, d.Path(g.cfg.root(g.rootDir))))
		}
	}
	return err
}
