package reconcile

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// conditions returns the conditions that Kubernetes gives a pod on a node, without
// the time of their last change.
func conditions(p *v1.Pod, status v1.PodStatus, initialized, sandboxUp bool) []v1.PodCondition {
	ready := allReady(p, status)
	return []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
		{Type: v1.PodReadyToStartContainers, Status: truth(sandboxUp)},
		initializedCondition(p, status, initialized),
		ready(v1.ContainersReady),
		ready(v1.PodReady),
	}
}

func initializedCondition(p *v1.Pod, status v1.PodStatus, initialized bool) v1.PodCondition {
	c := v1.PodCondition{Type: v1.PodInitialized, Status: truth(initialized)}
	switch {
	case initialized && status.Phase == v1.PodSucceeded:
		c.Reason = "PodCompleted"
	case initialized:
	default:
		var names []string
		for _, m := range members(p) {
			s := statusOf(status, m)
			if m.kind == initial && !s.Ready || m.kind == sidecar && !*s.Started {
				names = append(names, m.Name)
			}
		}
		c.Reason, c.Message = "ContainersNotInitialized", listed("containers with incomplete status", names)
	}
	return c
}

// allReady returns what ContainersReady and Ready say, which is the same here:
// there are no readiness gates.
func allReady(p *v1.Pod, status v1.PodStatus) func(v1.PodConditionType) v1.PodCondition {
	var unready []string
	for _, m := range members(p) {
		if m.kind != initial && !statusOf(status, m).Ready {
			unready = append(unready, m.Name)
		}
	}
	c := v1.PodCondition{Status: truth(len(unready) == 0), Reason: endedReason(status.Phase)}
	switch {
	case c.Reason != "":
		c.Status = v1.ConditionFalse
	case len(unready) > 0:
		c.Reason, c.Message = "ContainersNotReady", listed("containers with unready status", unready)
	}
	return func(kind v1.PodConditionType) v1.PodCondition {
		c.Type = kind
		return c
	}
}

// endedReason is why a condition is not true of a pod that has ended; "" for others.
func endedReason(phase v1.PodPhase) string {
	switch phase {
	case v1.PodSucceeded:
		return "PodCompleted"
	case v1.PodFailed:
		return "PodFailed"
	default:
		return ""
	}
}

func listed(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: [%s]", what, strings.Join(names, " "))
}

func truth(b bool) v1.ConditionStatus {
	if b {
		return v1.ConditionTrue
	}
	return v1.ConditionFalse
}

func restartCondition(r Restart, phase v1.PodPhase) v1.PodCondition {
	c := v1.PodCondition{Type: v1.AllContainersRestarting, Status: truth(r != Restart{}), Reason: endedReason(phase)}
	if r != (Restart{}) {
		c.Reason, c.Message = "RestartAllContainersStarted", r.message()
	}
	return c
}

// disruptionCondition says that a pod was ended for the sake of the node.
func disruptionCondition(was Eviction) v1.PodCondition {
	return v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonTerminationByKubelet, Message: was.Message}
}
