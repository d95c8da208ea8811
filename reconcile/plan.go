package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
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
	// Features are what the engine can do; nil where it has not said so yet.
	Features *runtime.Features
	// Policy says what pods may have of the machine.
	Policy Policy
	// Images by name as written; a missing entry is an image not looked at yet.
	Images map[string]Image
	// Pulled has the last pull of an image that was made for a container.
	Pulled map[Pull]bool
	// Failures has the last failed step by container name, "POD" for the sandbox
	// and what concerns the whole pod.
	Failures map[string]Failure
	// Ended has when a container ended, by id, on the clock of Now.
	Ended map[string]time.Time
	// Linked and Updated have, by container id, what was done in this process:
	// the log link, the limits last set.
	Linked  map[string]bool
	Updated map[string]runtime.Resources
	// Probes has, by container id, what the probes of a running container have
	// found; one without an entry has not been probed yet.
	Probes map[string]ProbeState
	// Hooks has, by container id, what postStart hooks that ended have come to.
	Hooks map[string]HookState
	// Messages has, by container id, what a container said of its end.
	Messages map[string]string
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
	// Ending is since when the containers of the pod are being ended, on the clock
	// of Now; zero where they are not.
	Ending time.Time
	Node   Node
	// Now is the monotonic clock, Wall the time to remember and show.
	Now, Wall time.Time

	frozen Waiting // why nothing is created for the pod
}

// Node is what the plan needs to know of the machine.
type Node struct {
	Name    string
	RootDir string
	// Memory and Storage (where the root dir is) are in bytes, CPUs are whole ones;
	// 0 is unknown.
	Memory, Storage, CPUs int64
	// Addresses are the node's, the preferred one first, one of each family.
	Addresses []string
	// ResolvConf is the file of the resolvers of pods; "" is the node's own.
	ResolvConf string
	ClusterDNS ClusterDNS
	// PodPIDs is how many processes and threads a pod may have; 0 is no limit.
	PodPIDs int64
	// NoQuotas is why the sizes of claims do not hold; "" where they do.
	NoQuotas string
	// SCTP: the kernel knows the protocol.
	SCTP bool
	// HugePages are those set aside, in bytes, by the resource of their size.
	HugePages map[v1.ResourceName]int64
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

// PlanPod says what to do about one pod now. It is a pure function (law 2).
func PlanPod(in Input) Plan {
	plan := Plan{Key: in.Key}
	want, kept := in.wanted()
	plan.Kept = kept
	if want == nil && kept != "" {
		return plan
	}
	uid, current, former := in.split(want)
	if want != nil && in.Refused != (Waiting{}) {
		switch {
		case slices.ContainsFunc(current, liveSandbox):
			return in.planFormer(uid)
		case len(current) == 0 && slices.ContainsFunc(former, liveSandbox):
			return in.planFormer(former[0].UID)
		}
	}
	plan.UID, plan.Pod = uid, want
	plan.Steps = in.teardown(want, uid, current, former)
	plan.Ending = slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Verb == StopContainer })
	in.leave(&plan, uid, current, former)
	if want == nil || len(plan.Steps) > 0 {
		in.holdBack(&plan)
		// Replacement is in order: nothing starts before the old one is gone.
		if want != nil && plan.Blocked == (Waiting{}) {
			plan.Blocked = Waiting{ContainerCreating, "waits until the pod's former generation is gone"}
		}
		return plan
	}
	g := &generationPlan{in: in, plan: plan, pod: want, uid: uid, members: members(want.Object), observed: current, record: in.Records[uid]}
	g.run()
	in.holdBack(&g.plan)
	return g.plan
}

