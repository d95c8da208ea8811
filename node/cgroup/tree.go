package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is what the cgroup of a pod is made from.
type Pod struct {
	UID   types.UID
	Class v1.PodQOSClass
	Limits
}

// Tree is the cgroups of one agent's pods. Its methods may be called from several
// goroutines.
type Tree struct {
	Host
	root string

	mu sync.Mutex
	// driver is who makes them now; "" before anybody said so, when none is made.
	driver Driver
	// shares are those of the burstable pods that this process knows.
	shares map[types.UID]int64
	node   Limits
}

// NewTree returns the tree below a cgroup, "/" for the hierarchy's own. It does no I/O.
func NewTree(h Host, root string) *Tree {
	return &Tree{Host: h, root: root, shares: make(map[types.UID]int64)}
}

// Use has cgroups made by a driver from now on. Those that are there stay.
func (t *Tree) Use(d Driver) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.driver = d
}

// Path returns where the cgroup of all pods lies; "" before the driver is known.
func (t *Tree) Path() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.path("")
}

func (t *Tree) path(class v1.PodQOSClass) string {
	if t.driver == "" {
		return ""
	}
	return t.driver.Path(kubepods(t.root, class)...)
}

// EnsurePod makes the cgroup of a pod, or finds it there, sets its limits, and returns
// what the engine is to be told as the parent of its containers.
func (t *Tree) EnsurePod(ctx context.Context, p Pod) (parent string, err error) {
	driver, err := t.ready(ctx, p)
	if err != nil {
		return "", err
	}
	path := podPath(driver, t.root, p.Class, p.UID)
	if err := t.Ensure(ctx, path, p.Limits); err != nil {
		return "", err
	}
	return driver.Parent(path), nil
}

// ready has what a pod's cgroup lies in be there.
func (t *Tree) ready(ctx context.Context, p Pod) (Driver, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.driver == "" {
		return "", errors.New("cgroup of the pod: the engine has not said who makes its cgroups")
	}
	dirs, err := t.folders(t.path(v1.PodQOSBestEffort))
	if err == nil && len(dirs) == 0 {
		err = t.keep(ctx)
	}
	if err == nil {
		err = t.know(ctx, p)
	}
	return t.driver, err
}

// SetPod changes the limits of a pod's cgroup that an engine was told of as a parent.
// With grow none is made tighter than it is.
func (t *Tree) SetPod(ctx context.Context, parent string, p Pod, grow bool) error {
	if err := t.Set(ctx, ParentPath(parent), p.Limits, grow); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.driver == "" {
		return nil
	}
	return t.know(ctx, p)
}

// RemovePod removes the cgroup of a pod that is ours, by whichever driver it was made,
// and kills what is left in it. One that is gone is success.
func (t *Tree) RemovePod(ctx context.Context, uid types.UID) error {
	t.mu.Lock()
	delete(t.shares, uid)
	t.mu.Unlock()
	var errs []error
	for _, d := range Drivers() {
		for _, class := range []v1.PodQOSClass{v1.PodQOSGuaranteed, v1.PodQOSBurstable, v1.PodQOSBestEffort} {
			errs = append(errs, t.Remove(ctx, podPath(d, t.root, class, uid)))
		}
	}
	return errors.Join(errs...)
}

// Drop removes the cgroups of all pods and of the classes where no pod is in them.
func (t *Tree) Drop(ctx context.Context) error {
	for _, d := range Drivers() {
		all := d.Path(kubepods(t.root, "")...)
		for _, class := range []v1.PodQOSClass{v1.PodQOSGuaranteed, v1.PodQOSBurstable, v1.PodQOSBestEffort} {
			if uids, err := t.pods(d, class); err != nil || len(uids) > 0 {
				return err
			}
		}
		if busy, err := t.busy(all); err != nil || busy {
			return err
		}
		if err := t.Remove(ctx, all); err != nil {
			return err
		}
	}
	return nil
}

// SetNode sets, now and again where somebody changes them, the limits of all pods
// together.
func (t *Tree) SetNode(ctx context.Context, l Limits) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.node = l
	if t.driver == "" {
		return nil
	}
	return t.keep(ctx)
}

// Keep makes the cgroups of all pods and of the classes be there with what they are to
// have. The first pod has it done too.
func (t *Tree) Keep(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.driver == "" {
		return nil
	}
	if err := t.keep(ctx); err != nil {
		return err
	}
	unknown, err := t.unknown()
	if err != nil || unknown {
		return err // some pod of before is still to be heard of
	}
	return t.hold(ctx, t.path(v1.PodQOSBurstable), Limits{CPUShares: t.burstable(t.idle)})
}

