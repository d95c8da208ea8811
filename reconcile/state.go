package reconcile

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
)

// state is all that the loop knows. One goroutine owns it.
type state struct {
	*Loop
	ctx   context.Context
	tasks sync.WaitGroup // everything that spawn started

	set       pod.Set
	unheard   map[pod.Origin]bool // see pod.Set.Unheard
	haveSet   bool
	conflicts []pod.Conflict
	objects   objects // replaced as a whole
	// suppliers have the objects that several origins supply, as kept or being kept.
	// lookedAt: every source was looked at once.
	suppliers         map[pod.ObjectKey]pod.Origin
	keeping, lookedAt bool
	digestKey         DigestKey
	// held are the pods that are stopped by hand, replaced as a whole once holds, the
	// changes of that, are written down.
	held  map[pod.Key]time.Time
	holds []holdChange

	pods map[pod.Key]*entry
	// orphans are pods' folders of which nobody remembers whose they are.
	orphans map[types.UID]orphan
	byID    map[string]pod.Key
	due     map[pod.Key]bool
	ledger  *Ledger
	cpus    *CPULedger
	allCPUs string // that there are
	room    *Room
	// asking has the pods that wait for a port of another: the version refused. Those
	// in awaiting have theirs as soon as the former version of another is gone.
	asking   map[pod.Key]*pod.Pod
	awaiting map[pod.Key]bool

	pressure Pressure // as told last
	stood    standing // and how that was when it was last looked at
	since    Since
	shutdown *Shutdown         // as told last
	features *runtime.Features // nil until the engine has said
	asked    bool              // for them, since a pod waits to hear
	refused  error             // why the engine will not do
	images   map[imageKey]*image
	going    []runtime.StoredImage // being removed: see letGo
	// met has the pods that were wanted since the loop began, or counted as orphans: what
	// is heard late of one that is gone counts for nothing.
	met map[pod.Key]bool

	// The engine, as seen from here.
	online   bool // the event stream is up
	listed   bool // a listing came, once
	said     bool // that it is away
	ready    bool // it was told that the node is
	looking  bool // a listing is under way
	again    bool // another is wanted after it
	fullNext bool // and that one inspects everything
	nextLook time.Time
	lastLook time.Time // when a listing came last, or the loop began
	seq      uint64    // rises with each thing learnt
	inspects inspectQueue
	// making counts the waves under way that make containers; strangers are ids of
	// events that may be of those.
	making    int
	strangers map[string]bool

	targets chan probe.Update // to who makes the probes

	// light and heavy are the pods with a wave to start, first come first served; heavy
	// ones start containers. starting are those under way that count against Parallel.
	light, heavy []pod.Key
	starting     []*entry
	alarms       alarms

	revision uint64 // from 1
	waiters  []waiter
}

func newState(l *Loop) *state {
	began := l.cfg.Wall()
	return &state{
		since:     Since{began, began, began, began},
		Loop:      l,
		pods:      make(map[pod.Key]*entry),
		orphans:   make(map[types.UID]orphan),
		byID:      make(map[string]pod.Key),
		due:       make(map[pod.Key]bool),
		ledger:    NewLedger(),
		met:       make(map[pod.Key]bool),
		cpus:      NewCPULedger(l.cfg.Node.Pinning),
		allCPUs:   l.cfg.Node.Pinning.All().String(),
		room:      NewRoom(l.cfg.Node.Capacity()),
		asking:    make(map[pod.Key]*pod.Pod),
		awaiting:  make(map[pod.Key]bool),
		strangers: make(map[string]bool),
		images:    make(map[imageKey]*image),
		targets:   make(chan probe.Update),

		asked:    l.deps.Cgroups != nil,
		revision: 1,
		lastLook: time.Now(),
	}
}

