package reconcile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// Record is what the root dir remembers of one generation of a pod (law 5).
type Record struct {
	// Pod is the admitted pod (pod.json); nil where the file is lost.
	Pod *pod.Pod
	// State is what happened to it (state.json); zero where the file is lost.
	State State
}

// State is what no label can say of a pod. It is a value: fold returns another.
type State struct {
	Key pod.Key `json:"key"`
	// Origin supplies the pod now; nil is unknown.
	Origin *pod.Origin `json:"origin,omitempty"`
	// Admitted is when the pod was first admitted, by the wall clock; zero where it
	// has to be admitted again. The older of two pods keeps a host port.
	Admitted time.Time `json:"admitted,omitzero"`
	// Containers by name.
	Containers map[string]ContainerState `json:"containers,omitempty"`
	// CPUs has those that a container has for itself, as the kernel spells a list.
	CPUs map[string]string `json:"cpus,omitempty"`
	// Sandboxes is how many attempts at a sandbox there were: the next one's number.
	Sandboxes int `json:"sandboxes,omitempty"`
	// Initialized is the sandbox in which all init containers have done their work.
	Initialized runtime.SandboxRef `json:"initialized,omitzero"`
	// Restart is the restart of all containers that is under way, until the pod is
	// initialised again; zero is none.
	Restart Restart `json:"restart,omitzero"`
	// End is why the node ended the pod although its containers had not; zero where it
	// did not. It is for good.
	End End `json:"end,omitzero"`
	// Evicted is the verdict that ended the pod, until it runs again; nil is none.
	Evicted *Eviction `json:"evicted,omitempty"`
	// OverLimit counts the evictions for its own limit that came soon after each other.
	OverLimit int `json:"overLimit,omitempty"`
	// Conditions has when each condition of the pod last changed.
	Conditions map[v1.PodConditionType]Transition `json:"conditions,omitempty"`
	// Leaving: its removal has begun, and is carried to its end whatever is wanted
	// meanwhile. What our own removal stopped says nothing of how the pod ended.
	Leaving bool `json:"leaving,omitempty"`
}

// End is why a pod has failed as a whole, in the words of Kubernetes.
type End struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Transition is the last change of a condition.
type Transition struct {
	Status v1.ConditionStatus `json:"status"`
	Since  time.Time          `json:"since"`
}

// since returns when a condition came to have that status: as remembered, or now.
func (s State) since(kind v1.PodConditionType, status v1.ConditionStatus, wall time.Time) time.Time {
	if was, ok := s.Conditions[kind]; ok && was.Status == status {
		return was.Since
	}
	return wall
}

// ContainerState is what is remembered of a container over its attempts.
type ContainerState struct {
	// Attempt is the highest so far. It is the restart count.
	Attempt int `json:"attempt"`
	// Ended is the highest attempt known to have ended, -1 for none yet.
	Ended int `json:"ended"`
	// From is the first attempt since all containers of the pod were last restarted.
	From int `json:"from,omitempty"`
	// Judged is the id of the last attempt of which it was decided whether its end asks
	// for a restart of all containers: by the rules that it ended under.
	Judged string `json:"judged,omitempty"`
	// Level is the crash loop's, counted up to Ended: see level.
	Level int `json:"level,omitempty"`
	// Hash is of the definition that Level was counted with; another one begins
	// anew.
	Hash pod.Hash `json:"hash,omitzero"`
	// Stopped is the attempt that the agent stopped last, and why.
	Stopped Stopped `json:"stopped,omitzero"`
	// PostStarted is the id of the attempt whose postStart hook is over, or that was
	// started without one.
	PostStarted string `json:"postStarted,omitempty"`
	// Probed is what the probes of a running attempt said last.
	Probed Probed `json:"probed,omitzero"`
	// Last is how attempt Ended ended.
	Last *Termination `json:"last,omitempty"`
	// Uses has, by attempt, what those that have not ended were made with, in a pod
	// that asks for restarts when that changes.
	Uses map[int]Uses `json:"uses,omitempty"`
}

