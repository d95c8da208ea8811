package reconcile

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// Input is everything that the plan of one pod depends on. Plan reads it and
// nothing else, and changes nothing in it.
type Input struct {
	Key pod.Key
	// Desired is what the sources want; nil where nobody wants the key.
	Desired *pod.Pod
	// Unheard: the origin of Desired says nothing usable now, and supplies what was
	// kept of it from before.
	Unheard bool
	// MayRemove is law 1 for the origin of what runs; Why says why not.
	MayRemove bool
	Why       string
	// Observed has every sandbox and container of ours that bears the key.
	Observed []runtime.Container
	// Records has what the root dir remembers under the key, by UID.
	Records map[types.UID]Record
	// Refused is why the pod is not admitted; zero where it is.
	Refused Waiting
	// Awaits is why the sandbox of a pod that is admitted cannot be made yet; zero
	// where it can.
	Awaits Waiting
	// Pins are the CPUs that its containers may use.
	Pins Pins
	// Features are what the engine can do; nil where it was not asked yet, or has not
	// said so.
	Features *runtime.Features
	// PodCgroups: each pod gets a cgroup of its own, before its sandbox.
	PodCgroups bool
	// Cgroups has, by UID, what this process gave the cgroup of a generation.
	Cgroups map[types.UID]CgroupSet
	// Policy says what pods may have of the machine.
	Policy Policy
	// Images by name as written; a missing entry is an image not looked at yet.
	Images map[string]Image
	// Pulled has the last pull of an image that was made for a container.
	Pulled map[Pull]bool
	// Failures has the last failed step by container name, "POD" for the sandbox
	// and what concerns the whole pod.
	Failures map[string]Failure
	// Learnt has, by id, what this process knows of a container; a missing entry is
	// nothing.
	Learnt map[string]Learnt
	// Objects has at least those that exist of the ones that the pod refers to.
	Objects map[pod.ObjectKey]*pod.Object
	// DigestKey is this root dir's. Without one nothing is known of what containers
	// were made with.
	DigestKey DigestKey
	// Written has the content that this process gave to volumes.
	Written map[VolumeKey][]volume.File
	// Begun has, by UID, since when a generation is active, on the clock of Now; one
	// without an entry begins now.
	Begun map[types.UID]time.Time
	// Again is the generation that is to be ended and started anew; "" is none.
	Again types.UID
	// Held is since when the pod is stopped by hand, by the wall clock; zero where it
	// is not.
	Held time.Time
	// Anew has, by container, the attempt (its id) that somebody wants replaced.
	Anew map[string]string
	// Verdict is what was found about a generation of the pod and is not written down
	// yet; nil is nothing.
	Verdict *pod.Verdict
	// Out has, by UID, since when a generation is evicted, on the clock of Now; one
	// without an entry is so since now.
	Out map[types.UID]time.Time
	// Emptied has, by UID, the instant of the eviction after which this process emptied
	// the pod's folder.
	Emptied map[types.UID]time.Time
	// Vacated are the generations whose volumes this process removed since nothing wants
	// the pod.
	Vacated map[types.UID]bool
	// Pressure is what the node is short of.
	Pressure Pressure
	// Shutdown is that the machine goes down; nil where it does not.
	Shutdown *Shutdown
	// Ending is since when the containers of the pod are being ended, on the clock
	// of Now; zero where they are not.
	Ending time.Time
	Node   Node
	// KeepLogs is for how long containers of a pod that nobody wants stay after they
	// ended.
	KeepLogs time.Duration
	// Now is the monotonic clock, Wall the time to remember and show.
	Now, Wall time.Time

	frozen Waiting       // why nothing is created for the pod
	grace  time.Duration // the most that a pod which is being ended gets; 0 is no such limit
}

// CgroupSet are the limits that a pod's cgroup was given; none of them was made
// tighter where it was to Grow.
type CgroupSet struct {
	cgroup.Limits
	Grow bool
}

// Learnt is what this process knows of a container beside what the engine tells.
type Learnt struct {
	// Ended is when it ended, on the clock of [Input.Now]; zero where it has not.
	Ended time.Time
	// Linked: its log link was made or seen.
	Linked bool
	// Updated are the limits that were set last; nil where none were.
	Updated *runtime.Resources
	// Probes is what its probes have found; nil where it was not probed yet.
	Probes *ProbeState
	// Hook is what its postStart hook has come to; "" while that has not ended.
	Hook HookState
	// Message is what it said of its end; nil where nobody has looked.
	Message *string
}

// Node is what the plan needs to know of the machine.
type Node struct {
	Name    string
	RootDir string
	// Labels are those that nodeSelector and affinity are held against.
	Labels map[string]string
	// Memory and Storage (where the root dir is) are in bytes, CPUs are whole ones;
	// 0 is unknown.
	Memory, Storage, CPUs int64
	// Allocatable is what pods may ask for together.
	Allocatable Allocatable
	// Pinning says which CPUs containers may have for themselves.
	Pinning Pinning
	// Addresses are the node's, the preferred one first, one of each family.
	Addresses []string
	// ResolvConf is the file of the resolvers of pods; "" is the node's own.
	ResolvConf string
	ClusterDNS ClusterDNS
	// PodPIDs is how many processes and threads a pod may have; 0 is no limit.
	PodPIDs int64
	// NoCPUQuota: limits of CPU are not held. CPUPeriod is that of their quota; 0 is
	// 100 ms.
	NoCPUQuota bool
	CPUPeriod  time.Duration
	// NoQuotas is why the sizes of claims do not hold; "" where they do.
	NoQuotas string
	// SCTP: the kernel knows the protocol.
	SCTP bool
	// HugePages are those set aside, in bytes, by the resource of their size.
	HugePages map[v1.ResourceName]int64
}

// Allocatable is what of the machine is for pods: its capacity less what is kept
// for others. 0 is unknown, and limits nothing.
type Allocatable struct {
	CPU     int64 // in thousandths of one
	Memory  int64 // in bytes
	Storage int64 // for what pods write that does not last, in bytes
	Pods    int64
}

// HookState is what a postStart hook has come to.
type HookState string

// The ends of a hook.
const (
	HookDone   HookState = "done"
	HookFailed HookState = "failed"
)

// ProbeState is what the probes of a container have come to.
type ProbeState struct {
	// Started: the startup probe has succeeded, or there is none.
	Started bool
	// Ready: the readiness probe succeeds, or there is none.
	Ready bool
	// Unhealthy is the probe that failed as often as it may, LivenessProbe or
	// StartupProbe; "" where none did. The container is to be stopped for it.
	Unhealthy string
}

// The probes that a container can be unhealthy by, as messages name them.
const (
	LivenessProbe = "liveness"
	StartupProbe  = "startup"
)

// Image is what is known of one image on this node.
type Image struct {
	Present bool
	// Failed counts the pulls that failed in a row; Retry is when to try again.
	Failed  int
	Retry   time.Time
	Message string
	// Info is what it says of itself, where it is present.
	Info runtime.ImageInfo
	// Missed counts the look-ups in a row that did not find it. Recheck is when a
	// pod that may not pull looks again, or one that cannot run this image as it is;
	// others do not wait for that.
	Missed  int
	Recheck time.Time
}

// Pull is what an image was pulled for although it was there: one attempt of a
// container of a generation.
type Pull struct {
	Container string
	UID       types.UID
	Image     string
	Attempt   int
}

// Failure is a step that failed and is tried again after Retry.
type Failure struct {
	Waiting
	Count int
	Retry time.Time
	// away: the engine did not answer, which is no fault of the step.
	away bool
}
