package reconcile

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// connected: the event stream is up, so a listing from now on misses nothing.
func (s *state) connected() {
	s.online = true
	s.revision++
	if s.said {
		s.deps.Log.Info("the container engine answers again")
		s.said = false
	}
	for _, e := range s.pods {
		for key, f := range e.failures {
			if f.away {
				delete(e.failures, key)
			}
		}
	}
	for _, i := range s.images {
		i.forgive()
	}
	s.nextLook = time.Now().Add(s.cfg.Period)
	s.look(true)
	// A pod's cgroup is made as the engine makes its own: each pod needs to know.
	s.asked = s.asked || s.deps.Cgroups != nil
	if s.asked {
		s.askFeatures(0)
	}
}

// askFeatures asks the engine, which may be another than before, what it can do.
// That is asked beside the listing, or else only where a pod needs to know: the engine
// runs its helpers for their versions before it answers, in the way of what is being
// started.
func (s *state) askFeatures(delay time.Duration) {
	ctx := s.ctx
	s.spawn(func() {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return
		}
		f, err := s.deps.Runtime.Features(ctx)
		var refusal error
		if err == nil {
			refusal = s.deps.Accept(ctx, f)
		}
		s.report(ctx, func(s *state) {
			switch {
			case refusal != nil && s.features == nil:
				s.refused = refusal
			case refusal != nil:
				s.deps.Log.Error("the engine is not as it was; pods cannot be made on it", "err", refusal)
			case err == nil:
				if s.features == nil || !reflect.DeepEqual(*s.features, f) {
					s.features = &f
					s.markAll()
				}
			case s.online:
				s.deps.Log.Warn("the engine does not say what it can do", "err", err)
				s.askFeatures(time.Second)
			}
		})
	})
}

// disconnected reports whether the stream had been up.
func (s *state) disconnected(err error) bool {
	was := s.online
	s.online = false
	s.revision++
	s.dropVerdicts()
	if !s.said {
		s.deps.Log.Warn("the container engine does not answer; pods are left as they are until it does", "err", err)
		s.deps.tell(nodeEvent(s.cfg.Node.Name, false))
		s.said, s.ready = true, false
	}
	return was
}

// look lists everything of ours. all: inspect it all, not only what changed.
func (s *state) look(all bool) {
	s.fullNext = s.fullNext || all
	if s.looking {
		s.again = true
		return
	}
	s.looking, s.again = true, false
	full, asked := s.fullNext, s.seq
	s.fullNext = false
	ctx := s.ctx
	s.spawn(func() {
		list, err := s.deps.Runtime.List(ctx)
		s.report(ctx, func(s *state) { s.foldListing(list, err, asked, full) })
	})
}

// foldListing takes a listing over that was asked for at seq asked.
func (s *state) foldListing(list []runtime.Summary, err error, asked uint64, full bool) {
	s.looking = false
	switch {
	case err != nil:
		s.fullNext = s.fullNext || full
		if s.online { // else connecting looks again
			s.deps.Log.Warn("the engine's containers cannot be listed", "err", err)
			s.nextLook = time.Now().Add(time.Second)
		}
		return
	case s.again:
		defer s.look(false)
	}
	s.lastLook = time.Now()
	if !s.ready {
		s.ready = true
		s.deps.Log.Info("the node is ready")
		s.deps.tell(nodeEvent(s.cfg.Node.Name, true))
	}
	present := make(map[string]bool, len(list))
	for _, c := range list {
		present[c.ID] = true
		seen := s.sight(c.ID, c.Key)
		if full || !seen.known || seen.c.State != c.State {
			if !seen.known {
				seen.c = runtime.Container{ID: c.ID, Identity: c.Identity, State: c.State}
			}
			s.inspects.add(c.ID)
		}
	}
	for id, key := range s.byID {
		if seen := s.pods[key].seen[id]; !present[id] && seen.seq <= asked {
			s.forget(id)
		}
	}
	if full {
		s.unlink()
	}
	for _, e := range s.pods {
		if e.listAfter <= asked {
			e.listAfter = 0
		}
	}
	if !s.listed {
		s.listed = true
		s.revision++
		s.resolve()
		s.holdAdmitted(list)
		s.restorePins()
	}
	s.markAll()
}

// unlink forgets which logs are linked, so that each link is looked at again.
func (s *state) unlink() {
	for _, e := range s.pods {
		for _, seen := range e.seen {
			seen.Linked = false
		}
	}
	s.markAll()
}

func (s *state) sight(id string, key pod.Key) *sighting {
	e := s.entry(key)
	seen := e.seen[id]
	if seen == nil {
		s.seq++
		seen = &sighting{seq: s.seq}
		e.seen[id] = seen
		s.byID[id] = key
	}
	return seen
}

