package pod

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cause is what a pod is ended for. It decides when the pod may come back.
type Cause string

// The causes. The first three are the node's: whatever it is short of.
const (
	MemoryPressure Cause = "MemoryPressure"
	DiskPressure   Cause = "DiskPressure"
	PIDPressure    Cause = "PIDPressure"
	// OwnLimit: the pod uses more than it may, whatever the node has left.
	OwnLimit Cause = "OwnLimit"
	// Preempted: it makes room for a critical pod.
	Preempted Cause = "Preempted"
)

// Verdict says of one generation of a pod that it has to end. Whoever finds that
// states it (law 9); it is carried out by the loop alone, which drops one about a
// generation that is gone.
type Verdict struct {
	UID  types.UID
	Hash Hash // of the pod
	// Reason is the event of that name, [Evicted] or [Preempting]; Message says why,
	// with the numbers.
	Reason, Message string
	Cause           Cause
	// Signal is what the node is short of, or which limit of its own the pod is over, as
	// the kubelet's metrics call that; "" where there is no such thing.
	Signal string
	// Grace is the longest that the pod may take to end; its own grace period counts
	// where that is shorter.
	Grace time.Duration
	// At is when that was found, by the wall clock; zero is now.
	At time.Time
}

// EvictAnnotation is how a pod says "never": it is not to be evicted.
const EvictAnnotation = "podkeeper.io/evict"

// Exempt reports whether a pod is never evicted, whatever it uses.
func Exempt(p *v1.Pod) bool { return Critical(p) || p.Annotations[EvictAnnotation] == "never" }
