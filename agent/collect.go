package agent

import (
	"context"
	"errors"
	goruntime "runtime"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/podlog"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/pause"
)

// What can be set of the collectors: see gc.
type (
	GCConfig    = gc.Config
	DeadPolicy  = gc.Policy
	ImagePolicy = gc.ImagePolicy
)

// The defaults: see gc.
func DefaultDead() DeadPolicy    { return gc.DefaultPolicy() }
func DefaultImages() ImagePolicy { return gc.DefaultImagePolicy() }

// CheckPinned reports what is wrong with a glob of pinned images.
func CheckPinned(glob string) error { return gc.CheckPinned(glob) }

// collectors makes what removes dead containers that nobody reads any more, with
// what is left of their log links, and images that nobody needs.
func (p *parts) collectors(store gc.Store) error {
	builtIn, _, err := pause.Image(goruntime.GOARCH)
	if err != nil {
		return err
	}
	containers, images := gc.DefaultPolicy(), gc.DefaultImagePolicy()
	if p.cfg.GC.Containers != nil {
		containers = *p.cfg.GC.Containers
	}
	if p.cfg.GC.Images != nil {
		images = *p.cfg.GC.Images
	}
	usage := p.cfg.GC.ImageUsage
	if usage == nil {
		usage = p.imageUsage
	}
	event := p.say
	p.dead = gc.NewContainerCollector(gc.ContainerConfig{
		Policy: containers, Period: p.cfg.GC.ContainerPeriod,
		Inventory: p.deadContainers, Remove: p.runtime.Remove, Links: p.sweepLinks, Claims: p.sweepClaims,
		Event: event, Log: p.log,
	})
	p.images = gc.NewImageCollector(gc.ImageConfig{
		Policy: images, Period: p.cfg.GC.ImagePeriod, Keep: []string{builtIn, p.cfg.Docker.PauseImage},
		Images: p.runtime.Images, Wanted: p.wantedImages, Remove: p.removeImage, Usage: usage,
		Store: store, Event: event, Removed: p.counters.imageRemoved, Log: p.log,
	})
	return nil
}

func (p *parts) wantedImages(ctx context.Context) (gc.Wanted, error) {
	names, whole, err := p.loop.WantedImages(ctx)
	return gc.Wanted{Names: names, Whole: whole}, err
}

// removeImage goes by the loop, which knows what is wanted by then.
func (p *parts) removeImage(ctx context.Context, image runtime.StoredImage) (bool, error) {
	return p.loop.RemoveImage(ctx, image)
}

// imageUsage is that of the filesystem of the engine's data; nil where the engine
// does not say where that is.
func (p *parts) imageUsage(ctx context.Context) (*stats.Filesystem, error) {
	root := p.engineRoot(ctx)
	if root == "" {
		return nil, nil
	}
	return stats.ReadFilesystem(root)
}

// containers returns every container of ours that is not a sandbox. ok is false
// as long as not everything was looked at.
func (p *parts) containers(ctx context.Context) (list []runtime.Container, ok bool, err error) {
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil {
		return nil, false, err
	}
	for _, v := range snap.Pods {
		for _, c := range v.Containers {
			if !c.IsSandbox() {
				list = append(list, c)
			}
		}
	}
	return list, snap.Ready && snap.Online, nil
}

func (p *parts) deadContainers(ctx context.Context) ([]gc.Dead, error) {
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil || !snap.Ready || !snap.Online {
		return nil, err
	}
	return DeadContainers(snap), nil
}

// DeadContainers returns the containers of pods that ended, as the collector is to
// see them.
func DeadContainers(snap reconcile.Snapshot) []gc.Dead {
	var dead []gc.Dead
	for _, v := range snap.Pods {
		// What is not written down of a pod's end must not be lost with its containers.
		over := v.Plan.Finished && v.Settled()
		for _, c := range v.Containers {
			if c.Ended() && !c.IsSandbox() {
				dead = append(dead, gc.Dead{
					ID: c.ID, UID: c.UID, Name: c.Name, Attempt: c.Attempt, Finished: c.Finished,
					Over: over && c.UID == v.Plan.UID,
				})
			}
		}
	}
	return dead
}

// sweepLinks keeps the links of every container that is there.
func (p *parts) sweepLinks(ctx context.Context) error {
	list, whole, err := p.containers(ctx)
	if err != nil || !whole {
		return err
	}
	var keep []podlog.Link
	for _, c := range list {
		keep = append(keep, link(c))
	}
	removed, err := podlog.Sweep(p.cfg.Logs, keep)
	if removed > 0 {
		p.loop.LinkAgain(ctx) // one made since the list was may have gone
	}
	return err
}

// sweepClaims removes the folders of claims that are gone and asked for that.
func (p *parts) sweepClaims(ctx context.Context) error {
	// Before the snapshot: a pod that is not in it asks for its claim later, which
	// is noticed.
	stored, err := p.volumes.Claims()
	if len(stored) == 0 {
		return err
	}
	errs := []error{err}
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil || !snap.Ready {
		return err
	}
	remove, update := gc.SelectClaims(stored, snap.Objects, pod.Set{Sources: snap.Sources})
	for _, o := range update {
		errs = append(errs, p.volumes.UpdateClaim(o))
	}
	for _, s := range remove {
		removed, err := p.volumes.RemoveClaim(s)
		if errs = append(errs, err); removed {
			p.log.Info("folder of a claim removed", "claim", s.Key.String(), "reason", "nothing supplies it, and it has "+pod.ReclaimAnnotation)
		}
	}
	return errors.Join(errs...)
}
