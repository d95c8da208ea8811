package reconcile

import (
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

const (
	heldMessage    = "stopped by hand; it runs again when it is started by hand"
	renewedMessage = "restarted by hand"
)

// hold ends what runs of the pod, in its order, and takes its sandbox away. What it
// did before counts for nothing when it is started: it has to be admitted again, and
// no back-off is left.
func (g *generationPlan) hold() {
	g.state.Restart = Restart{}
	g.plan.Blocked = Waiting{PodStopped, heldMessage}
	left := g.endForNow(g.in, PodStopped, heldMessage)
	if left {
		g.plan.Blocked.Reason = PodStopping
	}
	g.removeStrays()
	g.retireSandboxes(runtime.Container{})
	if _, up := runningSandbox(g.observed); !left && !up {
		g.state.Admitted = time.Time{}
	}
	for _, m := range g.members {
		if was, known := g.state.Containers[m.Name]; known {
			was.Level = 0
			g.state.Containers[m.Name] = was
		}
		if !g.runs(m) && !g.done(m) {
			g.wait(m.Name, g.plan.Blocked)
		}
	}
}

// endForNow ends the containers that run, in their order, and reports whether there
// are any. That it was we who ended them is written down first: whatever their
// restartPolicy, they run again.
func (g *generationPlan) endForNow(in Input, reason Reason, message string) bool {
	left := slices.DeleteFunc(slices.Clone(g.observed), func(c runtime.Container) bool { return c.IsSandbox() || c.State != runtime.Running })
	for _, c := range left {
		if g.record.State.container(c.Name).Stopped.ID != c.ID {
			g.wave = 1
		}
		was := g.state.container(c.Name)
		was.Stopped = Stopped{ID: c.ID, Message: message, Again: true, Edit: true}
		g.state.Containers[c.Name] = was
	}
	first := g.wave
	for _, s := range in.ending(left, g.pod, reason) {
		s.Wave += first
		g.add(s)
		g.wave = s.Wave + 1
	}
	g.plan.Ending = len(left) > 0
	return g.plan.Ending
}

// renew takes over which containers are to be restarted by hand: the next attempt
// follows at once, however this one ends or ended.
func (g *generationPlan) renew() {
	for name, id := range g.in.Anew {
		if c, ok := g.newest(name); !ok || c.ID != id {
			continue
		}
		was := g.state.container(name)
		was.Stopped = Stopped{ID: id, Message: renewedMessage, Again: true, Edit: true, ByHand: true}
		was.Level = 0
		g.state.Containers[name] = was
	}
}

// renewed reports whether a container is to be replaced since somebody asked for that.
func (g *generationPlan) renewed(c runtime.Container) bool {
	stopped := g.state.container(c.Name).Stopped
	return stopped.ByHand && stopped.ID == c.ID
}
