package reconcile

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
)

// ProbeInput is what decides which probes are made of a pod.
type ProbeInput struct {
	// Pod is the version that is kept, UID its generation; nil is none.
	Pod *pod.Pod
	UID types.UID
	// Observed has every sandbox and container of the key.
	Observed []runtime.Container
	// State is what is known of the generation.
	State State
	// Known has, by container id, what its probes have come to.
	Known map[string]ProbeState
	// Began has, by container id, when it started, on the monotonic clock.
	Began map[string]time.Time
	// Wave is under way.
	Wave []Step
	// HostIP is the node's address, "" where it has none.
	HostIP string
}

// ProbeTargets returns what is to be probed of a pod now: its running containers
// that have probes. One that is being stopped is not asked any more whether it is
// to be. It is a pure function.
func ProbeTargets(in ProbeInput) []probe.Target {
	if in.Pod == nil || !hasProbes(in.Pod.Object) {
		return nil
	}
	observed := byAttempt(ofUID(in.Observed, in.UID))
	sandbox, up := runningSandbox(observed)
	if !up {
		return nil
	}
	var targets []probe.Target
	for _, c := range observed {
		spec := containerOf(in.Pod.Object, c.Name)
		if spec == nil || c.State != runtime.Running || c.Sandbox != sandbox.Ref() {
			continue
		}
		if postStart(spec) != nil && in.State.container(c.Name).PostStarted != c.ID {
			continue // it counts as running from then on
		}
		known := in.Known[c.ID]
		t := probe.Target{
			ContainerID: c.ID, Container: c.Name, UID: c.UID, Address: podAddress(sandbox, in.HostIP), Ports: spec.Ports, Began: in.Began[c.ID],
			Readiness: expandProbe(spec.ReadinessProbe, spec.Env), Startup: expandProbe(spec.StartupProbe, spec.Env),
			Known: probe.Known{Started: known.Started, Ready: known.Ready},
		}
		switch {
		case !in.stops(c.ID) && known.Unhealthy == "":
			t.Liveness = expandProbe(spec.LivenessProbe, spec.Env)
		case t.Startup != nil && !known.Started:
			t.Startup, t.Readiness = nil, nil
		}
		if t.Startup != nil || t.Liveness != nil || t.Readiness != nil {
			targets = append(targets, t)
		}
	}
	return targets
}

func hasProbes(p *v1.Pod) bool {
	return slices.ContainsFunc(members(p), func(m member) bool {
		return m.StartupProbe != nil || m.LivenessProbe != nil || m.ReadinessProbe != nil
	})
}

// stops reports whether the wave stops the container.
func (in ProbeInput) stops(id string) bool {
	return slices.ContainsFunc(in.Wave, func(s Step) bool { return s.Verb == StopContainer && s.ID == id })
}

// podAddress returns where the pod's ports are; hostIP is the node's address.
func podAddress(sandbox runtime.Container, hostIP string) string {
	switch {
	case sandbox.HostNetwork && hostIP != "":
		return hostIP
	case sandbox.HostNetwork:
		return "127.0.0.1"
	case len(sandbox.IPs) > 0:
		return sandbox.IPs[0]
	default:
		return ""
	}
}

// expandProbe returns the probe with $(NAME) in its command replaced by what env
// says literally, as the kubelet does.
func expandProbe(p *v1.Probe, env []v1.EnvVar) *v1.Probe {
	if p == nil || p.Exec == nil {
		return p
	}
	values := make(map[string]string, len(env))
	for _, e := range env {
		values[e.Name] = e.Value
	}
	expanded := *p
	expanded.Exec = &v1.ExecAction{Command: expandAll(p.Exec.Command, func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	})}
	return &expanded
}

// fold returns what the probes of a container have come to after a report.
func (p ProbeState) fold(r probe.Report) ProbeState {
	switch well := r.Result.Outcome == probe.Success; {
	case r.Kind == probe.Readiness:
		p.Ready = well
	case !well:
		p.Unhealthy = string(r.Kind)
	case r.Kind == probe.Startup:
		p.Started = true
	}
	return p
}
