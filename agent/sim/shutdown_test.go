package sim

import (
	"context"
	"slices"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// groups are who is ended when the machine goes down: the critical pod last.
var groups = []agent.ShutdownGroup{{Priority: 0, Grace: 15 * time.Second}, {Priority: 2_000_000_000, Grace: 10 * time.Second}}

// groupOf is the group of a pod.
func groupOf(key pod.Key) int {
	if key == criticalKey {
		return 1
	}
	return 0
}

// inFlight is how long after a shutdown was told of a start may come that was asked
// for before.
const inFlight = 3 * time.Second

// downfall is how far a shutdown has come: when the turn of each group began.
type downfall struct {
	goes  bool
	turns [2]time.Time // zero: not yet
	last  [2]time.Time // those of the shutdown before
}

// falls reports whether the turn of a pod has come.
func (l *laws) falls(key pod.Key) bool { return !l.down.turns[groupOf(key)].IsZero() }

// fell reports whether a stop may have been begun, with its hook, by a shutdown that was
// called off meanwhile.
func (l *laws) fell(key pod.Key) bool {
	return time.Since(l.down.last[groupOf(key)]) <= groups[groupOf(key)].Grace+inFlight
}

// outOfTime reports whether a pod was given all the time that there is, its own or
// that of its group.
func (l *laws) outOfTime(key pod.Key, own time.Duration) bool {
	return l.falls(key) && time.Since(l.down.turns[groupOf(key)]) >= min(groups[groupOf(key)].Grace, own)
}

// startsInTime checks that nothing is started of a pod whose turn has come, and after
// that is over not even what was asked for before.
func (l *laws) startsInTime(c *life) {
	if !l.falls(c.Key) || !time.Now().After(l.rough) {
		return
	}
	group := groupOf(c.Key)
	over := group+1 < len(groups) && !l.down.turns[group+1].IsZero() && !l.outOfTime(c.Key, time.Hour)
	if over || time.Since(l.down.turns[group]) > inFlight {
		l.violate(shutLaw, "%s starts, and the machine goes down", c.Name)
	}
}

// turn notes that the turn of a group has come. That of the one before is over: its
// pods are, or they had their time.
func (l *laws) turn(n int) {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	l.down.goes = true
	if n > 0 {
		l.ended(n - 1)
	}
	l.down.turns[n] = time.Now()
}

// ended checks that nothing of a group runs any more that could have ended.
func (l *laws) ended(group int) {
	for _, c := range l.live {
		running := ours(c.View) && !c.IsSandbox() && c.byUs && c.State == runtime.Running && groupOf(c.Key) == group
		same := func(p *pod.Pod) bool { return p.Hash == c.PodHash }
		if running && !l.endsLate(c) && time.Now().After(l.rough) && !l.truth.unlike(c.Key, c.made, same) {
			l.violate(shutLaw, "%s runs when the turn of its group is over", c.Name)
		}
	}
}

// endsLate reports whether a container was asked to end, or its hook was, in all the time
// that its group had; or it is a sidecar that has to outlast one that was.
func (l *laws) endsLate(c *life) bool {
	hooked := l.spec(c, func(s *v1.Container) bool { return s.Lifecycle != nil && s.Lifecycle.PreStop != nil })
	if l.outOfTime(c.Key, time.Hour) && (c.told || hooked) {
		return true
	}
	v := l.version(c)
	return v != nil && l.role(c) == sidecar && slices.ContainsFunc(l.of(c.Key), func(o *life) bool {
		return !o.IsSandbox() && o.State == runtime.Running && place(v, o) > place(v, c) && l.endsLate(o)
	})
}

// upAgain ends a shutdown, after which nobody need run any more where all had their turn.
func (l *laws) upAgain(all bool) {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	if all {
		l.ended(len(groups) - 1)
	}
	l.down = downfall{last: l.down.turns}
}

// ender is a loop that is told of a shutdown, before the laws' eyes.
type ender struct {
	*reconcile.Loop
	w *world
}

func (e ender) Shutdown(ctx context.Context, s *reconcile.Shutdown) {
	e.w.laws.turn(s.Turn)
	if e.w.lies.shutdown != nil {
		s = e.w.lies.shutdown(s)
	}
	e.Loop.Shutdown(ctx, s)
}

// shutDown has the machine go down, and come up again: its agent is asked to end all
// pods before. Now and then the shutdown is called off, or the power goes.
func (d *driver) shutDown() bool {
	runs := func(c fake.View) bool { return ours(c) && !c.IsSandbox() && c.State == runtime.Running }
	if !d.goesDown || d.agent == nil || !slices.ContainsFunc(d.engine.Containers(), runs) {
		return false
	}
	most := time.Minute
	if d.r.IntN(4) == 0 {
		most = time.Duration(d.r.IntN(20)) * time.Second
	}
	if d.endAll(most); d.agent != nil && d.r.IntN(4) == 0 {
		d.callOff()
	} else {
		d.reboot()
	}
	return true
}

// standby has the critical pod be there, for a shutdown that ends it last.
func (d *driver) standby() {
	if d.goesDown {
		c := containerSpec{name: "c0", image: "app:1", words: []string{"run"}}
		d.add(critical, func() *podSpec {
			return &podSpec{name: critical, restart: "Always", grace: 5, containers: []containerSpec{c}}
		})
	}
}

// downAndUp is a shutdown with nothing else that is wrong, after which all is as before.
func (d *driver) downAndUp() {
	if !d.goesDown {
		return
	}
	d.endAll(time.Minute)
	after := "after a shutdown that was called off"
	if d.r.IntN(2) == 0 {
		d.callOff()
	} else {
		after = "after the machine was down"
		d.reboot()
		d.revive()
	}
	d.pass(7 * time.Minute)
	d.converged(after)
}

// endAll has the agent end all pods for a shutdown. That is given up after a while, or
// when the agent dies.
func (d *driver) endAll(most time.Duration) {
	d.fate.Trace("the machine goes down")
	synctest.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	i, over := d.agent, make(chan struct{})
	list := groups
	if d.lies.hurry {
		list = []agent.ShutdownGroup{{Priority: 0}, {Priority: groups[1].Priority}}
	}
	go func() {
		defer close(over)
		agent.EndPods(ctx, ender{i.loop, d.world}, list)
	}()
	for end := time.Now().Add(most); d.agent == i && !dead(over) && !dead(d.laws.enough) && time.Now().Before(end); {
		d.pass(250 * time.Millisecond)
		synctest.Wait()
	}
	all := d.agent == i && dead(over)
	cancel()
	<-over
	d.laws.upAgain(all)
}

func (d *driver) callOff() {
	d.fate.Trace("the machine does not go down")
	if !d.lies.stubborn {
		d.agent.loop.Shutdown(context.Background(), nil)
	}
}

// reboot is the machine being down for a while.
func (d *driver) reboot() {
	d.crash()
	d.laws.isRough(10 * time.Minute)
	d.engine.Down(false)
	d.pass(d.pause() / 4)
	d.engine.Up()
}
