package reconcile

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// Pressure is what the node is short of.
type Pressure struct {
	// Looked: the node was looked at. Until then nothing of it is known, and no pod
	// waits for it but those that were evicted.
	Looked             bool
	Memory, Disk, PIDs Shortage
	// LowDisk is why there is no room for a new pod, whichever: OutOfDisk or
	// OutOfImageDisk; zero where there is.
	LowDisk Waiting
}

// Shortage is what the node has of one thing.
type Shortage struct {
	// Message says how little is left of it; "" where that is enough, and has been
	// for the transition period as far as that is known.
	Message string
	// Over is the instant at which there will have been enough for the transition
	// period, on the clock of [Input.Now]; zero where there is not enough now.
	Over time.Time
}

// now reports whether there is not enough at this instant.
func (s Shortage) now() bool { return s.Message != "" && s.Over.IsZero() }

// of returns the shortage that a verdict was about; ok is false where it was about
// none.
func (y Pressure) of(c pod.Cause) (s Shortage, ok bool) {
	switch c {
	case pod.MemoryPressure:
		return y.Memory, true
	case pod.DiskPressure:
		return y.Disk, true
	case pod.PIDPressure:
		return y.PIDs, true
	default:
		return Shortage{}, false
	}
}

// refusal is why a pod that does not run yet is not admitted to a node as short of
// things as this: one without requests where memory is short, else any but a
// critical one. Where the disk is nearly full nobody is.
func (y Pressure) refusal(p *v1.Pod) Waiting {
	switch {
	case y.LowDisk != (Waiting{}):
		return y.LowDisk
	case pod.Critical(p):
		return Waiting{}
	case y.Disk.Message != "":
		return Waiting{DiskPressure, y.Disk.Message}
	case y.PIDs.Message != "":
		return Waiting{PIDPressure, y.PIDs.Message}
	case y.Memory.Message != "" && manifests.QOSClass(p) == v1.PodQOSBestEffort:
		return Waiting{MemoryPressure, y.Memory.Message}
	default:
		return Waiting{}
	}
}
