package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// Verb is what a step does.
type Verb string

// The verbs. Most are taken in waves, in the pod's order. Beside them go CheckImage
// and PullImage, which are the node's since pods share images, and PostStart, which
// takes as long as somebody's hook does.
const (
	SavePod         Verb = "save-pod"
	SaveState       Verb = "save-state"
	CreateSandbox   Verb = "create-sandbox"
	CreateContainer Verb = "create-container"
	StartContainer  Verb = "start-container"
	PostStart       Verb = "post-start"
	StopContainer   Verb = "stop-container"
	RemoveContainer Verb = "remove-container"
	UpdateResources Verb = "update-resources"
	UpdateCgroup    Verb = "update-cgroup"
	UpdateVolume    Verb = "update-volume"
	LinkLog         Verb = "link-log"
	ReadMessage     Verb = "read-message"
	RemoveVolumes   Verb = "remove-volumes"
	EmptyFolder     Verb = "empty-folder"
	RemoveFolder    Verb = "remove-folder"
	CheckImage      Verb = "check-image"
	PullImage       Verb = "pull-image"
)

// Step is one thing to do, and why. A plan is made of them; they can be printed
// and compared.
type Step struct {
	Verb Verb
	Pod  pod.Key
	UID  types.UID
	// Container is the name in the pod, runtime.SandboxName for the sandbox.
	Container string
	Attempt   int
	// ID is the engine's, for what exists already.
	ID      string
	Image   string
	CPUs    string // that it may use, as the kernel spells a list; "" is the engine's choice
	Volume  string // its name in the pod
	Sandbox runtime.SandboxRef
	Grace   time.Duration
	// Parent is the pod's cgroup, as the engine was told of it. Grow: no limit of it is
	// made tighter.
	Parent string
	Grow   bool
	// Hook: its preStop hook comes first, in its grace period.
	Hook bool
	// Reason is one of the reasons of this package; Message says more, for people.
	Reason  Reason
	Message string
	// Wave orders the steps of a plan: those of one wave run beside each other,
	// and before the next wave everything is looked at again. Steps of a later
	// wave are a forecast.
	Wave int
}

// Changes reports whether the step changes what runs, as opposed to what is
// remembered or looked up.
func (s Step) Changes() bool {
	switch s.Verb {
	case SavePod, SaveState, UpdateCgroup, UpdateVolume, LinkLog, ReadMessage, CheckImage:
		return false
	default:
		return true
	}
}

// failureKey names what fails when the step does. Making and starting a
// container are one thing to wait for.
func (s Step) failureKey() string {
	switch s.Verb {
	case CreateSandbox, CreateContainer, StartContainer, UpdateResources:
		return s.Container
	case RemoveVolumes, EmptyFolder, RemoveFolder:
		return string(s.Verb) + "/" + string(s.UID)
	case UpdateVolume:
		return string(s.Verb) + "/" + s.Volume
	default:
		return string(s.Verb) + "/" + s.Container + "/" + s.ID
	}
}

// String returns one line: wave, verb, object, reason and message.
func (s Step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", s.Wave, s.Verb)
	if s.Container != "" {
		fmt.Fprintf(&b, " %s/%d", s.Container, s.Attempt)
	}
	if s.ID != "" {
		fmt.Fprintf(&b, " id=%.12s", s.ID)
	}
	if s.Image != "" {
		fmt.Fprintf(&b, " image=%s", s.Image)
	}
	if s.CPUs != "" {
		fmt.Fprintf(&b, " cpus=%s", s.CPUs)
	}
	if s.Volume != "" {
		fmt.Fprintf(&b, " volume=%s", s.Volume)
	}
	if s.Verb == StopContainer {
		fmt.Fprintf(&b, " grace=%s", s.Grace)
	}
	if s.Grow {
		b.WriteString(" grow")
	}
	if s.Hook {
		b.WriteString(" hook=preStop")
	}
	if s.Reason != "" {
		fmt.Fprintf(&b, " reason=%s", s.Reason)
	}
	if s.Message != "" {
		fmt.Fprintf(&b, " (%s)", s.Message)
	}
	return b.String()
}

// Plan is what is to be done about one pod now, and why the rest waits.
type Plan struct {
	Key pod.Key
	// UID is of the generation that is wanted; "" where nothing is.
	UID types.UID
	// Pod is the version that is being kept: the desired one, or the admitted one
	// where law 1 forbids to follow its absence. Nil where nothing is wanted.
	Pod *pod.Pod
	// Steps in order of their waves.
	Steps []Step
	// Images are the node's steps that this pod needs. They run beside its own.
	Images []Step
	// Hooks are the postStart hooks that are to run now. They run beside the steps
	// too, and are cut off when a plan does not name them any more.
	Hooks []Step
	// Waiting says why a container is not running, by name.
	Waiting map[string]Waiting
	// Blocked says why the whole pod is held back; zero where it is not.
	Blocked Waiting
	// Kept says why something that nothing supplies is left alone.
	Kept string
	// Finished: the pod has come to its end, well or not.
	Finished bool
	// Held: the pod is stopped by hand.
	Held bool
	// Ending: containers of the pod are being ended, in its order.
	Ending bool
	// Asks: the engine is to say what it can do, which the pod waits for.
	Asks bool
	// State is what is to be remembered of the generation.
	State State
	// Phase is the pod's by that; "" where nothing is planned for the generation.
	Phase v1.PodPhase
	// Wake is when to look again although nothing happened; zero is never.
	Wake time.Time
}

// Waiting is why something does not run, in the words of Kubernetes.
type Waiting struct {
	Reason  Reason
	Message string
}

// String returns the reason, and the message where there is one.
func (w Waiting) String() string {
	if w.Message == "" {
		return string(w.Reason)
	}
	return string(w.Reason) + ": " + w.Message
}

// Settled reports whether there is nothing to do and nothing is waited for but
// a timer or an outside event.
func (p Plan) Settled() bool { return len(p.Steps) == 0 && len(p.Images) == 0 && len(p.Hooks) == 0 }

// String returns the plan as text: a line a step, then what waits.
func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintln(&b, s)
	}
	for _, s := range slices.Concat(p.Images, p.Hooks) {
		fmt.Fprintln(&b, s)
	}
	if p.Blocked != (Waiting{}) {
		fmt.Fprintf(&b, "pod waits: %s\n", p.Blocked)
	}
	for _, name := range sortedKeys(p.Waiting) {
		fmt.Fprintf(&b, "%s waits: %s\n", name, p.Waiting[name])
	}
	if p.Kept != "" {
		fmt.Fprintf(&b, "kept: %s\n", p.Kept)
	}
	return b.String()
}

// FirstWave returns the steps that can be taken now.
func (p Plan) FirstWave() []Step {
	if len(p.Steps) == 0 {
		return nil
	}
	lowest := p.Steps[0].Wave
	for _, s := range p.Steps {
		lowest = min(lowest, s.Wave)
	}
	var wave []Step
	for _, s := range p.Steps {
		if s.Wave == lowest {
			wave = append(wave, s)
		}
	}
	return wave
}
