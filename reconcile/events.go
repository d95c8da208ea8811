package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// This file words events: what people who know kubectl look for when something
// happened to a pod. Reasons and messages are the kubelet's where it has them.
// All of it is pure; the loop hands them on.

// The reasons of events that are no reasons of steps or of waiting.
const (
	eventCreated          = "Created"
	eventStarted          = "Started"
	eventKilling          = "Killing"
	eventPulling          = "Pulling"
	eventPulled           = "Pulled"
	eventFailed           = "Failed"
	eventInspectFailed    = "InspectFailed"
	eventBackOff          = "BackOff"
	eventUnhealthy        = "Unhealthy"
	eventProbeWarning     = "ProbeWarning"
	eventSandboxChanged   = "SandboxChanged"
	eventDeadlineExceeded = "DeadlineExceeded"
)

// takenEvents returns what is said when a step begins.
func takenEvents(s Step) []pod.Event {
	if s.Verb != StopContainer {
		return nil
	}
	if s.Container == runtime.SandboxName {
		if s.Reason != SandboxChanged {
			return nil
		}
		return []pod.Event{s.event(pod.EventNormal, eventSandboxChanged, "Pod sandbox changed, it will be killed and re-created.")}
	}
	message := "Stopping container " + s.Container
	switch s.Reason {
	case Unhealthy:
		message = fmt.Sprintf("Container %s %s, will be restarted", s.Container, s.Message)
	case DefinitionChanged:
		message = fmt.Sprintf("Container %s definition changed, will be restarted", s.Container)
	}
	return []pod.Event{s.event(pod.EventNormal, eventKilling, message)}
}

// doneEvents returns what is said when a step has succeeded.
func doneEvents(s Step) []pod.Event {
	switch {
	case s.Container == runtime.SandboxName:
		return nil
	case s.Verb == CreateContainer:
		return []pod.Event{s.event(pod.EventNormal, eventCreated, "Created container: "+s.Container)}
	case s.Verb == StartContainer:
		return []pod.Event{s.event(pod.EventNormal, eventStarted, "Started container "+s.Container)}
	default:
		return nil
	}
}

// presentEvent is said when a container was made whose image was not pulled for it.
func presentEvent(s Step) pod.Event {
	return s.event(pod.EventNormal, eventPulled, fmt.Sprintf("Container image %q already present on machine", s.Image))
}

// nodeEvent tells whether pods can be kept.
func nodeEvent(node string, ready bool) pod.Event {
	reason := pod.NodeReady
	if !ready {
		reason = pod.NodeNotReady
	}
	return pod.Event{Type: pod.EventNormal, Reason: reason, Message: fmt.Sprintf("Node %s status is now: %s", node, reason)}
}

// problemEvents returns what is said of errors in manifests that were not there before,
// on whichever line.
func problemEvents(was, now pod.Set) (list []pod.Event) {
	known := make(map[pod.Problem]bool)
	each := func(set pod.Set, f func(pod.Problem)) {
		for _, src := range set.Sources {
			for _, o := range src.Origins {
				for _, p := range o.Problems {
					if p.Severity == pod.Error {
						f(p)
					}
				}
			}
		}
	}
	anywhere := func(p pod.Problem) pod.Problem {
		p.Line, p.Column = 0, 0
		return p
	}
	each(was, func(p pod.Problem) { known[anywhere(p)] = true })
	each(now, func(p pod.Problem) {
		if !known[anywhere(p)] {
			known[anywhere(p)] = true
			list = append(list, pod.Event{Type: pod.EventWarning, Reason: pod.FailedValidation, Message: "Error validating manifest: " + p.String()})
		}
	})
	return list
}

func (s Step) event(kind pod.EventType, reason, message string) pod.Event {
	e := pod.Event{Type: kind, Reason: reason, Pod: s.Pod, UID: s.UID, Message: message}
	if s.Container != runtime.SandboxName {
		e.Container = s.Container
	}
	return e
}

