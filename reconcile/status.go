package reconcile

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/runtime"
)

// Status returns the status of a pod as Kubernetes words it: from what runs,
// and, for what is gone, from what is remembered. It is a pure function.
// observed has the containers of the pod's generation; addresses are the node's.
func Status(plan Plan, observed []runtime.Container, state State, addresses []string) v1.PodStatus {
	status := v1.PodStatus{QOSClass: manifests.QOSClass(plan.Pod.Object)}
	status.HostIP = first(addresses)
	for _, ip := range addresses {
		status.HostIPs = append(status.HostIPs, v1.HostIP{IP: ip})
	}
	if !state.Admitted.IsZero() {
		start := metav1.NewTime(state.Admitted)
		status.StartTime = &start
	}
	list := byAttempt(observed)
	for _, c := range slices.Backward(list) {
		if c.IsSandbox() && c.State == runtime.Running {
			setAddresses(&status, c, addresses)
			break
		}
	}
	spec := &plan.Pod.Object.Spec
	for i := range spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(&spec.Containers[i], plan, list, state))
	}
	status.Phase = phase(spec.RestartPolicy, status.ContainerStatuses)
	if plan.Blocked != (Waiting{}) {
		status.Reason, status.Message = string(plan.Blocked.Reason), plan.Blocked.Message
	}
	status.Conditions = conditions(status)
	return status
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

func containerStatus(spec *v1.Container, plan Plan, observed []runtime.Container, state State) v1.ContainerStatus {
	s := v1.ContainerStatus{Name: spec.Name, Image: spec.Image}
	remembered := state.container(spec.Name)
	s.RestartCount = int32(max(0, remembered.Attempt))
	last := remembered.Last
	newest, found := runtime.Container{}, false
	for _, c := range observed {
		if c.Name == spec.Name && !(c.State == runtime.Created && !c.FailedStart()) {
			newest, found = c, true
		}
	}
	if found {
		s.ContainerID, s.ImageID = "docker://"+newest.ID, newest.ImageID
		s.RestartCount = int32(newest.Attempt)
	}
	waiting, waits := plan.Waiting[spec.Name]
	switch {
	case found && newest.State == runtime.Running:
		started := true
		s.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.NewTime(newest.Started)}
		s.Ready, s.Started = true, &started
		s.LastTerminationState = terminated(last)
	case waits:
		s.State.Waiting = &v1.ContainerStateWaiting{Reason: string(waiting.Reason), Message: waiting.Message}
		s.LastTerminationState = terminated(last)
	case found && newest.Ended():
		s.State = terminated(terminationOf(newest))
	case last != nil && plan.Finished:
		s.State = terminated(last)
	default:
		reason := ContainerCreating
		if plan.Blocked.Reason != "" {
			reason = plan.Blocked.Reason
		}
		s.State.Waiting = &v1.ContainerStateWaiting{Reason: string(reason), Message: plan.Blocked.Message}
		s.LastTerminationState = terminated(last)
	}
	return s
}

func terminated(t *Termination) v1.ContainerState {
	if t == nil {
		return v1.ContainerState{}
	}
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		ExitCode:    int32(t.ExitCode),
		Reason:      string(t.Reason),
		Message:     t.Message,
		StartedAt:   metav1.NewTime(t.Started),
		FinishedAt:  metav1.NewTime(t.Finished),
		ContainerID: "docker://" + t.ID,
	}}
}

// phase follows the pod lifecycle page of Kubernetes.
func phase(policy v1.RestartPolicy, containers []v1.ContainerStatus) v1.PodPhase {
	var waiting, running, stopped, succeeded int
	for _, c := range containers {
		ended := c.State.Terminated
		if c.State.Waiting != nil {
			ended = c.LastTerminationState.Terminated
		}
		switch {
		case c.State.Running != nil:
			running++
		case ended != nil:
			stopped++
			if ended.ExitCode == 0 {
				succeeded++
			}
		default:
			waiting++
		}
	}
	switch {
	case waiting > 0:
		return v1.PodPending
	case running > 0 || policy == v1.RestartPolicyAlways:
		return v1.PodRunning
	case stopped == succeeded:
		return v1.PodSucceeded
	case policy == v1.RestartPolicyNever:
		return v1.PodFailed
	default:
		return v1.PodRunning
	}
}

func conditions(status v1.PodStatus) []v1.PodCondition {
	ready, reason := v1.ConditionTrue, ""
	for _, c := range status.ContainerStatuses {
		if !c.Ready {
			ready, reason = v1.ConditionFalse, "ContainersNotReady"
		}
	}
	if status.Phase == v1.PodSucceeded {
		reason = "PodCompleted"
	}
	var since metav1.Time
	for _, c := range status.ContainerStatuses {
		if c.State.Running != nil && since.Before(&c.State.Running.StartedAt) {
			since = c.State.Running.StartedAt
		}
	}
	begun := metav1.Time{}
	if status.StartTime != nil {
		begun = *status.StartTime
	}
	return []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: begun},
		{Type: v1.PodInitialized, Status: v1.ConditionTrue, LastTransitionTime: begun},
		{Type: v1.ContainersReady, Status: ready, Reason: reason, LastTransitionTime: since},
		{Type: v1.PodReady, Status: ready, Reason: reason, LastTransitionTime: since},
	}
}
