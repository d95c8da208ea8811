package reconcile

import (
	"container/heap"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
)

// Store is the root dir, by names relative to it. Writes are atomic.
type Store interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte) error
	Entries(dir string) ([]string, error)
	// RemovePod removes pods/<uid>; one that is gone is success.
	RemovePod(uid types.UID) error
}

// Volumes makes the volumes of a pod available on the host. Calls for one pod do
// not overlap.
type Volumes interface {
	// Ensure makes the volume, or checks it; it is called before each create.
	Ensure(ctx context.Context, r volume.Request) error
	// Path is where Ensure puts it. It does no I/O.
	Path(r volume.Request) string
	// SubPath returns where a part of the volume, which is there, can be mounted from.
	SubPath(r volume.Request, p volume.Part) (string, error)
	// ReadFile returns the content of a file in the volume, which is there, of at
	// most limit bytes.
	ReadFile(r volume.Request, path string, limit int64) ([]byte, error)
	// Hosts makes the content be that of the pod's hosts file and returns its path.
	Hosts(uid types.UID, content []byte) (path string, err error)
	// Remove unmounts and removes all volumes of a pod that live in its folder.
	Remove(uid types.UID) error
}

// Logs keeps the links by which log shippers find container logs.
type Logs interface {
	Link(c runtime.Container) error
	Unlink(key pod.Key, uid types.UID) error
}

// Cgroups keeps the cgroups of pods. It is told to make one only after [Deps.Accept]
// has heard of the engine.
type Cgroups interface {
	// EnsurePod makes a pod's cgroup, or finds it there, and returns what the engine is
	// to be told as the parent of its containers; "" where pods have none. A folder of
	// the pod in the root dir says from then on whose it is.
	EnsurePod(ctx context.Context, p cgroup.Pod) (parent string, err error)
	// SetPod changes the limits of the cgroup of a pod that was made in parent. With
	// grow none is made tighter.
	SetPod(ctx context.Context, parent string, p cgroup.Pod, grow bool) error
	// RemovePod removes a pod's cgroup and kills what is left in it. One that is gone,
	// or never was, is success.
	RemovePod(ctx context.Context, uid types.UID) error
}

// Credentials knows how to log in to registries.
type Credentials interface {
	// Find returns the logins to try for an image, the best first: what the secrets
	// have for it, then what the node has. With an error it returns those that could
	// be had all the same; it says nothing of what stands in a secret.
	Find(ctx context.Context, image string, secrets []*pod.Object) ([]runtime.Auth, error)
}

// Config is how the loop works. Zero values are usable but for Node.
type Config struct {
	Node   Node
	Policy Policy
	// Parallel is how many pods make or start containers at a time; 0 is 8. More
	// than the cores can feed only makes all of them late.
	Parallel int
	// Period is that of the full look; 0 is 5 min.
	Period time.Duration
	// KeepLogs is for how long containers of a pod that nobody wants stay after they
	// ended, unless it comes back; 0 is not at all.
	KeepLogs time.Duration
	// Wall is the clock for times that are remembered and shown; nil is time.Now.
	Wall func() time.Time
	// LookOnly makes plans and takes none of their steps.
	LookOnly bool
}

// Deps are what the loop reads and acts through.
type Deps struct {
	Runtime runtime.Runtime
	Store   Store
	Volumes Volumes
	Logs    Logs
	// Cgroups are of pods; nil makes none.
	Cgroups Cgroups
	// Accept is told each time what the engine can do. The first time, an error ends
	// Run; later ones are said. Nil accepts everything.
	Accept func(context.Context, runtime.Features) error
	// Credentials are for pulls; nil is none.
	Credentials Credentials
	// Messages are files of their own; nil reads none.
	Messages Messages
	// NodeFile reads a file of the node that says how names are resolved there; nil
	// finds none.
	NodeFile func(path string) ([]byte, error)
	Log      *slog.Logger
	// Check makes the checks of probes; nil is nobody, and no container is probed.
	Check func(context.Context, probe.Check) probe.Result
	// Get makes the request of an HTTP hook and returns the status; nil is nobody.
	Get func(context.Context, probe.Check) (int, error)
	// Events is told what happens to pods; nil is nobody. It does not wait.
	Events pod.Sink
	// Progress is told how pulls go; nil is nobody.
	Progress func(runtime.PullProgress)
	// Ran is told the ID of each image that was pulled, or that a container of ours
	// has; nil is nobody. It does not wait.
	Ran func(imageID string)
	// Counts is told what the loop does; nil is nobody.
	Counts Counts
}

// Loop is the handle to a running loop.
type Loop struct {
	cfg  Config
	deps Deps
	// reports carries what others found out or did to the goroutine that owns the
	// state, as a function that folds it in.
	reports chan func(*state)
}

// slowCall is how long a call may take before it no longer counts against
// Config.Parallel: a hung one delays its own pod only (law 7).
const slowCall = 5 * time.Second