// Stopped says that the agent stopped an attempt while its pod went on.
type Stopped struct {
	ID      string `json:"id"`
	Message string `json:"message,omitempty"`
	// Again: another attempt is to follow, however this one ends.
	Again bool `json:"again,omitempty"`
	// Edit: it was for an edit of the container, or for what counts as little against
	// it.
	Edit bool `json:"edit,omitempty"`
	// ByHand: somebody wants this attempt replaced.
	ByHand bool `json:"byHand,omitempty"`
}

// Probed is what the probes of one container have come to.
type Probed struct {
	ID      string `json:"id"`
	Started bool   `json:"started,omitempty"`
	Ready   bool   `json:"ready,omitempty"`
}

// runs reports whether the attempt with that id, whose process runs, counts as
// running: when its postStart hook is over.
func (s ContainerState) runs(m member, id string) bool {
	return postStart(m.Container) == nil || s.PostStarted == id
}

// started reports whether the attempt with that id, which runs, has come up.
func (s ContainerState) started(m member, id string) bool {
	return s.runs(m, id) && (m.StartupProbe == nil || s.Probed.ID == id && s.Probed.Started)
}

// ready reports whether the attempt with that id, which has started, is ready.
func (s ContainerState) ready(m member, id string) bool {
	return m.ReadinessProbe == nil || s.Probed.ID == id && s.Probed.Ready
}

