package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podkeeper/podkeeper/server"
)

// podWord is the pod's state in the word that kubectl shows as STATUS.
func podWord(p server.Pod) string {
	ended := p.Pod.Status.Phase == v1.PodSucceeded || p.Pod.Status.Phase == v1.PodFailed
	if (p.Removing || p.Pod.DeletionTimestamp != nil) && !ended {
		return "Terminating"
	}
	status := &p.Pod.Status
	if !p.Held.IsZero() && p.Blocked != nil && !ended {
		return p.Blocked.Reason
	}
	if word := initWord(p.Pod); word != "" {
		return word
	}
	word, running := string(status.Phase), false
	if status.Reason != "" {
		word = status.Reason
	}
	// The first container in the manifest that has something to say has the word.
	for i := len(status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &status.ContainerStatuses[i]
		switch said := stateWord(c.State); {
		case said != "":
			word = said
		case c.State.Running != nil && c.Ready:
			running = true
		}
	}
	if word == "Completed" && running {
		word = "NotReady"
		if conditionStatus(status, v1.PodReady) == v1.ConditionTrue {
			word = "Running"
		}
	}
	if word == "" {
		return "Unknown"
	}
	return word
}

// initWord tells how far initialization is; "" once it is over.
func initWord(p *v1.Pod) string {
	if conditionStatus(&p.Status, v1.PodInitialized) == v1.ConditionTrue {
		return ""
	}
	sidecar := sidecars(p)
	for i := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[i]
		ended := c.State.Terminated
		switch {
		case ended != nil && ended.ExitCode == 0, sidecar[c.Name] && c.Started != nil && *c.Started:
			continue
		case ended != nil || c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			return "Init:" + stateWord(c.State)
		default:
			return fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
	}
	return ""
}

// sidecars has the init containers that go on beside the others, by name.
func sidecars(p *v1.Pod) map[string]bool {
	names := map[string]bool{}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			names[c.Name] = true
		}
	}
	return names
}

// beside returns the statuses of the containers that are to run beside each other.
func beside(p *v1.Pod) []v1.ContainerStatus {
	sidecar := sidecars(p)
	list := slices.DeleteFunc(slices.Clone(p.Status.InitContainerStatuses), func(c v1.ContainerStatus) bool { return !sidecar[c.Name] })
	return append(list, p.Status.ContainerStatuses...)
}

// stateWord is why a container does not run, "" where it does or nothing is known.
func stateWord(s v1.ContainerState) string {
	switch t := s.Terminated; {
	case s.Waiting != nil:
		return s.Waiting.Reason
	case t == nil:
		return ""
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return "Signal:" + strconv.Itoa(int(t.Signal))
	default:
		return "ExitCode:" + strconv.Itoa(int(t.ExitCode))
	}
}

func wordTint(word string) tint {
	switch word {
	case "Running":
		return good
	case "Completed", "Succeeded", stoppedReason:
		return faint
	case "Pending", "ContainerCreating", "PodInitializing", "Terminating", "Stopping":
		return busy
	default:
		return bad
	}
}

func conditionStatus(s *v1.PodStatus, kind v1.PodConditionType) v1.ConditionStatus {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// readiness is "ready/all" of the containers that are to run beside each other.
func readiness(p *v1.Pod) string {
	ready := 0
	for _, c := range beside(p) {
		if c.Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers)+len(sidecars(p)))
}

// restarts is how often containers were restarted, and how long ago the last time;
// of those that initialise the pod, as long as they do.
func restarts(p *v1.Pod, now time.Time) string {
	list := beside(p)
	if conditionStatus(&p.Status, v1.PodInitialized) == v1.ConditionFalse {
		list = p.Status.InitContainerStatuses
	}
	var count int32
	var last time.Time
	for _, c := range list {
		count += c.RestartCount
		if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	if count == 0 || last.IsZero() {
		return strconv.Itoa(int(count))
	}
	return fmt.Sprintf("%d (%s ago)", count, duration.HumanDuration(now.Sub(last)))
}

// age is how long the pod has been there; of one that is stopped by hand, so that nothing
// of it is, how long it has been stopped.
func age(p server.Pod, now time.Time) string {
	since := p.Pod.CreationTimestamp.Time
	if since.IsZero() && p.Pod.Status.StartTime != nil {
		since = p.Pod.Status.StartTime.Time
	}
	if since.IsZero() {
		since = p.Held
	}
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(since))
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
