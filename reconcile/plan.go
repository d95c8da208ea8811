package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// Input is everything that the plan of one pod depends on. Plan reads it and
// nothing else, and changes nothing in it.
type Input struct {
	Key pod.Key
	// Desired is what the sources want; nil where nobody wants the key.
	Desired *pod.Pod
	// MayRemove is law 1 for the origin of what runs; Why says why not.
	MayRemove bool
	Why       string
	// Observed has every sandbox and container of ours that bears the key.
	Observed []runtime.Container
	// Records has what the root dir remembers under the key, by UID.
	Records map[types.UID]Record
	// Refused is why the pod is not admitted; zero where it is.
	Refused Waiting
	// Images by name as written; a missing entry is an image not looked at yet.
	Images map[string]Image
	// Pulled has, by container name, the attempt for which the image was pulled.
	Pulled map[string]int
	// Failures has the last failed step by container name, "POD" for the sandbox
	// and what concerns the whole pod.
	Failures map[string]Failure
	// Ended has when a container ended, by id, on the clock of Now.
	Ended map[string]time.Time
	// Linked and Updated have, by container id, what was done in this process:
	// the log link, the limits last set.
	Linked  map[string]bool
	Updated map[string]runtime.Resources
	Node    Node
	// Now is the monotonic clock, Wall the time to remember and show.
	Now, Wall time.Time
}

// Node is what the plan needs to know of the machine.
type Node struct {
	Name    string
	RootDir string
	Memory  int64 // bytes
}

// Image is what is known of one image on this node.
type Image struct {
	Present bool
	// Failed counts the pulls that failed in a row; Retry is when to try again.
	Failed  int
	Retry   time.Time
	Message string
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
	gens := generations(in.Observed)
	current := -1
	if want != nil {
		current = in.match(gens, want)
	}
	var uid types.UID
	switch {
	case current >= 0:
		uid = gens[current].uid
	case want != nil:
		uid = in.uidFor(want)
	}
	reason := Removed
	if want != nil {
		reason = PodChanged
	}
	plan.UID, plan.Pod = uid, want
	if current < 0 && in.Refused != (Waiting{}) && len(gens) > 0 && want != nil {
		// The old version goes on as long as the new one cannot start.
		plan.Blocked, plan.UID, plan.Pod = in.Refused, gens[0].uid, in.Records[gens[0].uid].Pod
		return plan
	}
	plan.Steps = in.teardown(gens, current, uid, reason)
	if want == nil || len(plan.Steps) > 0 {
		in.holdBack(&plan)
		// Replacement is in order: nothing starts before the old one is gone.
		if want != nil {
			plan.Blocked = Waiting{ContainerCreating, "waits until the pod's former generation is gone"}
		}
		return plan
	}
	var containers []runtime.Container
	if current >= 0 {
		containers = gens[current].containers
	}
	g := &generationPlan{in: in, plan: plan, pod: want, uid: uid, observed: byAttempt(containers), record: in.Records[uid]}
	g.run()
	in.holdBack(&g.plan)
	return g.plan
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

// generation is the containers of one incarnation: one UID and one pod hash.
type generation struct {
	uid        types.UID
	hash       pod.Hash
	containers []runtime.Container
}

// generations sorts what is observed into incarnations, by UID, then hash.
func generations(observed []runtime.Container) []generation {
	var gens []generation
	for _, c := range observed {
		i := slices.IndexFunc(gens, func(g generation) bool { return g.uid == c.UID && g.hash == c.PodHash })
		if i < 0 {
			i = len(gens)
			gens = append(gens, generation{uid: c.UID, hash: c.PodHash})
		}
		gens[i].containers = append(gens[i].containers, c)
	}
	slices.SortFunc(gens, func(a, b generation) int {
		return cmp.Or(cmp.Compare(a.uid, b.uid), cmp.Compare(a.hash.String(), b.hash.String()))
	})
	return gens
}

func (g generation) runs() bool {
	return slices.ContainsFunc(g.containers, func(c runtime.Container) bool { return c.State == runtime.Running })
}

// match returns the index of the generation that is an incarnation of want, one
// that runs first; -1 for none.
func (in Input) match(gens []generation, want *pod.Pod) int {
	found := -1
	for i, g := range gens {
		if !in.same(g.uid, g.hash, want) {
			continue
		}
		if found < 0 || g.runs() && !gens[found].runs() {
			found = i
		}
	}
	return found
}

// same reports whether a generation with that UID and hash is want. A hash of
// this version decides; with one of another version the admitted pod is compared
// field by field, and where that is lost the generation is left alone.
func (in Input) same(uid types.UID, hash pod.Hash, want *pod.Pod) bool {
	if explicit := want.ExplicitUID(); explicit != "" && explicit != uid {
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
// one, and folders that no container is left of.
func (in Input) teardown(gens []generation, current int, uid types.UID, reason Reason) []Step {
	var steps []Step
	observed := make(map[types.UID]bool)
	for i, g := range gens {
		observed[g.uid] = true
		if i == current {
			continue
		}
		why := reason
		if current >= 0 {
			why = Superseded
		}
		steps = append(steps, in.teardownOne(g, why, current >= 0 && gens[current].uid == g.uid)...)
	}
	for _, left := range slices.Sorted(maps.Keys(in.Records)) {
		if left == uid || observed[left] {
			continue
		}
		steps = append(steps, Step{Verb: RemoveFolder, Pod: in.Key, UID: left, Reason: reason})
	}
	if rec, ok := in.Records[uid]; ok && current < 0 && !observed[uid] && rec.Pod != nil && steps == nil {
		// The folder of an explicit UID whose containers are gone belongs to the
		// generation that made it.
		if want := in.Desired; want != nil && !in.same(uid, rec.Pod.Hash, want) {
			steps = append(steps, Step{Verb: RemoveFolder, Pod: in.Key, UID: uid, Reason: PodChanged})
		}
	}
	return steps
}

func (in Input) teardownOne(g generation, reason Reason, keepFolder bool) []Step {
	var steps []Step
	wave := 0
	add := func(verb Verb, c runtime.Container) {
		s := Step{Verb: verb, Pod: in.Key, UID: g.uid, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: reason, Wave: wave}
		switch {
		case verb == StopContainer && c.IsSandbox():
			s.Grace = minGrace
		case verb == StopContainer:
			s.Grace = max(c.Grace, minGrace)
		}
		steps = append(steps, s)
	}
	next := func() {
		if len(steps) > 0 {
			wave = steps[len(steps)-1].Wave + 1
		}
	}
	list := byAttempt(g.containers)
	for _, c := range list {
		if !c.IsSandbox() && c.State == runtime.Running {
			add(StopContainer, c)
		}
	}
	next()
	for _, c := range list {
		switch {
		case !c.IsSandbox():
			add(RemoveContainer, c)
		case c.State == runtime.Running:
			add(StopContainer, c)
		}
	}
	next()
	for _, c := range list {
		if c.IsSandbox() {
			add(RemoveContainer, c)
		}
	}
	next()
	if !keepFolder {
		steps = append(steps, Step{Verb: RemoveFolder, Pod: in.Key, UID: g.uid, Reason: reason, Wave: wave})
	}
	return steps
}

func backOffMessage(delay time.Duration, container string, key pod.Key) string {
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, container, key)
}