// planFormer lets the old version go on as long as the new one is refused. One
// that has no sandbox any more has lost its ports: it is left as it is, as is one
// of which nobody remembers what it was. Where the old one, too, asks for what it
// may not have any more, what runs of it runs on and nothing is created.
func (in Input) planFormer(uid types.UID) Plan {
	was := in.Records[uid].Pod
	plan := Plan{Key: in.Key, UID: uid, Pod: was, Blocked: in.Refused}
	if was == nil || !running(in.Observed, was.Hash) {
		return plan
	}
	refused := in.Refused
	if want, _ := in.wanted(); sameAdmitted(was, want) {
		refused = Waiting{} // it is no edit that is refused
	}
	in.frozen = cmp.Or(in.Policy.refusal(was), in.unsupported(was))
	in.Desired, in.MayRemove, in.Refused = was, true, Waiting{}
	plan = PlanPod(in)
	plan.Blocked = cmp.Or(plan.Blocked, refused)
	return plan
}

// holdBack takes out the steps that failed and wait for their time, and all
// that was to come after them.
func (in Input) holdBack(plan *Plan) {
	last := -1 // wave of the earliest step held back
	plan.Steps = slices.DeleteFunc(plan.Steps, func(s Step) bool {
		f, ok := in.Failures[s.failureKey()]
		if !ok || !in.Now.Before(f.Retry) {
			return false
		}
		if s.Changes() && (last < 0 || s.Wave < last) {
			last = s.Wave
			plan.Blocked = f.Waiting
		}
		if plan.Wake.IsZero() || f.Retry.Before(plan.Wake) {
			plan.Wake = f.Retry
		}
		return true
	})
	if last >= 0 {
		plan.Steps = slices.DeleteFunc(plan.Steps, func(s Step) bool { return s.Wave > last })
	}
}

// wanted returns the version of the pod to keep running, nil for none. Where
// law 1 forbids to follow an absence, it is what was admitted last.
func (in Input) wanted() (want *pod.Pod, kept string) {
	holder := in.Holder()
	if admitted := in.Records[holder.UID].Pod; in.Desired != nil && in.Unheard && len(in.Observed) > 0 && !sameAdmitted(admitted, in.Desired) {
		// What a source kept may be older than what runs, unless that shows it is not.
		if admitted != nil || !in.madeFrom(in.Desired) {
			return admitted, fmt.Sprintf("%s says nothing usable", in.Desired.Origin)
		}
	}
	if in.MayRemove || in.Desired != nil && (holder.Origin == nil || *holder.Origin == in.Desired.Origin) {
		return in.Desired, ""
	}
	if in.Desired != nil && len(in.Observed) == 0 {
		return in.Desired, "" // nothing runs that could be lost
	}
	if len(in.Observed) > 0 {
		return in.Records[holder.UID].Pod, in.Why
	}
	return nil, in.Why
}

// madeFrom reports whether that version is what everything that is there, of each
// container the newest attempt, was made from.
func (in Input) madeFrom(p *pod.Pod) bool {
	newest := make(map[string]runtime.Container)
	for _, c := range byAttempt(in.Observed) {
		newest[c.Name] = c
	}
	for name, c := range newest {
		if c.PodHash != p.Hash || !c.IsSandbox() && c.ContainerHash != p.Containers[name] {
			return false
		}
	}
	return true
}

func liveSandbox(c runtime.Container) bool { return c.IsSandbox() && c.State == runtime.Running }

// Holder is the generation that stands for the key now.
type Holder struct {
	UID    types.UID
	Source pod.SourceKind
	// Origin is where it comes from; nil where that is not remembered.
	Origin *pod.Origin
}

// Holder returns the generation that runs, else one that left something.
func (in Input) Holder() Holder {
	var h Holder
	rank := func(c runtime.Container) int {
		switch {
		case c.State != runtime.Running:
			return 1
		case !c.IsSandbox():
			return 2
		default:
			return 3
		}
	}
	best := 0
	for _, c := range byAttempt(in.Observed) {
		if r := rank(c); r > best || r == best && c.UID < h.UID {
			best, h = r, Holder{UID: c.UID, Source: c.Source}
		}
	}
	if best == 0 {
		for _, uid := range slices.Sorted(maps.Keys(in.Records)) {
			h.UID = uid
			break
		}
	}
	if rec, ok := in.Records[h.UID]; ok {
		h.Origin = rec.State.Origin
		if h.Origin == nil && rec.Pod != nil {
			h.Origin = &rec.Pod.Origin
		}
		if h.Origin != nil && h.Source == "" {
			h.Source = h.Origin.Source.Kind
		}
	}
	return h
}