// New returns a loop that Run runs.
func New(cfg Config, deps Deps) *Loop {
	if cfg.Parallel == 0 {
		cfg.Parallel = 8
	}
	if cfg.Period == 0 {
		cfg.Period = 5 * time.Minute
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if cfg.LookOnly {
		deps.Events = nil // nothing happens
	}
	if deps.Accept == nil {
		deps.Accept = func(context.Context, runtime.Features) error { return nil }
	}
	if deps.Counts == nil {
		deps.Counts = uncounted{}
	}
	if deps.Ran == nil {
		deps.Ran = func(string) {}
	}
	if deps.NodeFile == nil {
		deps.NodeFile = func(string) ([]byte, error) { return nil, fs.ErrNotExist }
	}
	return &Loop{cfg: cfg, deps: deps, reports: make(chan func(*state))}
}

// Run keeps the pods of the newest set that it receives until ctx ends, and
// returns when all that it started has returned. It leaves the pods running.
func (l *Loop) Run(ctx context.Context, sets <-chan pod.Set) error {
	s := newState(l)
	if err := s.load(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer s.tasks.Wait()
	defer cancel()
	s.ctx = ctx
	s.spawn(func() { l.watch(ctx) })
	reports := make(chan []probe.Report)
	if s.probes() {
		s.spawn(func() { probe.Run(ctx, probe.Config{Check: l.deps.Check, Counted: l.probed}, s.targets, reports) })
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var began time.Time
		select {
		case <-ctx.Done():
			return nil
		case set := <-sets:
			began = time.Now()
			s.setDesired(set)
		case report := <-l.reports:
			began = time.Now()
			report(s)
		case list := <-reports:
			began = time.Now()
			s.foldProbes(list)
		case <-timer.C:
			began = time.Now()
			s.wakeDue(began)
		}
		s.drain(l.reports)
		if s.refused != nil {
			return s.refused
		}
		s.work()
		now := time.Now()
		l.deps.Counts.Turned(now.Sub(began))
		timer.Reset(s.nextWake(now))
	}
}

// LinkAgain has the link of every log looked at again.
func (l *Loop) LinkAgain(ctx context.Context) {
	l.report(ctx, func(s *state) { s.unlink() })
}

// report hands f to the goroutine that owns the state; it gives up when ctx ends.
func (l *Loop) report(ctx context.Context, f func(*state)) {
	select {
	case l.reports <- f:
	case <-ctx.Done():
	}
}

// watch keeps the event stream up, and asks for a full look each time it is.
func (l *Loop) watch(ctx context.Context) {
	changed := make(chan string)
	var relay sync.WaitGroup
	relay.Go(func() {
		for {
			select {
			case id := <-changed:
				l.report(ctx, func(s *state) { s.touched(id) })
			case <-ctx.Done():
				return
			}
		}
	})
	defer relay.Wait()
	const first, most = 100 * time.Millisecond, 5 * time.Second
	delay := first
	for ctx.Err() == nil {
		err := l.deps.Runtime.Watch(ctx, func() {
			l.report(ctx, func(s *state) { s.connected() })
		}, changed)
		if ctx.Err() != nil {
			return
		}
		up := make(chan bool, 1)
		l.report(ctx, func(s *state) { up <- s.disconnected(err) })
		select {
		case was := <-up:
			if was {
				delay = first
			}
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(delay):
			delay = min(2*delay, most)
		case <-ctx.Done():
			return
		}
	}
}

// alarm is a pod to look at again at an instant.
type alarm struct {
	at  time.Time
	key pod.Key
}

type alarms []alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(alarm)) }
func (a *alarms) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}

// wakeDue marks the pods whose time has come.
func (s *state) wakeDue(now time.Time) {
	for len(s.alarms) > 0 && !now.Before(s.alarms[0].at) {
		a := heap.Pop(&s.alarms).(alarm)
		if e := s.pods[a.key]; e != nil && e.wake.Equal(a.at) {
			e.wake = time.Time{}
			s.mark(a.key)
		}
	}
	if !s.nextLook.IsZero() && !now.Before(s.nextLook) {
		s.nextLook = now.Add(s.cfg.Period)
		s.look(true)
		s.pruneImages()
	}
}

// setAlarm asks for another look at a pod at that instant.
func (s *state) setAlarm(e *entry, at time.Time) {
	if at.Equal(e.wake) {
		return
	}
	e.wake = at
	if !at.IsZero() {
		heap.Push(&s.alarms, alarm{at, e.key})
	}
}

const idle = time.Hour

// nextWake returns how long there is nothing to do unless something happens.
func (s *state) nextWake(now time.Time) time.Duration {
	wait := idle
	sooner := func(at time.Time) {
		if d := at.Sub(now); d < wait {
			wait = max(d, 0)
		}
	}
	if len(s.alarms) > 0 {
		sooner(s.alarms[0].at)
	}
	if !s.nextLook.IsZero() {
		sooner(s.nextLook)
	}
	if len(s.heavy) > 0 && s.online {
		for _, e := range s.starting {
			sooner(e.began.Add(slowCall))
		}
	}
	return wait
}

// unavailable reports whether an error says that the engine is away, which is no
// fault of the pod.
func unavailable(err error) bool { return errors.Is(err, runtime.ErrUnavailable) }
