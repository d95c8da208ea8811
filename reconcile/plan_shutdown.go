package reconcile

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
)

// Shutdown is that the machine goes down: no pod is admitted any more, and those that
// run are ended, group after group.
type Shutdown struct {
	// Groups by rising priority; there is at least one.
	Groups []ShutdownGroup
	// Turn is the group whose turn it is. Those before it have had theirs.
	Turn int
}

// ShutdownGroup is pods that are ended together.
type ShutdownGroup struct {
	// Priority is the least of the group; pods of less than any group's are in the
	// first.
	Priority int32
	// Grace is the most that they get to end.
	Grace time.Duration
}

// Group returns the group of a pod.
func (d Shutdown) Group(p *v1.Pod) int {
	above := slices.IndexFunc(d.Groups, func(g ShutdownGroup) bool { return g.Priority > pod.Priority(p) })
	if above < 0 {
		above = len(d.Groups)
	}
	return max(above-1, 0)
}

const shutdownMessage = "Pod was terminated in response to imminent node shutdown."

// shuts reports whether the turn of the pod has come.
func (g *generationPlan) shuts() bool {
	d := g.in.Shutdown
	return d != nil && d.Group(g.pod.Object) <= d.Turn
}

// shutDown ends the containers in their order, within the period of their group. When
// the machine is up again, or its shutdown was called off, they run again.
func (g *generationPlan) shutDown() {
	in := g.in
	in.grace = max(in.Shutdown.Groups[in.Shutdown.Group(g.pod.Object)].Grace, time.Second)
	g.endForNow(in, NodeShutdown, shutdownMessage)
	g.plan.Blocked = Waiting{Terminated, shutdownMessage}
}