// forget drops a container that is gone.
func (s *state) forget(id string) {
	key, ok := s.byID[id]
	if !ok {
		return
	}
	delete(s.byID, id)
	e := s.pods[key]
	e.seen[id].endHook()
	delete(e.seen, id)
	maps.DeleteFunc(e.failures, func(step string, _ Failure) bool { return strings.HasSuffix(step, "/"+id) })
	s.mark(key)
}

// touched: an event names a container. What a wave under way is about is looked
// at when that ends; until then it would only be asked for twice.
func (s *state) touched(id string) {
	key, known := s.byID[id]
	switch {
	case !known && s.making > 0:
		s.strangers[id] = true
	case known && s.pods[key].busy && slices.ContainsFunc(s.pods[key].wave, func(step Step) bool { return step.ID == id }):
		s.pods[key].touched[id] = true
	default:
		s.inspects.add(id)
	}
}

// made: a wave that makes containers has ended. Those that events named before
// anybody knew them are its own, or will be another's, or nobody's.
func (s *state) made() {
	if s.making--; s.making > 0 {
		return
	}
	for id := range s.strangers {
		s.inspects.add(id)
	}
	s.strangers = make(map[string]bool)
}

// foldInspect takes an answer over that was asked for at seq asked.
func (s *state) foldInspect(id string, c runtime.Container, err error, asked uint64) {
	key, had := s.byID[id]
	switch {
	case errors.Is(err, runtime.ErrNotFound):
		if had && s.pods[key].seen[id].seq <= asked {
			s.forget(id)
		}
		return
	case err != nil:
		// With the stream down, connecting inspects everything.
		if s.ctx.Err() == nil && had && s.online {
			s.deps.Log.Warn("a container cannot be inspected; its pod waits", "pod", key, "id", id, "err", err)
			s.pods[key].seen[id].known = false // something may have happened to it
			s.inspects.later(s, id)
		}
		return
	}
	seen := s.sight(id, c.Key)
	if had && seen.seq > asked {
		s.inspects.add(id)
		return
	}
	s.seq++
	before := seen.c
	watched := seen.made || seen.known && !before.Ended()
	seen.c, seen.known, seen.seq = c, true, s.seq
	if !had || before.ImageID == "" {
		s.deps.Ran(c.ImageID)
	}
	if c.State == runtime.Running && before.Ended() { // somebody started it again
		seen.began, seen.Ended = time.Time{}, time.Time{}
	}
	if c.State == runtime.Running && seen.began.IsZero() {
		seen.began = happenedAt(time.Now(), s.cfg.Wall(), c.Started, watched)
	}
	if c.Ended() && seen.Ended.IsZero() {
		seen.Ended = happenedAt(time.Now(), s.cfg.Wall(), c.Finished, watched)
		if watched && !c.IsSandbox() {
			t := terminationOf(c)
			s.deps.Log.Info("container ended", "pod", c.Key, "container", c.Name, "attempt", c.Attempt, "exitCode", c.ExitCode, "reason", t.Reason)
		}
	}
	s.mark(c.Key)
}

// inspectQueue limits how many inspections are under way. An id that is asked
// for while its answer is awaited is asked for again.
type inspectQueue struct {
	wanted  []string
	pending map[string]bool // in wanted
	flying  map[string]bool
}

const maxInspects = 32

func (q *inspectQueue) add(id string) {
	if q.pending == nil {
		q.pending, q.flying = make(map[string]bool), make(map[string]bool)
	}
	if !q.pending[id] {
		q.pending[id] = true
		q.wanted = append(q.wanted, id)
	}
}

// start sends out as many inspections as may be under way.
func (q *inspectQueue) start(s *state) {
	var held []string // an answer about these is awaited
	next := 0
	for ; next < len(q.wanted) && len(q.flying) < maxInspects; next++ {
		id := q.wanted[next]
		if q.flying[id] {
			held = append(held, id)
			continue
		}
		delete(q.pending, id)
		q.flying[id] = true
		asked, ctx := s.seq, s.ctx
		s.spawn(func() {
			c, err := s.deps.Runtime.Inspect(ctx, id)
			s.report(ctx, func(s *state) {
				delete(q.flying, id)
				s.foldInspect(id, c, err, asked)
			})
		})
	}
	q.wanted = q.wanted[next:]
	if len(held) > 0 {
		q.wanted = append(held, q.wanted...)
	}
}

// later asks again after a second.
func (q *inspectQueue) later(s *state, id string) {
	ctx := s.ctx
	s.spawn(func() {
		select {
		case <-time.After(time.Second):
			s.report(ctx, func(s *state) { s.inspects.add(id) })
		case <-ctx.Done():
		}
	})
}
