package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podkeeper/podkeeper/node/logind"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// ShutdownGroup is pods that are ended together when the machine goes down: see
// reconcile.ShutdownGroup.
type ShutdownGroup = reconcile.ShutdownGroup

// loginManager is what holds the machine up: see logind.Manager.
type loginManager interface {
	MaxDelay() (time.Duration, error)
	Preparing() (bool, error)
	Hold(who, why string) (io.Closer, error)
	Next(ctx context.Context) (down bool, err error)
	Close()
}

// Ender ends pods for a shutdown, and tells of them: see reconcile.Loop.
type Ender interface {
	Shutdown(context.Context, *reconcile.Shutdown)
	Snapshot(ctx context.Context, after uint64) (reconcile.Snapshot, error)
}

// goingDown ends the pods in order before the machine goes down.
type goingDown struct {
	groups  []ShutdownGroup // by rising priority; none is nothing to do
	connect func(context.Context) (loginManager, error)
	loop    Ender
	log     *slog.Logger
}

// watchShutdown holds shutdowns of the machine up until ctx ends.
func (p *parts) watchShutdown(ctx context.Context) error {
	connect := func(ctx context.Context) (loginManager, error) { return logind.Connect(ctx) }
	return goingDown{groups: p.cfg.Shutdown, connect: connect, loop: p.loop, log: p.log}.run(ctx)
}

// How long after the connection was lost it is made anew, and how long after there
// was none.
const (
	loginAgain = 5 * time.Second
	loginFirst = time.Minute
)

func (g goingDown) run(ctx context.Context) error {
	if len(g.groups) == 0 {
		return nil
	}
	for again, told := false, false; ctx.Err() == nil; told = true {
		pause := loginFirst // most likely there is no systemd
		m, err := g.connect(ctx)
		if err == nil {
			err = g.watch(ctx, m, again)
			m.Close()
			again = true
		}
		if ctx.Err() != nil {
			return nil
		}
		if again {
			pause = loginAgain
		}
		if again || !told {
			g.log.Warn("a shutdown of the machine does not wait for pods now", "err", err, "retry", pause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return nil
}

// watch does what the login manager tells, until the connection or ctx ends.
func (g goingDown) watch(ctx context.Context, m loginManager, again bool) error {
	most, err := m.MaxDelay()
	if err != nil {
		return err
	}
	down, err := m.Preparing() // nobody may have listened to what it told
	if err != nil {
		return err
	}
	switch {
	case down:
		g.log.Info("the machine goes down already: pods are ended at once")
		g.loop.Shutdown(ctx, &reconcile.Shutdown{Groups: g.groups, Turn: len(g.groups) - 1})
	case again:
		g.loop.Shutdown(ctx, nil)
	}
	var all time.Duration
	for _, group := range g.groups {
		all += group.Grace
	}
	if most < all {
		g.log.Warn("a shutdown of the machine waits for pods less long than they are given: raise InhibitDelayMaxSec",
			"waits", most, "given", all, "cure", fmt.Sprintf("InhibitDelayMaxSec=%d in [Login] of /etc/systemd/logind.conf.d/podkeeper.conf, then systemctl kill -s HUP systemd-logind", int(all.Seconds())))
	}
	group, ctx := errgroup.WithContext(ctx)
	news := make(chan bool)
	group.Go(func() error {
		for {
			down, err := m.Next(ctx)
			if err != nil {
				return err
			}
			select {
			case news <- down:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	group.Go(func() error { return g.follow(ctx, m, down, news) })
	return group.Wait()
}

// follow holds a lock but while the machine goes down and all has ended. down: it does
// already, when no lock can be had.
func (g goingDown) follow(ctx context.Context, m loginManager, down bool, news <-chan bool) error {
	var lock io.Closer
	hold := func() (err error) {
		if lock == nil {
			lock, err = m.Hold("podkeeper", "pods are given time to end")
		}
		return err
	}
	defer func() {
		if lock != nil {
			lock.Close()
		}
	}()
	if !down {
		if err := hold(); err != nil {
			return err
		}
	}
	ended := make(chan struct{}, 1) // room for one: nobody waits to tell
	stop := func() {}
	defer func() { stop() }()
	for {
		select {
		case now := <-news:
			if now == down {
				continue
			}
			down = now
			stop()
			if down {
				g.log.Info("the machine goes down: pods are ended")
				stop = g.begin(ctx, ended)
				continue
			}
			stop = func() {}
			g.log.Info("the machine does not go down after all: pods run again")
			g.loop.Shutdown(ctx, nil)
			if err := hold(); err != nil {
				return err
			}
		case <-ended:
			g.log.Info("pods have ended: the machine may go down")
			if lock != nil {
				lock.Close()
				lock = nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// begin ends the pods in a goroutine that tells ended. stop makes it give up, and
// waits for it.
func (g goingDown) begin(ctx context.Context, ended chan struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if EndPods(ctx, g.loop, g.groups); ctx.Err() == nil {
			ended <- struct{}{}
		}
	}()
	return func() {
		cancel()
		<-over
		select { // what it told may be unread
		case <-ended:
		default:
		}
	}
}

// EndPods ends the pods of all groups, one group after the other, and waits for each
// as long as it gets. It gives up when ctx ends.
func EndPods(ctx context.Context, loop Ender, groups []ShutdownGroup) {
	for turn := 0; turn < len(groups) && ctx.Err() == nil; turn++ {
		endGroup(ctx, loop, reconcile.Shutdown{Groups: groups, Turn: turn})
	}
}

// endGroup ends the pods whose turn it is, and waits for them as long as they get.
func endGroup(ctx context.Context, loop Ender, d reconcile.Shutdown) {
	loop.Shutdown(ctx, &d) // whatever time they get
	ctx, cancel := context.WithTimeout(ctx, d.Groups[d.Turn].Grace)
	defer cancel()
	var after uint64
	for {
		snap, err := loop.Snapshot(ctx, after)
		if err != nil {
			return
		}
		after = max(snap.Revision, 1)
		if snap.Ready && !slices.ContainsFunc(snap.Pods, func(v reconcile.View) bool { return awaited(v, d) }) {
			return
		}
	}
}

// awaited reports whether a pod is to end now, and still runs or may do so in a moment:
// something of it is being started. One that is not planned yet, or is being removed, may
// be of any group.
func awaited(v reconcile.View, d reconcile.Shutdown) bool {
	if v.Plan.Pod == nil {
		return runs(v) && !v.Settled()
	}
	return d.Group(v.Plan.Pod.Object) <= d.Turn && (runs(v) || v.Busy)
}

func runs(v reconcile.View) bool {
	return slices.ContainsFunc(v.Containers, func(c runtime.Container) bool { return !c.IsSandbox() && c.State == runtime.Running })
}