// load reads what the root dir remembers. A file that cannot be read costs what
// it says, never a container (law 5).
func (s *state) load() error {
	s.loadDigestKey()
	s.loadSuppliers()
	s.loadHolds()
	uids, err := s.deps.Store.Entries("pods")
	if err != nil {
		return err
	}
	for _, name := range uids {
		uid := types.UID(name)
		var rec Record
		s.loadFile(podFileName(uid), func(data []byte) (err error) {
			rec.Pod, err = decodePod(data)
			return err
		})
		s.loadFile(stateFileName(uid), func(data []byte) (err error) {
			rec.State, err = decodeState(data)
			return err
		})
		key := rec.State.Key
		if rec.Pod != nil {
			key = rec.Pod.Key()
		}
		if key != (pod.Key{}) {
			s.entry(key).records[uid] = rec
		} else {
			s.orphans[uid] = orphan{}
		}
	}
	return nil
}

func (s *state) loadFile(name string, decode func([]byte) error) {
	data, err := s.deps.Store.ReadFile(name)
	if err == nil {
		err = decode(data)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.deps.Log.Warn("a remembered file cannot be read and counts as lost", "file", name, "err", err)
	}
}

// mark makes a pod due for another plan.
func (s *state) mark(key pod.Key) { s.due[key] = true }

func (s *state) markAll() {
	for key := range s.pods {
		s.mark(key)
	}
}

// spawn runs f in a goroutine that Run waits for.
func (s *state) spawn(f func()) { s.tasks.Go(f) }

// drain folds in what else has been reported, so that one look covers it all.
func (s *state) drain(reports <-chan func(*state)) {
	for {
		select {
		case report := <-reports:
			report(s)
		default:
			return
		}
	}
}

// setDesired takes a new set over.
func (s *state) setDesired(set pod.Set) {
	for key, e := range s.pods {
		if e.plan.Kept != "" {
			s.mark(key) // it waited for the word of a source
		}
	}
	s.deps.tell(problemEvents(s.set, set)...)
	s.set, s.unheard, s.haveSet = set, set.Unheard(), true
	s.revision++
	s.resolve()
}

// resolve decides which claim holds each key, and marks what that changes. It
// waits for the first listing: who runs a key keeps it.
func (s *state) resolve() {
	if !s.haveSet || !s.listed {
		return
	}
	holders := make(map[pod.Key]pod.Holder)
	for key, e := range s.pods {
		if h, ok := s.holder(e); ok {
			holders[key] = h
		}
	}
	desired, conflicts := s.set.Resolve(holders)
	s.sayConflicts(append(conflicts, s.resolveObjects()...))
	for key, want := range desired {
		e := s.entry(key)
		if e.desired == nil || !sameAdmitted(e.desired, want) {
			clear(e.failures)
			s.mark(key)
		}
		e.desired, s.met[e.key] = want, true
	}
	for key, e := range s.pods {
		if desired[key] == nil {
			if e.desired != nil {
				clear(e.failures)
			}
			e.desired = nil
			s.mark(key)
		}
	}
}

// holder returns who runs the key, or left something under its UID: a folder
// that is still to be removed must not be another's by then. An origin that only
// supplies what was kept of it holds nothing that is not recorded as its own: after
// a restart it would not either.
func (s *state) holder(e *entry) (pod.Holder, bool) {
	if len(e.seen) == 0 && len(e.records) == 0 && !e.busy {
		return pod.Holder{}, false
	}
	h := Input{Observed: e.observed(), Records: e.records}.Holder()
	if h.UID == "" {
		h.UID = e.plan.UID // its first step is under way
	}
	holder := pod.Holder{UID: h.UID}
	switch {
	case e.desired != nil && (h.Origin == nil || !s.unheard[e.desired.Origin]):
		holder.Origin = e.desired.Origin
	case h.Origin != nil:
		holder.Origin = *h.Origin
	}
	return holder, true
}

// passOn resolves the keys again when a pod has left a UID that another, which
// was refused it, waits for.
func (s *state) passOn(e *entry) {
	if !slices.ContainsFunc(s.conflicts, func(c pod.Conflict) bool { return c.UID != "" && c.Holder == e.key }) {
		return
	}
	h, _ := s.holder(e)
	for _, c := range s.conflicts {
		if c.Holder == e.key && c.UID != h.UID && (e.desired == nil || c.UID != e.desired.ExplicitUID()) {
			s.resolve()
			return
		}
	}
}