// waitEvents returns what is said when a plan waits for what the one before it did
// not wait for.
func waitEvents(was, now Plan) (list []pod.Event) {
	about := pod.Event{Type: pod.EventWarning, Pod: now.Key, UID: now.UID}
	for _, name := range slices.Sorted(maps.Keys(now.Waiting)) {
		w := now.Waiting[name]
		if was.UID == now.UID && was.Waiting[name] == w {
			continue
		}
		e := about
		e.Container = name
		if e.Reason, e.Message = w.event(name, now); e.Reason != "" {
			list = append(list, e)
		}
	}
	if b := now.Blocked; !b.again(was.Blocked) && b.Message != "" && b.Reason != ContainerCreating && b != unheard {
		e := about
		e.Reason, e.Message = b.event("", now)
		if e.Reason == "" {
			e.Reason, e.Message = string(b.Reason), b.Message
		}
		list = append(list, e)
	}
	if now.State.End != (End{}) && now.State.End != was.State.End && now.State.End.Reason == DeadlineExceeded {
		e := about
		e.Type, e.Reason, e.Message = pod.EventNormal, eventDeadlineExceeded, now.State.End.Message
		list = append(list, e)
	}
	return list
}

// again reports whether a pod waits for what it waited for, by whatever numbers: those
// of what the node is short of change with each look, and an outlook with time. Of an
// eviction who found it to be due has told, and of a stop by hand who took it on.
func (w Waiting) again(was Waiting) bool {
	switch w.Reason {
	case Evicted, PodStopping, PodStopped:
		return true
	case MemoryPressure, DiskPressure, PIDPressure, Preempting:
		return w.Reason == was.Reason
	default:
		return w == was || w.Reason == was.Reason && strings.HasPrefix(string(w.Reason), "OutOf")
	}
}

// event returns reason and message of the event that tells of it; "" where there is
// nothing to tell.
func (w Waiting) event(container string, p Plan) (reason, message string) {
	switch w.Reason {
	case CrashLoopBackOff:
		return eventBackOff, fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", container, p.Key.Name, p.Key.Namespace, p.UID)
	case ImagePullBackOff:
		return eventBackOff, capital(w.Message)
	case ErrImagePull:
		return eventFailed, "Failed to pull image: " + w.Message
	case ErrImageNeverPull:
		return string(ErrImageNeverPull), capital(w.Message)
	case InvalidImageName:
		return eventInspectFailed, "Failed to apply default image tag: " + w.Message
	case CreateContainerError, CreateContainerConfigError, RunContainerError:
		return eventFailed, "Error: " + w.Message
	case FailedSync:
		return string(w.Reason), "Error syncing pod: " + w.Message
	case FailedCreatePodSandBox:
		return string(w.Reason), "Failed to create pod sandbox: " + w.Message
	default:
		return "", ""
	}
}

func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

// pullEvent returns what is said of a pull that took so long; 0 is when it begins.
func pullEvent(s Step, took time.Duration) pod.Event {
	s.Container = "" // pods share a pull, and containers of a pod do
	if took == 0 {
		return s.event(pod.EventNormal, eventPulling, fmt.Sprintf("Pulling image %q", s.Image))
	}
	return s.event(pod.EventNormal, eventPulled, fmt.Sprintf("Successfully pulled image %q in %s", s.Image, took.Round(time.Millisecond)))
}

// probeEvent returns what is said of what a probe found that is not well.
func probeEvent(key pod.Key, uid types.UID, c Complaint, warning bool) pod.Event {
	e := pod.Event{Type: pod.EventWarning, Reason: eventUnhealthy, Pod: key, UID: uid, Container: c.Container, Message: c.Message}
	if warning {
		e.Reason = eventProbeWarning
	}
	return e
}

// tell hands events on, where somebody takes them.
func (d Deps) tell(list ...pod.Event) {
	if d.Events == nil {
		return
	}
	for _, e := range list {
		d.Events(e)
	}
}
