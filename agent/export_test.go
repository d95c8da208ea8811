package agent

import (
	"context"
	"log/slog"
	"sync"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/reconcile"
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
