package gc

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
)

// Reading is what there is of what a signal is about.
type Reading struct{ Available, Capacity int64 }

// Readings returns what can be told of the node, by signal.
func Readings(n stats.Node) map[Signal]Reading {
	out := make(map[Signal]Reading)
	if m := n.Memory; m.Available != nil && m.Capacity != nil {
		out[MemoryAvailable] = Reading{*m.Available, *m.Capacity}
	}
	if p := n.PIDs; p.Max != nil && p.Running != nil {
		out[PIDAvailable] = Reading{max(*p.Max-*p.Running, 0), *p.Max}
	}
	of := func(fs *stats.Filesystem, available, inodesFree Signal) {
		if fs == nil {
			return
		}
		out[available] = Reading{fs.Available, fs.Capacity}
		if fs.Inodes != nil && fs.InodesFree != nil {
			out[inodesFree] = Reading{*fs.InodesFree, *fs.Inodes}
		}
	}
	of(n.NodeFS, NodeFSAvailable, NodeFSInodesFree)
	of(n.ImageFS, ImageFSAvailable, ImageFSInodesFree)
	of(n.ContainerFS, ContainerFSAvailable, ContainerFSInodesFree)
	return out
}

// History is what one assessment hands on to the next. Its zero value knows
// nothing of before.
type History struct {
	// Began is the first look.
	Began time.Time
	// Met has the thresholds that are met, by their place in the policy.
	Met map[int]Standing
	// Last and Said have when a threshold of each condition was last met, and what was
	// said of it.
	Last map[pod.Cause]time.Time
	Said map[pod.Cause]string
}

// Standing is how long a threshold has been met, and whether pods were to be ended
// for it: then more than the threshold has to be left.
type Standing struct {
	Since time.Time
	Due   bool
}

// Condition is how the node is off for one thing.
type Condition struct {
	// Message is why the node counts as short of it; "" where it does not.
	Message string
	// Over is when the transition period will have passed since it was short of it, or
	// since the first look; zero where it is short of it now.
	Over time.Time
}

// Shortfall is a threshold for which something has to be given up.
type Shortfall struct {
	Threshold
	Reading
}

// Assessment is what follows from one look at the node.
type Assessment struct {
	Conditions map[pod.Cause]Condition
	// Due are the thresholds to act for, the most urgent first: memory, which is
	// short soonest, then hard ones.
	Due []Shortfall
}

// Assess judges readings by the policy and by what was seen before. What cannot be
// told is not short.
func (p EvictionPolicy) Assess(readings map[Signal]Reading, before History, now time.Time) (Assessment, History) {
	next := History{
		Began: before.Began, Met: make(map[int]Standing),
		Last: make(map[pod.Cause]time.Time), Said: make(map[pod.Cause]string),
	}
	if next.Began.IsZero() {
		next.Began = now
	}
	var a Assessment
	short := make(map[pod.Cause]bool)
	for i, t := range p.Thresholds {
		r, known := readings[t.Signal]
		was, met := before.Met[i]
		needed := t.Amount.Of(r.Capacity)
		if met && was.Due {
			needed += t.Reclaim.Of(r.Capacity)
		}
		if !known || r.Available >= needed {
			continue
		}
		if !met {
			was.Since = now
		}
		was.Due = now.Sub(was.Since) >= t.Grace
		next.Met[i] = was
		if was.Due {
			a.Due = append(a.Due, Shortfall{t, r})
		}
		if c := t.Signal.cause(); !short[c] {
			short[c], next.Last[c] = true, now
			next.Said[c] = fmt.Sprintf("%s is %s, the threshold is %s", t.Signal, t.Signal.show(r.Available), t.show(r.Capacity))
		}
	}
	slices.SortStableFunc(a.Due, func(a, b Shortfall) int {
		return cmp.Or(first(a.Signal == MemoryAvailable, b.Signal == MemoryAvailable), first(!a.Soft, !b.Soft))
	})
	a.Conditions = p.conditions(short, before, next, now)
	return a, next
}

// conditions also hands on what was seen of those that do not hold now.
func (p EvictionPolicy) conditions(short map[pod.Cause]bool, before, next History, now time.Time) map[pod.Cause]Condition {
	out := make(map[pod.Cause]Condition)
	for _, c := range []pod.Cause{pod.MemoryPressure, pod.DiskPressure, pod.PIDPressure} {
		if short[c] {
			out[c] = Condition{Message: next.Said[c]}
			continue
		}
		last, ever := before.Last[c]
		if !ever {
			out[c] = Condition{Over: next.Began.Add(p.Transition)}
			continue
		}
		over := Condition{Over: last.Add(p.Transition)}
		if now.Before(over.Over) {
			over.Message = fmt.Sprintf("%s; that is over, but not yet for %s", before.Said[c], p.Transition)
		}
		out[c], next.Last[c], next.Said[c] = over, last, before.Said[c]
	}
	return out
}

// first orders what has something before what has not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// LowDiskMessages say why no new pod is let onto the disk; "" where one may be. root is
// about the filesystem of the root dir, images about that of the engine's images.
func (p EvictionPolicy) LowDiskMessages(n stats.Node) (root, images string) {
	low := func(fs *stats.Filesystem) string {
		if fs == nil || fs.Available >= p.LowDisk {
			return ""
		}
		return fmt.Sprintf("%s are left on the filesystem of %s, no pod is admitted below %s (--low-diskspace-threshold-mb)",
			showBytes(fs.Available), fs.Path, showBytes(p.LowDisk))
	}
	return low(n.NodeFS), low(n.ImageFS)
}