// Termination is how an attempt ended.
type Termination struct {
	ID      string `json:"id,omitempty"`
	Attempt int    `json:"attempt"`
	// Sandbox is the one it ran in.
	Sandbox  runtime.SandboxRef `json:"sandbox,omitzero"`
	ExitCode int                `json:"exitCode"`
	Reason   Reason             `json:"reason"`
	Message  string             `json:"message,omitempty"`
	// Read: what the container said of its end was looked at.
	Read     bool      `json:"read,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
}

// The schema version of both files. A file of another version is read as lost.
const recordVersion = 1

type podFile struct {
	Version    int                 `json:"version"`
	Origin     pod.Origin          `json:"origin"`
	Line       int                 `json:"line,omitempty"`
	Hash       pod.Hash            `json:"hash"`
	Containers map[string]pod.Hash `json:"containers"`
	Pod        *v1.Pod             `json:"pod"`
}

type stateFile struct {
	Version int `json:"version"`
	State
}

// encodePod returns the bytes of pod.json.
func encodePod(p *pod.Pod) ([]byte, error) {
	return json.Marshal(podFile{Version: recordVersion, Origin: p.Origin, Line: p.Line, Hash: p.Hash, Containers: p.Containers, Pod: p.Object})
}

func decodePod(data []byte) (*pod.Pod, error) {
	var f podFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if f.Version != recordVersion || f.Pod == nil {
		return nil, fmt.Errorf("version %d, want %d", f.Version, recordVersion)
	}
	return &pod.Pod{Object: f.Pod, Origin: f.Origin, Line: f.Line, Hash: f.Hash, Containers: f.Containers}, nil
}

func encodeState(s State) ([]byte, error) {
	return json.Marshal(stateFile{Version: recordVersion, State: s})
}

func decodeState(data []byte) (State, error) {
	var f stateFile
	if err := json.Unmarshal(data, &f); err != nil {
		return State{}, err
	}
	if f.Version != recordVersion {
		return State{}, fmt.Errorf("version %d, want %d", f.Version, recordVersion)
	}
	return f.State, nil
}

// unadmitted reports whether the pod gave up what it was admitted with, as far as
// that is written down, and has not been admitted since.
func (s State) unadmitted() bool { return s.Key != (pod.Key{}) && s.Admitted.IsZero() }

// equal reports whether both would be written down alike, where one was made from
// the other. What both read of a clock they then share.
func (s State) equal(o State) bool {
	for _, c := range []*State{&s, &o} {
		if len(c.Containers) == 0 {
			c.Containers = nil
		}
		if len(c.CPUs) == 0 {
			c.CPUs = nil
		}
		if len(c.Conditions) == 0 {
			c.Conditions = nil
		}
	}
	return reflect.DeepEqual(s, o)
}

// fold adds to the state what the observed containers of the generation show:
// attempts counted, ends recorded. What it returns shares nothing with s that
// either changes.
func (s State) fold(observed []runtime.Container) State {
	next := s
	next.Containers = make(map[string]ContainerState, len(s.Containers))
	for name, c := range s.Containers {
		next.Containers[name] = c
	}
	for _, c := range byAttempt(observed) {
		if c.IsSandbox() {
			next.Sandboxes = max(next.Sandboxes, c.Attempt+1)
			continue
		}
		inSandbox := slices.ContainsFunc(observed, func(o runtime.Container) bool {
			return o.IsSandbox() && o.State == runtime.Running && o.Ref() == c.Sandbox
		})
		next.Containers[c.Name] = next.container(c.Name).fold(c, inSandbox)
	}
	return next
}

// container returns what is remembered of a container, or the state of one that
// never was.
func (s State) container(name string) ContainerState {
	if c, ok := s.Containers[name]; ok {
		return c
	}
	return ContainerState{Attempt: -1, Ended: -1}
}

// fold adds an attempt; inSandbox is whether the sandbox it was made in runs.
func (s ContainerState) fold(c runtime.Container, inSandbox bool) ContainerState {
	if c.State == runtime.Created && !c.FailedStart() {
		return s // made, but not an attempt before it was started
	}
	s.Attempt = max(s.Attempt, c.Attempt)
	if !c.Ended() || c.Attempt <= s.Ended {
		return s
	}
	var ran time.Duration
	if !c.Started.IsZero() {
		ran = c.Finished.Sub(c.Started)
	}
	if s.Last == nil && c.Attempt > 0 {
		// The earlier attempts are not remembered: their number stands for them.
		s.Level = min(c.Attempt, maxLevel)
	} else if s.Hash != c.ContainerHash {
		s.Level = 0
	}
	s.Hash = c.ContainerHash
	swept := c.Attempt < s.From
	switch {
	case swept && ran >= crashReset:
		s.Level = 0
	case s.Stopped.Edit && s.Stopped.ID == c.ID:
		s.Level = 0
	case swept, c.FailedStart() && !inSandbox: // without its sandbox it could not start
	default:
		s.Level = nextLevel(s.Level, ran)
	}
	s.Ended = c.Attempt
	s.Last = terminationOf(c)
	if swept {
		s.Last.Reason = RestartingAllContainers
	}
	if s.Stopped.ID == c.ID {
		s.Last.Message = cmp.Or(s.Last.Message, s.Stopped.Message)
		if s.Last.Reason == OOMKilled {
			// The SIGKILL was ours, after the grace period; the engine's flag is of a child.
			s.Last.Reason = Failed
		}
	}
	return s
}

func terminationOf(c runtime.Container) *Termination {
	t := &Termination{ID: c.ID, Attempt: c.Attempt, Sandbox: c.Sandbox, ExitCode: c.ExitCode, Started: c.Started, Finished: c.Finished}
	switch {
	case c.FailedStart():
		t.Reason, t.Message, t.Read = ContainerCannotRun, c.Error, true
	case c.OOMKilled && c.ExitCode == 137:
		// Only SIGKILL can be the OOM killer's: an engine also sets its flag when a
		// child was killed and the main process lived on.
		t.Reason = OOMKilled
	case c.ExitCode == 0:
		t.Reason = Completed
	default:
		t.Reason = Failed
	}
	return t
}

// Names of the files of a generation, relative to the root dir.
func podFileName(uid types.UID) string   { return "pods/" + string(uid) + "/pod.json" }
func stateFileName(uid types.UID) string { return "pods/" + string(uid) + "/state.json" }
