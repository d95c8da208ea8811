package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/node/kernel"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// countPeriod is how often kills are counted where the kernel's log cannot be read.
const countPeriod = 10 * time.Second

// watchOOM tells of processes that the kernel kills for want of memory, until ctx
// ends.
func (p *parts) watchOOM(ctx context.Context) error {
	err := kernel.WatchOOM(ctx, func(k kernel.Kill) {
		snap, err := p.loop.Snapshot(ctx, 0)
		if err != nil {
			return
		}
		if e, ok := killed(k, snap.Pods); ok {
			p.say(e)
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	p.log.Warn("the kernel's log cannot be read: it is not told when the machine runs out of memory, nor which process of a container was killed", "err", err)
	return p.countOOM(ctx)
}

// killed says what a kill is to people. ok is false for one that is none of our
// business: in a cgroup at its limit that holds nothing of ours (law 6).
func killed(k kernel.Kill, pods []reconcile.View) (e pod.Event, ok bool) {
	c, ours := owner(k.Cgroup, pods)
	e = pod.Event{Type: pod.EventWarning, Reason: pod.OOMKilling, Pod: c.Key, UID: c.UID, Container: c.Name}
	short := "memory limit reached"
	switch {
	case k.System:
		e.Reason = pod.SystemOOM
		short = "the machine is out of memory"
	case !ours:
		return pod.Event{}, false
	case k.Limit != "" && !strings.Contains(k.Limit, c.ID):
		short = "memory limit of " + k.Limit + " reached"
	}
	e.Message = fmt.Sprintf("%s: process %d (%s) was killed", short, k.PID, k.Process)
	return e, true
}

// owner returns whose cgroup that is: its name has the container's id in it, with
// every driver.
func owner(cgroup string, pods []reconcile.View) (runtime.Container, bool) {
	for _, v := range pods {
		for _, c := range v.Containers {
			if strings.Contains(cgroup, c.ID) {
				return c, true
			}
		}
	}
	return runtime.Container{}, false
}

// countOOM tells of kills in containers by what their cgroups count.
func (p *parts) countOOM(ctx context.Context) error {
	tick := time.NewTicker(countPeriod)
	defer tick.Stop()
	var counts oomCounts
	var seen uint64
	for {
		snap, err := p.loop.Snapshot(ctx, seen)
		if err == nil && !snap.Ready {
			seen = snap.Revision
			continue
		}
		seen = 0
		if err == nil {
			var list []pod.Event
			counts, list = counts.look(snap.Pods, p.usage.OOMKills)
			for _, e := range list {
				p.say(e)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// oomCounts are the kills in each container, by its id, as last counted; nil is
// before the first look.
type oomCounts map[string]int64

// look counts again, and returns what happened since. In a container that ended the
// cgroup is gone: what the engine says of its main process is left.
func (was oomCounts) look(pods []reconcile.View, count func(stats.Process) (int64, bool)) (oomCounts, []pod.Event) {
	now := make(oomCounts)
	var list []pod.Event
	for _, v := range pods {
		for _, c := range v.Containers {
			kills, ok := was[c.ID], true
			switch {
			case c.IsSandbox():
				continue
			case c.State == runtime.Running:
				kills, ok = count(stats.Process{ID: c.ID, PID: c.PID})
			case c.OOMKilled && c.ExitCode == 137:
				kills = max(kills, 1)
			}
			if !ok {
				kills = was[c.ID]
			}
			now[c.ID] = kills
			if was != nil && kills > was[c.ID] {
				list = append(list, pod.Event{
					Type: pod.EventWarning, Reason: pod.OOMKilling, Pod: c.Key, UID: c.UID, Container: c.Name,
					Message: "memory limit reached: a process was killed",
				})
			}
		}
	}
	return now, list
}
