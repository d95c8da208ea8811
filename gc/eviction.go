package gc

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/pod"
)

// Signal names something that the node can run short of, in the kubelet's words.
type Signal string

// The signals. With our engines the writable layers of containers lie with the
// images, so that those of containerfs say what those of imagefs do.
const (
	MemoryAvailable       Signal = "memory.available"
	NodeFSAvailable       Signal = "nodefs.available"
	NodeFSInodesFree      Signal = "nodefs.inodesFree"
	ImageFSAvailable      Signal = "imagefs.available"
	ImageFSInodesFree     Signal = "imagefs.inodesFree"
	ContainerFSAvailable  Signal = "containerfs.available"
	ContainerFSInodesFree Signal = "containerfs.inodesFree"
	PIDAvailable          Signal = "pid.available"
)

// Signals returns all of them.
func Signals() []Signal {
	return []Signal{
		MemoryAvailable, NodeFSAvailable, NodeFSInodesFree, ImageFSAvailable, ImageFSInodesFree,
		ContainerFSAvailable, ContainerFSInodesFree, PIDAvailable,
	}
}

// cause returns the condition of the node that the signal makes.
func (s Signal) cause() pod.Cause {
	switch s {
	case MemoryAvailable:
		return pod.MemoryPressure
	case PIDAvailable:
		return pod.PIDPressure
	default:
		return pod.DiskPressure
	}
}

// inodes reports whether the signal counts inodes instead of bytes.
func (s Signal) inodes() bool {
	return s == NodeFSInodesFree || s == ImageFSInodesFree || s == ContainerFSInodesFree
}

// resource is what the node is low on, as messages of a kubelet call it.
func (s Signal) resource() string {
	switch {
	case s == MemoryAvailable:
		return "memory"
	case s == PIDAvailable:
		return "pids"
	case s.inodes():
		return "inodes"
	default:
		return "ephemeral-storage"
	}
}

// show writes an amount of what the signal is about.
func (s Signal) show(n int64) string {
	if s == PIDAvailable || s.inodes() {
		return strconv.FormatInt(n, 10)
	}
	return showBytes(n)
}

// showBytes writes bytes with three digits or more, for people.
func showBytes(n int64) string {
	for _, unit := range []int64{1 << 30, 1 << 20, 1 << 10} {
		if n >= 100*unit || n >= unit && n%unit == 0 {
			n -= n % unit
			break
		}
	}
	return resource.NewQuantity(n, resource.BinarySI).String()
}

// Amount is an absolute amount, or a share of the capacity.
type Amount struct {
	Value   int64
	Percent float64 // where Value is 0
}

// Of returns the amount of that capacity.
func (a Amount) Of(capacity int64) int64 {
	if a.Value != 0 {
		return a.Value
	}
	return int64(float64(capacity) * a.Percent / 100)
}

// Threshold is how little may be left of what a signal is about.
type Threshold struct {
	Signal Signal
	Amount Amount
	// Soft: pods are ended only when it was met for Grace, and get longer for that.
	Soft  bool
	Grace time.Duration
	// Reclaim is how much more than Amount is to be left before it counts as not met
	// any more.
	Reclaim Amount
}

// EvictionPolicy says when pods are ended for the sake of the node. With the zero
// value none ever is.
type EvictionPolicy struct {
	Thresholds []Threshold
	// Transition is how long a condition of the node holds after its last threshold
	// was met.
	Transition time.Duration
	// SoftGrace is the longest that a pod gets to end by a soft threshold.
	SoftGrace time.Duration
	// LowDisk is below how many bytes left on the filesystem of the root dir or of the
	// images no new pod is admitted; 0 is never.
	LowDisk int64
}

// hardGrace is what a pod gets to end by a hard threshold or its own limit.
const hardGrace = time.Second

// grace is the longest that a pod may take to end by this threshold.
func (p EvictionPolicy) grace(t Threshold) time.Duration {
	if t.Soft {
		return max(p.SoftGrace, hardGrace)
	}
	return hardGrace
}

// show writes the threshold for that capacity.
func (t Threshold) show(capacity int64) string {
	text := t.Signal.show(t.Amount.Of(capacity))
	if t.Amount.Value == 0 {
		text += fmt.Sprintf(" (%s)", t.Amount)
	}
	return text
}

// EvictionConfig is what can be set of evictions. With its zero value there are
// none.
type EvictionConfig struct {
	Policy EvictionPolicy
	// Period is how often the node is looked at; 0 is every 10 s.
	Period time.Duration
	// Images is a folder on the filesystem of the engine's images; "" is where the
	// engine says that they are.
	Images string
}

// String returns the amount as people write it.
func (a Amount) String() string {
	if a.Value != 0 {
		return resource.NewQuantity(a.Value, resource.BinarySI).String()
	}
	return strconv.FormatFloat(a.Percent, 'f', -1, 64) + "%"
}

// String returns signal<amount, how long it has to be met, and what is to be left
// beyond it.
func (t Threshold) String() string {
	text := string(t.Signal) + "<" + t.Amount.String()
	if t.Soft {
		text += " for " + t.Grace.String()
	}
	if t.Reclaim != (Amount{}) {
		text += ", then +" + t.Reclaim.String()
	}
	return text
}
