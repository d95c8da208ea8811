package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/server/events"
	"github.com/podkeeper/podkeeper/server/metrics"
)

var (
	Killed         = killed
	NodeConditions = nodeConditions
)

// OOMCounts makes looks one after the other.
type OOMCounts struct{ counts oomCounts }

func (c *OOMCounts) Look(pods []reconcile.View, count func(stats.Process) (int64, bool)) (told []string) {
	next, list := c.counts.look(pods, count)
	c.counts = next
	for _, e := range list {
		told = append(told, e.Reason+" "+e.Pod.String()+" "+e.Container)
	}
	return told
}

// Pressed has an agent find the node to be as reported, one after the other, and returns the
// events in their order.
func Pressed(ctx context.Context, node string, reports ...gc.Report) (told []string) {
	log := slog.New(slog.DiscardHandler)
	p := &parts{
		cfg: Config{NodeName: node}, log: log, events: events.New(EventConfig{Node: node}), counters: counts{metrics.NewCounters("")},
		loop: reconcile.New(reconcile.Config{}, reconcile.Deps{Log: log}), told: func() {},
	}
	nobody, cancel := context.WithCancel(ctx) // runs the loop
	cancel()
	e := &eviction{parts: p}
	_, seen, _ := p.events.List(ctx, 0, time.Now)
	for _, r := range reports {
		e.press(nobody, r)
		if _, now, _ := p.events.List(ctx, 0, time.Now); now == seen {
			continue
		}
		var list []v1.Event
		list, seen, _ = p.events.List(ctx, seen, time.Now)
		for _, v := range list {
			told = append(told, v.Type+" "+v.Reason+": "+v.Message)
		}
	}
	return told
}

// PodUses reads what a pod uses and holds, as an agent with that root dir does.
func PodUses(ctx context.Context, rootDir string, v reconcile.View, log *slog.Logger) (uses, holds stats.Pod) {
	volumes := &volume.Host{RootDir: rootDir}
	p := &parts{usage: newUsage(volumes, log), volumes: volumes}
	ctx, cancel := context.WithCancel(ctx)
	var walks sync.WaitGroup
	walks.Go(func() { _ = p.usage.walker.Run(ctx) })
	defer walks.Wait()
	defer cancel()
	p.usage.walker.Await(ctx, p.files(v).Walked())
	list, _ := p.podsHold([]reconcile.View{v})
	return p.podsUse([]reconcile.View{v})[0], list[0]
}