func (s *state) sayConflicts(conflicts []pod.Conflict) {
	for _, c := range conflicts {
		if slices.Contains(s.conflicts, c) {
			continue
		}
		switch {
		case c.Object != (pod.ObjectKey{}):
			s.deps.Log.Warn("object is named twice: the second is ignored", "object", c.Object, "source", c.Winner, "ignored", c.Loser)
		case c.UID != "":
			s.deps.Log.Warn("pod is refused: its uid is in use by another", "pod", c.Key, "uid", c.UID, "holder", c.Holder, "source", c.Loser, "other", c.Winner)
		default:
			s.deps.Log.Warn("pod is named twice: the second is ignored", "pod", c.Key, "source", c.Winner, "ignored", c.Loser)
		}
	}
	s.conflicts = conflicts
}

// work plans every due pod and starts what there is to do.
func (s *state) work() {
	if now := s.standing(); now != s.stood {
		s.since, s.stood = s.since.after(s.stood, now, s.cfg.Wall()), now
		s.revision++
	}
	defer s.notify()
	if !s.haveSet || !s.listed {
		return
	}
	s.planDue()
	if s.makeRoom() {
		s.planDue()
	}
	s.startQueued()
	s.sweep()
	s.inspects.start(s)
}

// planDue plans every due pod and starts what there is to do, critical ones first: the
// others need not make room for them then.
func (s *state) planDue() {
	for len(s.due) > 0 {
		keys := slices.SortedFunc(maps.Keys(s.due), func(a, b pod.Key) int {
			return cmp.Or(cmp.Compare(s.rank(a), s.rank(b)), a.Compare(b))
		})
		s.due = make(map[pod.Key]bool) // a map that was large once takes long to walk for good
		for _, key := range keys {
			if e := s.pods[key]; e != nil {
				s.consider(e)
				s.probe(e)
			}
		}
		s.startQueued()
	}
}

// rank is 0 for a critical pod that is wanted, 1 for others.
func (s *state) rank(key pod.Key) int {
	if e := s.pods[key]; e != nil && e.desired != nil && pod.Critical(e.desired.Object) {
		return 0
	}
	return 1
}

// consider plans one pod and queues its first wave.
func (s *state) consider(e *entry) {
	if e.busy || !e.known() {
		return
	}
	s.revision++
	in := s.input(e)
	s.admit(e, &in)
	s.pin(e, &in)
	was := e.plan
	began := time.Now()
	e.plan = PlanPod(in)
	s.deps.Counts.Planned(len(e.plan.Steps), time.Since(began))
	s.deps.tell(waitEvents(was, e.plan)...)
	if e.plan.Asks && !s.asked {
		s.asked = true
		s.askFeatures(0)
	}
	if !e.plan.Ending {
		e.ending = time.Time{}
	} else if e.ending.IsZero() {
		e.ending = in.Now
	}
	if e.desired == nil && e.plan.Pod == nil && !s.met[e.key] && len(in.Observed) > 0 {
		s.met[e.key] = true
		s.deps.Counts.Orphaned()
	}
	e.carried()
	e.restarted()
	s.release(e, in.Observed)
	s.unpin(e, in.Observed)
	s.setAlarm(e, e.plan.Wake)
	s.sayPhase(e, in.Observed)
	s.fetchImages(e)
	s.runHooks(e)
	e.wave = e.plan.FirstWave()
	if len(e.wave) > 0 {
		s.enqueue(e)
	} else if e.desired == nil && len(e.seen) == 0 && len(e.records) == 0 {
		delete(s.pods, e.key)
	}
	s.passOn(e)
}

// sayPhase logs a pod's change of phase.
func (s *state) sayPhase(e *entry, observed []runtime.Container) {
	if e.plan.Pod == nil {
		e.phase = ""
		return
	}
	phase := e.plan.Phase
	if phase == "" {
		phase = s.status(e, observed, e.plan.Pod, e.plan.UID).Phase
	}
	if phase == e.phase {
		return
	}
	args := []any{"pod", e.key}
	if e.phase != "" {
		args = append(args, "was", string(e.phase))
	}
	if at := e.plan.State.Admitted; e.phase == v1.PodPending && phase == v1.PodRunning && !at.IsZero() {
		s.deps.Counts.Up(s.cfg.Wall().Sub(at))
	}
	e.phase = phase
	s.deps.Log.Info("pod is "+string(phase), args...)
}
