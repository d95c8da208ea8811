package reconcile

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
)

// entry is all that is known under one key.
type entry struct {
	key      pod.Key
	desired  *pod.Pod
	seen     map[string]*sighting
	records  map[types.UID]Record
	pulled   map[Pull]bool
	failures map[string]Failure
	written  map[VolumeKey][]volume.File
	cgroups  map[types.UID]CgroupSet
	targets  []probe.Target // as handed over last
	// fresh are images that were pulled for the pod, until a container is made from them.
	fresh map[string]bool
	// touched are ids that events named while a wave was about them.
	touched map[string]bool
	// listAfter, if not 0, holds the pod back until a listing that was asked for at
	// that seq or later.
	listAfter uint64
	admitted  *pod.Pod // the version that holds its ports
	refused   Waiting
	unpinned  Waiting // why it has no CPUs of its own
	pressed   bool    // for what the node is short of
	// again is the generation that is to be restarted by hand, as long as that is not
	// written down; "" is none.
	again types.UID
	anew  map[string]string // as Input has it, until it is written down
	// verdict is what was found about a generation and is not written down yet. out
	// and emptied are as Input has them.
	verdict *pod.Verdict
	out     map[types.UID]time.Time
	emptied map[types.UID]time.Time
	vacated map[types.UID]bool // as Input has it

	plan   Plan
	ending time.Time // since when its plans have ended containers
	begun  map[types.UID]time.Time
	busy   bool // a wave is under way
	queued queued
	wave   []Step
	began  time.Time
	wake   time.Time
	phase  v1.PodPhase // last logged
}

// sighting is one container as last seen.
type sighting struct {
	c runtime.Container
	// known: c is complete. The pod is not planned before all of its are.
	known bool
	// made: by this process, which therefore saw all of its life.
	made bool
	// began is when it started, on the monotonic clock; zero where it has not.
	began time.Time
	// seq of the last thing learnt of it; an answer to an older question is void.
	seq uint64

	Learnt
	hook *hookRun // its postStart hook, under way
	// complaints are what its probes found last, by their kinds.
	complaints map[probe.Kind]Complaint
}

func (s *state) entry(key pod.Key) *entry {
	e := s.pods[key]
	if e == nil {
		e = &entry{
			key:      key,
			seen:     make(map[string]*sighting),
			records:  make(map[types.UID]Record),
			anew:     make(map[string]string),
			pulled:   make(map[Pull]bool),
			fresh:    make(map[string]bool),
			failures: make(map[string]Failure),
			written:  make(map[VolumeKey][]volume.File),
			begun:    make(map[types.UID]time.Time),
			cgroups:  make(map[types.UID]CgroupSet),
			out:      make(map[types.UID]time.Time),
			emptied:  make(map[types.UID]time.Time),
			vacated:  make(map[types.UID]bool),
			touched:  make(map[string]bool),
		}
		s.pods[key] = e
	}
	return e
}

func (e *entry) known() bool {
	if e.listAfter > 0 {
		return false
	}
	for _, c := range e.seen {
		if !c.known {
			return false
		}
	}
	return true
}

func (e *entry) observed() []runtime.Container {
	list := make([]runtime.Container, 0, len(e.seen))
	for _, c := range e.seen {
		list = append(list, c.c)
	}
	slices.SortFunc(list, compareAttempts)
	return list
}

func (e *entry) learnt() map[string]Learnt {
	all := make(map[string]Learnt, len(e.seen))
	for id, c := range e.seen {
		all[id] = c.Learnt
	}
	return all
}

// note has the instant, on the monotonic clock, of something that is remembered of
// a generation by the wall clock; once noted it does not move with that. A zero time
// is forgotten.
func note(instants map[types.UID]time.Time, uid types.UID, at time.Time, in Input) {
	switch _, known := instants[uid]; {
	case at.IsZero():
		delete(instants, uid)
	case !known:
		instants[uid] = happenedAt(in.Now, in.Wall, at, false)
	}
}

// keepLogs is for how long what is left of a pod stays: not at all where another one
// waits for its UID, or while the disk is short.
func (s *state) keepLogs(e *entry) time.Duration {
	if s.pressure.Disk.now() || slices.ContainsFunc(s.conflicts, func(c pod.Conflict) bool { return c.UID != "" && c.Holder == e.key }) {
		return 0
	}
	return s.cfg.KeepLogs
}

// input gathers what the plan of a pod depends on.
func (s *state) input(e *entry) Input {
	s.needDigestKey(e)
	if e.desired != nil {
		clear(e.vacated) // they may be made again
	}
	in := Input{
		Key: e.key, Desired: e.desired, MayRemove: true,
		Observed: e.observed(), Records: e.records,
		Images: make(map[string]Image), Pulled: e.pulled, Failures: e.failures,
		Learnt: e.learnt(), Ending: e.ending, Begun: e.begun,
		Held: s.held[e.key], Again: e.again, Anew: e.anew, Verdict: e.verdict, Out: e.out, Emptied: e.emptied, Vacated: e.vacated, Pressure: s.pressure, Shutdown: s.shutdown,
		Objects: s.objects, DigestKey: s.digestKey, Written: e.written,
		PodCgroups: s.deps.Cgroups != nil, Cgroups: e.cgroups,
		Features: s.features, Policy: s.cfg.Policy, Node: s.cfg.Node, KeepLogs: s.keepLogs(e), Now: time.Now(), Wall: s.cfg.Wall(),
	}
	for uid, rec := range e.records {
		var out time.Time
		if rec.State.Evicted != nil {
			out = rec.State.Evicted.At
		}
		note(e.begun, uid, rec.State.Admitted, in)
		note(e.out, uid, out, in)
	}
	if e.desired != nil {
		in.Unheard = s.unheard[e.desired.Origin]
	}
	if holder := in.Holder(); e.desired == nil || holder.Origin == nil || *holder.Origin != e.desired.Origin {
		in.MayRemove, in.Why = s.set.MayRemove(holder.Source, holder.Origin)
	}
	look := func(p *pod.Pod) {
		if p == nil {
			return
		}
		for _, m := range members(p.Object) {
			for _, need := range neededBy(p.Object, m.Container) {
				if image := s.images[imageKeyOf(p, need.name)]; image != nil && image.known {
					if _, looked := in.Images[need.name]; !looked {
						in.Images[need.name] = image.Image
					}
				}
			}
		}
	}
	want, _ := in.wanted()
	look(want)
	for _, rec := range e.records {
		look(rec.Pod) // may have to go on where want is refused
	}
	return in
}
