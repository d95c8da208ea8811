package pod

import (
	"log/slog"

	"k8s.io/apimachinery/pkg/types"
)

// EventType says whether somebody should look.
type EventType string

// The types of event, in Kubernetes' spelling.
const (
	EventNormal  EventType = "Normal"
	EventWarning EventType = "Warning"
)

// The reasons of what happens to the node or is done for its sake, in Kubernetes'
// spelling.
const (
	SystemOOM            = "SystemOOM"            // the machine was out of memory
	OOMKilling           = "OOMKilling"           // a container, or a pod, was at its limit
	EvictionThresholdMet = "EvictionThresholdMet" // dead containers, images or pods are given up for the node's sake
	Evicted              = "Evicted"              // a pod was ended for the node's sake, or over its own limit
	Preempting           = "Preempting"           // a pod made room for a critical one
	ImageGCFailed        = "ImageGCFailed"        // images could not be looked at or removed
	ContainerGCFailed    = "ContainerGCFailed"    // dead containers could not be looked at or removed
	FreeDiskSpaceFailed  = "FreeDiskSpaceFailed"  // all that may go was removed, and it is not enough
	ExceededGracePeriod  = "ExceededGracePeriod"  // an evicted pod did not end in its time
	Starting             = "Starting"             // the agent has started
	Rebooted             = "Rebooted"             // the machine has, since the agent ran last
	NodeReady            = "NodeReady"            // the engine answers, and everything was listed
	NodeNotReady         = "NodeNotReady"         // the engine does not answer
	FailedValidation     = "FailedValidation"     // a manifest has an error
)

// Event is one thing that happened, for people. Nothing is decided by it and a lost
// one costs nothing else.
type Event struct {
	Type   EventType
	Reason string
	// Pod, UID and Container are whom it happened to; all zero is the node.
	Pod       Key
	UID       types.UID
	Container string
	// Message is a sentence with the numbers; it holds no value that is secret.
	Message string
}

// Sink takes events. It may be called from several goroutines and does not wait.
type Sink func(Event)

// LogEvents returns a sink that writes each event as one line of the log.
func LogEvents(log *slog.Logger) Sink {
	return func(e Event) {
		args := []any{"reason", e.Reason}
		if e.Pod != (Key{}) {
			args = append(args, "pod", e.Pod)
		}
		if e.UID != "" {
			args = append(args, "uid", e.UID)
		}
		if e.Container != "" {
			args = append(args, "container", e.Container)
		}
		if e.Type == EventWarning {
			log.Warn(e.Message, args...)
			return
		}
		log.Info(e.Message, args...)
	}
}
