package reconcile

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

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
	if len(in.Observed) == 0 && (in.Desired != nil || in.leaving()) {
		return in.Desired, "" // nothing runs that could be lost
	}
	if len(in.Observed) > 0 {
		return in.Records[holder.UID].Pod, in.Why
	}
	return nil, in.Why
}

// leaving reports whether only folders are left, whose removal has begun.
func (in Input) leaving() bool {
	for _, rec := range in.Records {
		if !rec.State.Leaving {
			return false
		}
	}
	return len(in.Records) > 0
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
	current = slices.Grow(current, len(observed)) // mostly there is nothing else
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
	if explicit := want.ExplicitUID(); explicit != "" && explicit != uid || in.Records[uid].State.Leaving || uid == in.Again {
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
