package kubeletapi

import (
	"context"
	"net/http"

	v1 "k8s.io/api/core/v1"
	summary "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Answers are what the routes answer from. A nil field is a route that is not
// there (404). All may be called by many at once; none keeps what it returns, and
// what it returns is only read.
type Answers struct {
	// Pods are those that are wanted or still there, each with its status.
	Pods func(ctx context.Context) ([]*v1.Pod, error)
	// Summary is what the node and its pods use; with brief, processors and memory only.
	Summary func(ctx context.Context, brief bool) (summary.Summary, error)
	// Metrics are the pages for Prometheus, by their path below /metrics: "" is that itself.
	Metrics map[string]http.Handler
	// Logs finds the log of a container. What it finds may be written for long.
	Logs func(ctx context.Context, q LogQuery) (Log, error)
	// RunningPods are those of which a container runs, as the engine tells: names, UID
	// and containers, nothing of a manifest.
	RunningPods func(ctx context.Context) ([]*v1.Pod, error)
	// SyncLoop is why the loop does not do its work; nil is that it does.
	SyncLoop func(ctx context.Context) error
	// Exec, Attach and PortForward take the connection over; on an error they have sent
	// nothing. Run answers with what a command wrote.
	Exec, Attach, PortForward, Run Streamed
	// Config is the effective configuration as a KubeletConfiguration, its secrets
	// masked; it becomes JSON.
	Config any
	// About is told at /statusz, unless its Started is zero.
	About About
	// LogFolder is what /logs/ serves: the machine's; "" is none.
	LogFolder string
	// Profiling serves /debug/pprof/.
	Profiling bool
	// NoDebugging refuses what reads or acts in containers (see debugging).
	NoDebugging bool
}

// Streamed answers a request about a target in its own way, by a package that knows
// the protocol.
type Streamed func(w http.ResponseWriter, r *http.Request, t Target) error

func (s Streamed) serve(w http.ResponseWriter, r *http.Request) error { return s(w, r, target(r)) }

// Target is what the path of a request names.
type Target struct {
	Namespace string
	// Pod is the name with the node's suffix or without.
	Pod string
	// UID is "" where any will do.
	UID string
	// Container is "" where the route has none; what that means is the answer's to say.
	Container string
}
