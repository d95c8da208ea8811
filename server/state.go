package server

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
)

// State is everything that the agent knows at one instant, for clients.
type State struct {
	// Revision rises with each change. It is never 0.
	Revision uint64 `json:"revision"`
	// Version is that of the agent's program.
	Version string `json:"version,omitempty"`
	// Ready: the engine was listed and every source was asked once.
	Ready bool `json:"ready"`
	// Online: the container engine answers.
	Online   bool   `json:"online"`
	NodeName string `json:"nodeName"`
	// Strict: unknown fields are refused. Extensions are the endings of manifests in
	// folders; none are the default ones.
	Strict     bool     `json:"strict,omitempty"`
	Extensions []string `json:"extensions,omitempty"`
	// Holds are pods that are stopped by hand although nothing of them is there.
	Holds     []Hold         `json:"holds,omitempty"`
	RootDir   string         `json:"rootDir"`
	Pods      []Pod          `json:"pods"`
	Sources   []pod.Source   `json:"sources"`
	Conflicts []pod.Conflict `json:"conflicts,omitempty"`
}

// Hold is that a pod is stopped by hand.
type Hold struct {
	Pod   pod.Key   `json:"pod"`
	Since time.Time `json:"since"`
}

// Events are what happened, the least lately first.
type Events struct {
	// Revision rises with each event.
	Revision uint64     `json:"revision"`
	Items    []v1.Event `json:"items"`
}

// Pod is one pod, wanted or still there.
type Pod struct {
	// Pod has its status and its UID.
	Pod    *v1.Pod    `json:"pod"`
	Origin pod.Origin `json:"origin,omitzero"`
	Line   int        `json:"line,omitempty"`
	// Steps is what is to be done about it now, in order.
	Steps []Step `json:"steps,omitempty"`
	// Blocked says why the whole pod waits, Kept why it is left alone although
	// nothing supplies it.
	Blocked *Waiting `json:"blocked,omitempty"`
	Kept    string   `json:"kept,omitempty"`
	// Held is since when it is stopped by hand; zero where it is not.
	Held time.Time `json:"held,omitzero"`
	// CPUs has those that a container has for itself, as the kernel spells a list.
	CPUs map[string]string `json:"cpus,omitempty"`
	// Notes say what it asks for and, though it runs, does not get on this node.
	Notes []string `json:"notes,omitempty"`
	// Busy: steps are under way. Removing: nothing wants it any more.
	Busy     bool `json:"busy,omitempty"`
	Removing bool `json:"removing,omitempty"`
	// Drift names the settings of the agent that its containers were made with
	// and that differ now.
	Drift []string `json:"drift,omitempty"`
	// Complaints are what probes found last that was not well.
	Complaints []Complaint `json:"complaints,omitempty"`
}

// Complaint is what a probe of a container that runs found.
type Complaint struct {
	Container string `json:"container"`
	// Message is worded as the kubelet does.
	Message string `json:"message"`
	// Count is how often it was found, Last when last.
	Count int       `json:"count"`
	Last  time.Time `json:"last"`
}

// Settled reports whether nothing is to be done about the pod but wait.
func (p Pod) Settled() bool { return !p.Busy && len(p.Steps) == 0 }

// Step is one thing to be done, and why.
type Step struct {
	Verb      string `json:"verb"`
	Container string `json:"container,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	ID        string `json:"id,omitempty"`
	Image     string `json:"image,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	// Wave orders the steps; those of one wave go beside each other.
	Wave int `json:"wave"`
	// Text is the step as one line.
	Text string `json:"text"`
}

// Waiting is why something does not run, in the words of Kubernetes.
type Waiting struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}
