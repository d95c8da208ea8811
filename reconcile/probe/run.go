package probe

import (
	"container/heap"
	"context"
	"reflect"
	"slices"
	"sync"
	"time"
)

// Config is how Run works.
type Config struct {
	// Check makes a check. It keeps to the check's timeout and to the context, whose
	// end makes the result void.
	Check func(context.Context, Check) Result
	// Parallel is how many checks run at a time, Execs how many of those that run a
	// command in a container, which cost far more; 0 is 64 and 8. One that takes
	// unusually long does not count any more.
	Parallel, Execs int
	// Counted is told of each check that was made; nil is nobody. It does not wait.
	Counted func(group string, t Target, kind Kind, found Outcome, took time.Duration)
}

// Run probes the targets of the updates until ctx ends, and returns when all
// checks have. It is always ready for an update, and holds reports back, in their
// order, while nobody takes them.
func Run(ctx context.Context, cfg Config, updates <-chan Update, reports chan<- []Report) {
	if cfg.Parallel == 0 {
		cfg.Parallel = 64
	}
	if cfg.Execs == 0 {
		cfg.Execs = 8
	}
	if cfg.Counted == nil {
		cfg.Counted = func(string, Target, Kind, Outcome, time.Duration) {}
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &scheduler{
		ctx: ctx, check: cfg.Check, counted: cfg.Counted, subjects: make(map[string]*subject), groups: make(map[string][]string), landed: make(chan landing),
		execs: lane{limit: cfg.Execs, slow: time.Second}, others: lane{limit: cfg.Parallel, slow: 100 * time.Millisecond},
	}
	defer s.flights.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var out chan<- []Report
		if len(s.reports) > 0 {
			out = reports
		}
		select {
		case <-ctx.Done():
			return
		case u := <-updates:
			s.update(u, time.Now())
		case l := <-s.landed:
			s.land(l, time.Now())
		case out <- s.reports:
			s.reports = nil
		case <-timer.C:
		}
		now := time.Now()
		s.launch(now)
		if wake, ok := s.wake(now); ok {
			timer.Reset(max(wake.Sub(now), 0))
		} else {
			timer.Stop()
		}
	}
}

// scheduler is what Run knows. One goroutine owns it.
type scheduler struct {
	ctx     context.Context
	check   func(context.Context, Check) Result
	counted func(group string, t Target, kind Kind, found Outcome, took time.Duration)
	flights sync.WaitGroup

	subjects      map[string]*subject // by container id
	groups        map[string][]string // of ids
	due           queue
	execs, others lane
	landed        chan landing
	reports       []Report // to be taken
}

// subject is a container.
type subject struct {
	group  string
	target Target
	probes map[Kind]*probe
}

// probe is a track with its place in the machinery.
type probe struct {
	track
	of    *subject
	at    time.Time // when it is due
	index int       // in the queue, -1 where it is not
	gone  bool      // nobody wants it any more

	// Of the check under way.
	cancel context.CancelFunc // nil where there is none
	since  time.Time
	counts bool
}

type landing struct {
	p *probe
	Result
}

// update takes the targets of a group over.
func (s *scheduler) update(u Update, now time.Time) {
	var ids []string
	for _, t := range u.Targets {
		ids = append(ids, t.ContainerID)
		c := s.subjects[t.ContainerID]
		if c == nil {
			c = &subject{group: u.Group, probes: make(map[Kind]*probe)}
			s.subjects[t.ContainerID] = c
		} else {
			t.Began = c.target.Began
		}
		c.target = t
		for _, kind := range kinds() {
			s.set(c, kind)
		}
		s.begin(c, time.Time{}, now)
	}
	for _, id := range s.groups[u.Group] {
		if !slices.Contains(ids, id) {
			for _, p := range s.subjects[id].probes {
				s.drop(p)
			}
			delete(s.subjects, id)
		}
	}
	s.groups[u.Group] = ids
	if len(ids) == 0 {
		delete(s.groups, u.Group)
	}
}

// set makes one probe of a container what its target says.
func (s *scheduler) set(c *subject, kind Kind) {
	spec, was := c.target.probe(kind), c.probes[kind]
	if was != nil && spec != nil && reflect.DeepEqual(was.spec, spec) {
		return
	}
	if was != nil {
		s.drop(was)
		delete(c.probes, kind)
	}
	if spec == nil {
		return
	}
	p := &probe{track: newTrack(kind, spec, c.target.Known), of: c, index: -1}
	if was != nil {
		p.outcome, p.done = was.outcome, was.done
	}
	c.probes[kind] = p
}

func (s *scheduler) drop(p *probe) {
	p.gone = true
	if p.index >= 0 {
		heap.Remove(&s.due, p.index)
	}
	if p.cancel != nil {
		p.cancel()
	}
}