// split tells the containers of the generation that is want from those of
// others, each by rising attempt, and names its UID.
func (in Input) split(want *pod.Pod) (uid types.UID, current, former []runtime.Container) {
	observed := byAttempt(in.Observed)
	if want == nil {
		return "", nil, observed
	}
	found, runs := false, false
	for _, c := range observed {
		if !in.same(c.UID, c.PodHash, want) {
			continue
		}
		running := c.State == runtime.Running
		if !found || running && !runs || running == runs && c.UID < uid {
			uid, found, runs = c.UID, true, running
		}
	}
	if !found {
		return in.uidFor(want), nil, observed
	}
	for _, c := range observed {
		if c.UID == uid && in.same(c.UID, c.PodHash, want) {
			current = append(current, c)
		} else {
			former = append(former, c)
		}
	}
	return uid, current, former
}

// same reports whether a generation with that UID and hash is want. A hash of
// this version decides; with one of another version the admitted pod is compared
// field by field, and where that is lost the generation is left alone.
func (in Input) same(uid types.UID, hash pod.Hash, want *pod.Pod) bool {
	if explicit := want.ExplicitUID(); explicit != "" && explicit != uid || in.Records[uid].State.Leaving {
		return false
	}
	if hash.Version == want.Hash.Version {
		return hash == want.Hash
	}
	rec := in.Records[uid]
	return rec.Pod == nil || len(manifests.Changed(rec.Pod.Object, want.Object).Pod) == 0
}

// uidFor returns the UID of a pod of which nothing is observed: the one it had,
// where its folder is still there, so that its volumes stay; else a new one.
func (in Input) uidFor(want *pod.Pod) types.UID {
	for _, uid := range slices.Sorted(maps.Keys(in.Records)) {
		if rec := in.Records[uid]; rec.Pod != nil && in.same(uid, rec.Pod.Hash, want) {
			return uid
		}
	}
	if explicit := want.ExplicitUID(); explicit != "" {
		return explicit
	}
	return manifests.MintUID(in.Node.RootDir, in.Node.Name, want.Key(), want.Hash)
}

// teardown returns the steps that take away every generation but the current
// one: containers, then sandboxes, then folders, also those that no container is
// left of.
func (in Input) teardown(want *pod.Pod, uid types.UID, current, former []runtime.Container) []Step {
	reason := Removed
	switch {
	case want != nil && len(current) > 0:
		reason = Superseded
	case want != nil:
		reason = PodChanged
	}
	steps := in.removal(former, reason)
	wave := 0
	if len(steps) > 0 {
		wave = steps[len(steps)-1].Wave + 1
	}
	folders := make(map[types.UID]bool)
	for _, c := range former {
		folders[c.UID] = true
	}
	for left, rec := range in.Records {
		other := rec.State.Leaving || rec.Pod != nil && want != nil && !in.same(left, rec.Pod.Hash, want)
		folders[left] = left != uid || folders[left] || other
	}
	if len(current) > 0 {
		delete(folders, uid)
	}
	for _, left := range slices.Sorted(maps.Keys(folders)) {
		if folders[left] {
			steps = append(steps, Step{Verb: RemoveFolder, UID: left, Reason: reason, Wave: wave})
		}
	}
	for i := range steps {
		steps[i].Pod = in.Key
	}
	return steps
}

// leave writes down, beside the first step of a removal, that it has begun.
func (in Input) leave(plan *Plan, uid types.UID, current, former []runtime.Container) {
	for _, c := range former {
		state := in.Records[c.UID].State
		if state.Leaving || c.UID == uid && len(current) > 0 {
			continue
		}
		state.Key, state.Leaving = in.Key, true
		plan.State = state
		plan.Steps = append([]Step{{Verb: SaveState, Pod: in.Key, UID: c.UID, Reason: Recorded}}, plan.Steps...)
		return
	}
}

func backOffMessage(delay time.Duration, container string, key pod.Key) string {
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, container, key)
}
