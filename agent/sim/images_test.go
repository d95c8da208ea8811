package sim

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// somebodys is an image that no manifest names and the agent never had to do with.
const somebodys = "somebodys:1"

// imageCollector is the agent's, on a disk that is always too full: it takes all that
// it may, while edits bring it back.
func (w *world) imageCollector(i *incarnation, rt runtime.Runtime, store session) *gc.ImageCollector {
	cfg := gc.ImageConfig{
		Policy: gc.ImagePolicy{Off: !w.collects, High: 85, Low: 80, MinAge: 10 * time.Second}, Period: time.Minute,
		Images: rt.Images, Store: store, Event: pod.LogEvents(w.log), Log: w.log,
		Wanted: func(ctx context.Context) (gc.Wanted, error) {
			names, whole, err := i.loop.WantedImages(ctx)
			return gc.Wanted{Names: names, Whole: whole}, err
		},
		Remove: func(ctx context.Context, image runtime.StoredImage) (bool, error) {
			return i.loop.RemoveImage(ctx, image)
		},
		Usage: func(context.Context) (*stats.Filesystem, error) { return &stats.Filesystem{Capacity: 100}, nil },
	}
	if w.lies.images != nil {
		w.lies.images(&cfg, rt)
	}
	return gc.NewImageCollector(cfg)
}

// imageGone holds what the collector took against what the sources say. What they
// say since a moment ago it need not know yet.
func (l *laws) imageGone(image runtime.StoredImage) {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	if slices.Contains(image.Names, somebodys) {
		l.violate(imagesStay, "%s goes, which is somebody's", somebodys)
	}
	heard := time.Minute
	if time.Now().Before(l.rough) {
		heard = stale
	}
	if time.Since(l.began) < heard {
		return
	}
	for key, origins := range l.truth.said {
		for origin, said := range origins {
			last := said[len(said)-1]
			if last.pod == nil || time.Since(last.since) < heard || l.truth.unsure[origin] {
				continue
			}
			if runsFrom(last.pod.Object, image) {
				l.violate(imagesStay, "%s goes, which %s of %s names", image.Names[0], key, origin)
			}
		}
	}
}

// runsFrom reports whether a pod has a container from an image.
func runsFrom(p *v1.Pod, image runtime.StoredImage) bool {
	return slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c v1.Container) bool { return slices.Contains(image.Names, c.Image) })
}
