package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// diary notes what happens, with the seconds since its beginning.
type diary struct {
	mu    sync.Mutex
	begun time.Time
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf("%d ", int(time.Since(d.begun).Seconds()))+fmt.Sprintf(format, args...))
}

// fakeLogin is a login manager that a test speaks for.
type fakeLogin struct {
	*diary
	most time.Duration
	down bool      // already when the agent starts
	news chan bool // closed: the connection is lost
}

func (f *fakeLogin) MaxDelay() (time.Duration, error) { return f.most, nil }

func (f *fakeLogin) Hold(string, string) (io.Closer, error) {
	f.note("held")
	return closer(func() { f.note("released") }), nil
}

func (f *fakeLogin) Next(ctx context.Context) (bool, error) {
	select {
	case down, ok := <-f.news:
		if !ok {
			return false, io.EOF
		}
		return down, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (f *fakeLogin) Preparing() (bool, error) { return f.down, nil }

func (f *fakeLogin) Close() {}

type closer func()

func (c closer) Close() error { c(); return nil }

// fakeLoop has pods that end some time after their turn has come.
type fakeLoop struct {
	*diary
	pods []fakePod
	// knows is how long it does not know what runs, plans how long it plans nothing then.
	knows, plans time.Duration

	mu      sync.Mutex
	ends    map[string]time.Time
	changed chan struct{}
}

type fakePod struct {
	name     string
	priority int32
	takes    time.Duration
	// starts is how long it is being started at first.
	starts time.Duration
}

// later has who waits look again when that long has passed since the beginning.
func (l *fakeLoop) later(d time.Duration) { time.AfterFunc(d, func() { l.changed <- struct{}{} }) }

func (l *fakeLoop) Shutdown(ctx context.Context, d *reconcile.Shutdown) {
	if ctx.Err() != nil {
		return // as the loop may
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d == nil {
		l.note("called off")
		l.ends = map[string]time.Time{}
		return
	}
	l.note("turn %d", d.Turn)
	for _, p := range l.pods {
		if _, ends := l.ends[p.name]; !ends && d.Group(p.object().Object) <= d.Turn {
			l.ends[p.name] = time.Now().Add(p.takes)
			time.AfterFunc(p.takes, func() { l.changed <- struct{}{} })
		}
	}
}

func (p fakePod) object() *pod.Pod {
	object := &v1.Pod{Spec: v1.PodSpec{Priority: &p.priority}}
	object.Name = p.name
	return &pod.Pod{Object: object}
}

func (l *fakeLoop) Snapshot(ctx context.Context, after uint64) (reconcile.Snapshot, error) {
	if after > 0 {
		select {
		case <-l.changed:
		case <-ctx.Done():
			return reconcile.Snapshot{}, ctx.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	snap := reconcile.Snapshot{Revision: after + 1, Ready: time.Since(l.begun) >= l.knows}
	if !snap.Ready {
		return snap, nil
	}
	for _, p := range l.pods {
		c := runtime.Container{State: runtime.Running}
		c.Name = "c"
		if at, ends := l.ends[p.name]; ends && !time.Now().Before(at) {
			c.State = runtime.Exited
		}
		view := reconcile.View{Plan: reconcile.Plan{Pod: p.object()}, Containers: []runtime.Container{c}}
		if time.Since(l.begun) < p.starts {
			view.Containers[0].State, view.Busy = runtime.Created, true
		}
		if time.Since(l.begun) < l.knows+l.plans {
			view.Plan, view.Busy = reconcile.Plan{}, true
		}
		snap.Pods = append(snap.Pods, view)
	}
	return snap, nil
}

// Pods end by priority, each group within its period; then the machine may go down.
func TestMachineGoesDown(t *testing.T) {
	groups := []ShutdownGroup{{Priority: 0, Grace: 20 * time.Second}, {Priority: 2000000000, Grace: 10 * time.Second}}
	for name, c := range map[string]struct {
		groups []ShutdownGroup // the two above where none
		pods   []fakePod
		// See fakeLoop.
		knows, plans time.Duration
		most         time.Duration
		down         bool
		do           func(f *fakeLogin)
		want         []string
		says         string
	}{
		"pods that end soon": {
			pods: []fakePod{{"a", 0, 3 * time.Second, 0}, {"b", 5, time.Second, 0}, {"c", 2000000000, 2 * time.Second, 0}}, most: time.Minute,
			do:   func(f *fakeLogin) { f.news <- true; time.Sleep(time.Hour) },
			want: []string{"0 held", "0 turn 0", "3 turn 1", "5 released"},
		},
		"one that does not end": {
			pods: []fakePod{{"a", 0, time.Hour, 0}, {"c", 2000000000, 2 * time.Second, 0}}, most: time.Minute,
			do:   func(f *fakeLogin) { f.news <- true; time.Sleep(time.Minute) },
			want: []string{"0 held", "0 turn 0", "20 turn 1", "30 released"},
		},
		"an agent that does not know yet what runs": {
			pods: []fakePod{{"a", 0, 8 * time.Second, 0}, {"c", 2000000000, 2 * time.Second, 0}}, knows: 3 * time.Second, plans: 4 * time.Second, most: time.Minute,
			do:   func(f *fakeLogin) { f.news <- true; time.Sleep(time.Minute) },
			want: []string{"0 held", "0 turn 0", "8 turn 1", "10 released"},
		},
		"one that is just being started": {
			pods: []fakePod{{"a", 0, 3 * time.Second, time.Second}}, most: time.Minute,
			do:   func(f *fakeLogin) { f.news <- true; time.Sleep(time.Minute) },
			want: []string{"0 held", "0 turn 0", "3 turn 1", "3 released"},
		},
		"an engine that does not answer": {
			knows: time.Hour, most: time.Minute,
			do:   func(f *fakeLogin) { f.news <- true; time.Sleep(time.Minute) },
			want: []string{"0 held", "0 turn 0", "20 turn 1", "30 released"},
		},
		"nobody runs": {
			most: time.Minute,
			do:   func(f *fakeLogin) { f.news <- true; time.Sleep(time.Minute) },
			want: []string{"0 held", "0 turn 0", "0 turn 1", "0 released"},
		},
		"it is called off meanwhile": {
			pods: []fakePod{{"a", 0, 10 * time.Second, 0}}, most: time.Minute,
			do: func(f *fakeLogin) {
				f.news <- true
				time.Sleep(5 * time.Second)
				f.news <- false
				time.Sleep(time.Minute)
			},
			want: []string{"0 held", "0 turn 0", "5 called off", "65 released"},
		},
		"it is called off afterwards, and goes down in the end": {
			pods: []fakePod{{"a", 0, time.Second, 0}}, most: time.Minute,
			do: func(f *fakeLogin) {
				f.news <- true
				time.Sleep(5 * time.Second)
				f.news <- false
				time.Sleep(5 * time.Second)
				f.news <- true
				time.Sleep(5 * time.Second)
			},
			want: []string{"0 held", "0 turn 0", "1 turn 1", "1 released", "5 called off", "5 held", "10 turn 0", "11 turn 1", "11 released"},
		},
		"a group without time": {
			groups: []ShutdownGroup{{Priority: 0, Grace: 20 * time.Second}, {Priority: 2000000000}},
			pods:   []fakePod{{"a", 0, 3 * time.Second, 0}, {"c", 2000000000, 2 * time.Second, 0}}, most: time.Minute,
			do:   func(f *fakeLogin) { f.news <- true; time.Sleep(time.Minute) },
			want: []string{"0 held", "0 turn 0", "3 turn 1", "3 released"},
		},
		"it goes down already when the agent starts, and is called off": {
			pods: []fakePod{{"a", 0, 3 * time.Second, 0}}, most: time.Minute, down: true,
			do: func(f *fakeLogin) {
				f.news <- true // told again
				time.Sleep(5 * time.Second)
				f.news <- false
				time.Sleep(5 * time.Second)
			},
			want: []string{"0 turn 1", "5 called off", "5 held", "10 released"},
		},
		"the machine waits for less": {
			most: 5 * time.Second, do: func(*fakeLogin) {}, want: []string{"0 held", "0 released"}, says: "InhibitDelayMaxSec=30",
		},
		"the connection is lost": {
			most: time.Minute, do: func(f *fakeLogin) { close(f.news); time.Sleep(7 * time.Second) },
			want: []string{"0 held", "0 released", "5 called off", "5 held", "5 released"}, says: "does not wait for pods now",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{begun: time.Now()}
				f := &fakeLogin{diary: d, most: c.most, down: c.down, news: make(chan bool)}
				var said strings.Builder
				if c.groups == nil {
					c.groups = groups
				}
				loop := &fakeLoop{diary: d, pods: c.pods, knows: c.knows, plans: c.plans, ends: map[string]time.Time{}, changed: make(chan struct{}, 100)}
				g := goingDown{
					groups: c.groups, log: slog.New(slog.NewTextHandler(&said, nil)),
					connect: func(context.Context) (loginManager, error) { return f, nil },
					loop:    loop,
				}
				loop.later(c.knows)
				loop.later(c.knows + c.plans)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- g.run(ctx) }()
				synctest.Wait()
				c.do(f)
				synctest.Wait()
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(c.want, d.lines); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if !strings.Contains(said.String(), c.says) || c.says == "" && strings.Contains(said.String(), "WARN") {
					t.Errorf("it says %s", said.String())
				}
				time.Sleep(2 * time.Hour) // timers of pods that never end
			})
		})
	}
}

// Without systemd that is said once and asked again now and then, and without periods
// nothing is asked.
func TestNoLoginManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		d := &diary{begun: time.Now()}
		f := &fakeLogin{diary: d, most: time.Minute, news: make(chan bool)}
		g := goingDown{log: slog.New(slog.NewTextHandler(&said, nil)), connect: func(context.Context) (loginManager, error) {
			if d.note("asked"); time.Since(d.begun) < 150*time.Second {
				return nil, errors.New("no bus")
			}
			return f, nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Second)
		defer cancel()
		if err := g.run(ctx); err != nil || len(d.lines) != 0 {
			t.Errorf("without periods: %v, %q", err, d.lines)
		}
		g.groups = []ShutdownGroup{{Grace: time.Second}}
		if err := g.run(ctx); err != nil {
			t.Error(err)
		}
		want := []string{"0 asked", "60 asked", "120 asked", "180 asked", "180 held", "181 released"}
		if diff := cmp.Diff(want, d.lines); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if strings.Count(said.String(), "WARN") != 1 {
			t.Errorf("it says %s", said.String())
		}
	})
}