func (t *Tree) keep(ctx context.Context) error {
	if err := t.hold(ctx, t.path(""), t.node); err != nil {
		return err
	}
	if err := t.hold(ctx, t.path(v1.PodQOSBestEffort), Limits{CPUShares: minShares}); err != nil {
		return err
	}
	burstable := t.path(v1.PodQOSBurstable)
	var l Limits // shares as they are
	if _, err := t.Read(burstable); errors.Is(err, fs.ErrNotExist) {
		l.CPUShares = minShares
	}
	return t.hold(ctx, burstable, l)
}

// hold makes a cgroup have these limits; mostly it has.
func (t *Tree) hold(ctx context.Context, path string, l Limits) error {
	have, err := t.Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if l.CPUShares == 0 {
		have.CPUShares = 0
	}
	same := l
	same.HugePages = nil
	page := int64(os.Getpagesize())
	same.Memory = same.Memory / page * page // as the kernel counts it
	same.CPUShares, have.CPUShares = Weight(l.CPUShares), Weight(have.CPUShares)
	if err == nil && same.Equal(have) {
		return nil
	}
	return t.Ensure(ctx, path, l)
}

// know counts a burstable pod in, and gives its class at least as much as its pods
// ask for together.
func (t *Tree) know(ctx context.Context, p Pod) error {
	if p.Class != v1.PodQOSBurstable {
		return nil
	}
	t.shares[p.UID] = p.CPUShares
	path := t.path(p.Class)
	have, err := t.Read(path)
	sum := t.burstable(func(types.UID) bool { return false })
	if err == nil && Weight(have.CPUShares) < Weight(sum) {
		err = t.Ensure(ctx, path, Limits{CPUShares: sum})
	}
	return err
}

// burstable returns what burstable pods ask for together, but those that are left out.
func (t *Tree) burstable(out func(types.UID) bool) int64 {
	sum := int64(0)
	for uid, shares := range t.shares {
		if !out(uid) {
			sum += shares
		}
	}
	return min(max(sum, minShares), maxShares)
}

// idle reports whether nothing runs in the cgroup of a burstable pod: it is over.
func (t *Tree) idle(uid types.UID) bool {
	path := podPath(t.driver, t.root, v1.PodQOSBurstable, uid)
	for _, file := range []string{filepath.Join(t.mount(), path, "pids.current"), filepath.Join(t.mount(), "pids", path, "pids.current")} {
		if data, err := os.ReadFile(file); err == nil {
			return strings.TrimSpace(string(data)) == "0"
		}
	}
	return false
}

// unknown reports whether there are burstable pods that this process has not heard of.
func (t *Tree) unknown() (bool, error) {
	uids, err := t.pods(t.driver, v1.PodQOSBurstable)
	return slices.ContainsFunc(uids, func(uid types.UID) bool { _, known := t.shares[uid]; return !known }), err
}

// pods returns whose cgroups are directly in the one of a class.
func (t *Tree) pods(d Driver, class v1.PodQOSClass) ([]types.UID, error) {
	dirs, err := t.folders(d.Path(kubepods(t.root, class)...))
	if err != nil {
		return nil, err
	}
	var uids []types.UID
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list cgroups of pods: %w", err)
		}
		for _, e := range entries {
			if uid := uidOf(e.Name()); e.IsDir() && uid != "" && !slices.Contains(uids, uid) {
				uids = append(uids, uid)
			}
		}
	}
	return uids, nil
}

// Running returns the pods, less those that are ours, that have processes in their
// cgroups.
func (t *Tree) Running(ours map[types.UID]bool) ([]types.UID, error) {
	var running []types.UID
	for _, d := range Drivers() {
		for _, class := range []v1.PodQOSClass{v1.PodQOSGuaranteed, v1.PodQOSBurstable, v1.PodQOSBestEffort} {
			uids, err := t.pods(d, class)
			if err != nil {
				return nil, err
			}
			for _, uid := range uids {
				if ours[uid] {
					continue
				}
				busy, err := t.busy(podPath(d, t.root, class, uid))
				if err != nil {
					return nil, err
				}
				if busy {
					running = append(running, uid)
				}
			}
		}
	}
	slices.Sort(running)
	return slices.Compact(running), nil
}

// busy reports whether a process is in a cgroup or in one below it.
func (t *Tree) busy(path string) (bool, error) {
	dirs, err := t.folders(path)
	busy := false
	for _, dir := range dirs {
		err = errors.Join(err, filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == procsFile {
				var pids []int
				pids, err = processes(filepath.Dir(at))
				busy = len(pids) > 0
			}
			switch {
			case busy:
				return fs.SkipAll
			case errors.Is(err, fs.ErrNotExist):
				return nil
			}
			return err
		}))
		if busy {
			return true, nil
		}
	}
	return false, err
}
