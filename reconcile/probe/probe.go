package probe

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kind names a probe of a container.
type Kind string

// The probes of a container.
const (
	Startup   Kind = "startup"
	Liveness  Kind = "liveness"
	Readiness Kind = "readiness"
)

func kinds() []Kind { return []Kind{Startup, Liveness, Readiness} }

// Outcome is what a check found, or what a probe has come to.
type Outcome string

// The outcomes.
const (
	// Unknown: a check could not be made, which says nothing of the container.
	Unknown Outcome = ""
	Success Outcome = "success"
	Failure Outcome = "failure"
)

// Update replaces all targets of a group; none removes it. Ids of containers are
// unique over all groups.
type Update struct {
	Group   string
	Targets []Target
}

// Target is a running container and its probes. What it points to is not changed
// any more by whoever made it.
type Target struct {
	ContainerID string
	// Container and UID are its name in the pod, and the pod's.
	Container string
	UID       types.UID
	// Address is the IP that probes go to which name no host.
	Address string
	// Ports are where the names of ports are looked up.
	Ports []v1.ContainerPort
	// The probes, with all defaults; nil for none. Edits take effect: counts begin
	// anew, outcomes stay until the next result.
	Startup, Liveness, Readiness *v1.Probe
	// Began is when the container started, on the monotonic clock. Like Known it is
	// read once for each id.
	Began time.Time
	// Known is what was found before this Run.
	Known Known
}

// Known is what probes have come to before.
type Known struct {
	Started bool // the startup probe has succeeded
	Ready   bool // the readiness probe has
}

func (t *Target) probe(k Kind) *v1.Probe {
	switch k {
	case Startup:
		return t.Startup
	case Liveness:
		return t.Liveness
	default:
		return t.Readiness
	}
}

// Check is one thing to look at once.
type Check struct {
	ContainerID string
	Address     string
	Ports       []v1.ContainerPort
	Handler     v1.ProbeHandler
	Timeout     time.Duration
}

// Result is what a check found.
type Result struct {
	Outcome Outcome
	// Warning: it succeeded, but something about it is worth to be said.
	Warning bool
	// Reason says what was found in the words of the kubelet. It is empty where a
	// success needs none.
	Reason string
	// Output is what a command printed, at most 10 KiB. It may hold secrets.
	Output string
}

// Report tells of one check: a change of outcome, a failure, a warning, or that it
// could not be made.
type Report struct {
	Group       string
	ContainerID string
	Kind        Kind
	// Changed: the probe has come to the outcome of Result just now.
	Changed bool
	// Try: it was made between the ticks, and would not have counted as a failure.
	Try    bool
	Result Result
}

// Message returns the report as the kubelet words its events. It has what a
// command printed.
func (r Report) Message() string {
	text := r.Result.Reason
	if r.Result.Output != "" {
		text = strings.TrimRight(r.Result.Output, "\n")
	}
	switch name := strings.ToUpper(string(r.Kind[:1])) + string(r.Kind[1:]); {
	case r.Result.Warning:
		return name + " probe warning: " + text
	case r.Result.Outcome == Unknown:
		return name + " probe errored: " + text
	case r.Result.Outcome == Failure:
		return name + " probe failed: " + text
	default:
		return name + " probe succeeded"
	}
}
