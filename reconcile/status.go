package reconcile

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// Status returns the status of a pod as Kubernetes words it: from what runs,
// and, for what is gone, from what is remembered. It is a pure function.
// observed has the containers of the pod's generation; addresses are the node's,
// wall is the time of what has just changed.
func Status(plan Plan, observed []runtime.Container, state State, addresses []string, wall time.Time) v1.PodStatus {
	object := plan.Pod.Object
	status := v1.PodStatus{QOSClass: manifests.QOSClass(object)}
	status.HostIP = first(addresses)
	for _, ip := range addresses {
		status.HostIPs = append(status.HostIPs, v1.HostIP{IP: ip})
	}
	if !state.Admitted.IsZero() {
		start := metav1.NewTime(state.Admitted)
		status.StartTime = &start
	}
	sandbox, up := runningSandbox(observed)
	if up {
		setAddresses(&status, sandbox, addresses)
	}
	s := statusMaker{plan: plan, observed: byAttempt(observed), state: state}
	s.initialized = isInitialized(plan, state, sandbox.Ref())
	for _, m := range members(object) {
		if m.kind == primary {
			status.ContainerStatuses = append(status.ContainerStatuses, s.container(m))
		} else {
			status.InitContainerStatuses = append(status.InitContainerStatuses, s.container(m))
		}
	}
	status.Phase = phase(object, status, state, s.initialized)
	status.Reason, status.Message = string(state.End.Reason), state.End.Message
	if state.Evicted != nil {
		status.Reason, status.Message = string(state.Evicted.Reason), state.Evicted.Message
	}
	if plan.Blocked != (Waiting{}) {
		status.Reason, status.Message = string(plan.Blocked.Reason), plan.Blocked.Message
	}
	if plan.Blocked.Reason == Terminated && !slices.ContainsFunc(observed, func(c runtime.Container) bool { return !c.IsSandbox() && c.State == runtime.Running }) {
		status.Phase = v1.PodFailed
	}
	status.Conditions = conditions(object, status, s.initialized, up)
	if slices.ContainsFunc(members(object), func(m member) bool { return restartsAll(m.Container) }) {
		status.Conditions = append(status.Conditions, restartCondition(state.Restart, status.Phase))
	}
	if was := state.Evicted; was != nil && was.Cause != pod.OwnLimit {
		status.Conditions = append(status.Conditions, disruptionCondition(*was))
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.LastTransitionTime = metav1.NewTime(state.since(c.Type, c.Status, wall))
	}
	return status
}

// isInitialized reports whether the init containers have done their work: in the
// sandbox that runs, or in any for a pod that has come to its end. That a primary
// container was started shows it too.
func isInitialized(plan Plan, state State, sandbox runtime.SandboxRef) bool {
	if len(plan.Pod.Object.Spec.InitContainers) == 0 {
		return true
	}
	if !plan.Finished {
		return sandbox != (runtime.SandboxRef{}) && state.Initialized == sandbox
	}
	return state.Initialized != (runtime.SandboxRef{}) || slices.ContainsFunc(members(plan.Pod.Object), func(m member) bool {
		return m.kind == primary && state.container(m.Name).Attempt >= 0
	})
}

// runningSandbox returns the newest sandbox that runs.
func runningSandbox(observed []runtime.Container) (runtime.Container, bool) {
	for _, c := range slices.Backward(byAttempt(observed)) {
		if c.IsSandbox() && c.State == runtime.Running {
			return c, true
		}
	}
	return runtime.Container{}, false
}

func setAddresses(status *v1.PodStatus, sandbox runtime.Container, addresses []string) {
	ips := sandbox.IPs
	if sandbox.HostNetwork {
		ips = addresses
	}
	for _, ip := range ips {
		status.PodIPs = append(status.PodIPs, v1.PodIP{IP: ip})
	}
	if len(ips) > 0 {
		status.PodIP = ips[0]
	}
}

// phase follows the pod lifecycle page of Kubernetes.
func phase(p *v1.Pod, status v1.PodStatus, state State, initialized bool) v1.PodPhase {
	var waiting, running, again, failed bool
	doomed := state.End != (End{}) || state.Evicted != nil
	for _, m := range members(p) {
		s := statusOf(status, m)
		ended, last := s.State.Terminated, s.LastTerminationState.Terminated
		running = running || s.State.Running != nil
		switch {
		case m.kind == sidecar || s.State.Running != nil:
		case ended != nil && ended.ExitCode != 0 && !restarts(p, m, int(ended.ExitCode)):
			failed, doomed = true, doomed || m.kind == initial
		case m.kind == initial || ended != nil && !restarts(p, m, int(ended.ExitCode)):
		case ended != nil || last != nil:
			again = true
		default:
			waiting = true
		}
	}
	switch {
	case doomed && !running:
		return v1.PodFailed
	case !initialized || waiting || again && !running && state.Admitted.IsZero():
		return v1.PodPending
	case running || again:
		return v1.PodRunning
	case failed:
		return v1.PodFailed
	default:
		return v1.PodSucceeded
	}
}

func statusOf(status v1.PodStatus, m member) v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for _, s := range list {
			if s.Name == m.Name {
				return s
			}
		}
	}
	return v1.ContainerStatus{}
}