// begin sets the times of those probes of a container that may be made now.
func (s *scheduler) begin(c *subject, gate, now time.Time) {
	first := c.probes[Startup]
	gated := first != nil && first.outcome != Success
	for _, kind := range kinds() {
		p := c.probes[kind]
		if p == nil || p.begun || p.done || gated && kind != Startup {
			continue
		}
		p.begin(c.target.ContainerID, c.target.Began, gate, now)
		s.await(p)
	}
}

func (s *scheduler) await(p *probe) {
	p.at = p.next()
	heap.Push(&s.due, p)
}

// launch starts the checks that are due and may run.
func (s *scheduler) launch(now time.Time) {
	for len(s.due) > 0 && !s.due[0].at.After(now) {
		p := heap.Pop(&s.due).(*probe)
		l := s.lane(p)
		l.waiting = append(l.waiting, p)
	}
	for _, l := range []*lane{&s.execs, &s.others} {
		for len(l.waiting) > 0 && l.room(now) {
			p := l.waiting[0]
			l.waiting = l.waiting[1:]
			if !p.gone {
				l.flying = append(l.flying, p)
				s.fly(p, now)
			}
		}
	}
}

func (s *scheduler) fly(p *probe, now time.Time) {
	ctx, cancel := context.WithCancel(s.ctx)
	p.cancel, p.since, p.counts = cancel, now, p.start(now)
	t := p.of.target
	check := Check{
		ContainerID: t.ContainerID, Address: t.Address, Ports: t.Ports, Handler: p.spec.ProbeHandler,
		Timeout: max(time.Duration(p.spec.TimeoutSeconds)*time.Second, time.Second),
	}
	s.flights.Go(func() {
		defer cancel()
		l := landing{p, s.check(ctx, check)}
		select {
		case s.landed <- l:
		case <-s.ctx.Done():
		}
	})
}

// land takes the result of a check over.
func (s *scheduler) land(l landing, now time.Time) {
	p := l.p
	lane := s.lane(p)
	lane.flying = slices.DeleteFunc(lane.flying, func(o *probe) bool { return o == p })
	p.cancel = nil
	if p.gone {
		return
	}
	s.counted(p.of.group, p.of.target, p.kind, l.Outcome, now.Sub(p.since))
	changed := p.fold(l.Outcome, p.counts)
	if changed || l.Warning || l.Outcome != Success {
		s.reports = append(s.reports, Report{
			Group: p.of.group, ContainerID: p.of.target.ContainerID, Kind: p.kind, Changed: changed, Try: !p.counts, Result: l.Result,
		})
	}
	if !p.done {
		s.await(p)
	}
	if changed && p.kind == Startup {
		s.begin(p.of, now, now)
	}
}

// wake returns when there is something to do although nothing happens.
func (s *scheduler) wake(now time.Time) (at time.Time, ok bool) {
	if len(s.due) > 0 {
		at, ok = s.due[0].at, true
	}
	for _, l := range []*lane{&s.execs, &s.others} {
		if relief := l.relief(now); !relief.IsZero() && (!ok || relief.Before(at)) {
			at, ok = relief, true
		}
	}
	return at, ok
}

func (s *scheduler) lane(p *probe) *lane {
	if p.spec.Exec != nil {
		return &s.execs
	}
	return &s.others
}

// lane bounds the checks of one sort that are under way.
type lane struct {
	limit   int
	slow    time.Duration // after which a check does not count against limit
	waiting []*probe      // first come, first served
	flying  []*probe      // in the order in which they began
}

// hung is how many checks may hang, in multiples of a lane's limit.
const hung = 16

func (l *lane) room(now time.Time) bool {
	return len(l.flying)-l.slowOnes(now) < l.limit && len(l.flying) < hung*l.limit
}

func (l *lane) slowOnes(now time.Time) int {
	i := slices.IndexFunc(l.flying, func(p *probe) bool { return now.Sub(p.since) < l.slow })
	if i < 0 {
		return len(l.flying)
	}
	return i
}

// relief returns when another check becomes slow and makes room for one that
// waits; zero for never.
func (l *lane) relief(now time.Time) time.Time {
	if i := l.slowOnes(now); len(l.waiting) > 0 && i < len(l.flying) {
		return l.flying[i].since.Add(l.slow)
	}
	return time.Time{}
}

// queue has the probes that wait for their time, as container/heap wants it.
type queue []*probe

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *queue) Push(x any) {
	p := x.(*probe)
	p.index = len(*q)
	*q = append(*q, p)
}
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q, last.index = old[:len(old)-1], -1
	return last
}
