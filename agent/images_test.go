package agent_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/stats"
)

// collectImages has the agent collect images as on a filesystem that is so full. It
// may take none but those that the test had pulled: others are not the agent's, and
// what it runs itself is pinned.
func (w *world) collectImages() (full *atomic.Int64) {
	full = new(atomic.Int64)
	w.cfg.GC.ImagePeriod = 300 * time.Millisecond
	w.cfg.GC.Images = &gc.ImagePolicy{High: 85, Low: 80, Pinned: []string{"busybox", "podkeeper.io/*"}}
	w.cfg.GC.ImageUsage = func(context.Context) (*stats.Filesystem, error) {
		return &stats.Filesystem{Capacity: 100 << 40, Available: (100 - full.Load()) << 40}, nil
	}
	return full
}

// hasImage reports whether the engine has an image under a name.
func (w *world) hasImage(name string) bool {
	w.t.Helper()
	_, err := w.engine.ImageInspect(context.Background(), name)
	return err == nil
}

// When the disk is full the images go that the agent pulled and nothing
// names any more; a pod that comes back pulls them again.
func TestImagesThatGo(t *testing.T) {
	w := newWorld(t)
	full := w.collectImages()
	r := w.newRegistry()
	at := func(name string) string { return r.address + "/" + name }
	for _, name := range []string{"app:1", "digest:1", "named:1", "used:1"} {
		w.push(at(name))
	}
	digest := at("digest@" + r.digest("digest", "1"))
	foreign := w.image()
	w.write("app.yaml", manifest("{name: app}", of("c", at("app:1"))))
	w.write("digest.yaml", manifest("{name: digest}", of("c", digest)))
	w.write("used.yaml", manifest("{name: used}", of("c", at("used:1"))))
	w.write("named.yaml", manifest("{name: named}", of("c", at("named:1"), `command: ["true"]`))+"  restartPolicy: Never\n")
	w.start()
	w.await("they run", running("app"), running("digest"), running("used"), phase("named", v1.PodSucceeded))
	w.removeContainer(w.containers()["named-node/c/0"].ID)
	w.remove("app.yaml")
	w.remove("digest.yaml")
	w.await("they are gone", gone("app"), gone("digest"))
	w.restart()
	w.await("it is as it was", running("used"), phase("named", v1.PodSucceeded))
	if !w.hasImage(at("app:1")) || !w.hasImage(digest) {
		t.Error("images go although there is room")
	}
	// One with a second name goes with both.
	other := strings.Replace(foreign, ":1", ":app", 1)
	if err := w.engine.ImageTag(context.Background(), at("app:1"), other); err != nil {
		t.Fatal(err)
	}
	full.Store(90)
	w.poll("the images are gone that nothing names", func() bool { return !w.hasImage(at("app:1")) && !w.hasImage(digest) && !w.hasImage(other) })
	w.images = append(w.images, at("used:1"), at("named:1"))
	w.write("app.yaml", manifest("{name: app}", of("c", at("app:1"))))
	w.await("it runs again", running("app"))
	w.images = append(w.images, at("app:1"))
	for _, name := range w.images {
		if !w.hasImage(name) {
			t.Errorf("%s is gone", name)
		}
	}
	for _, name := range []string{at("app:1"), digest} {
		if n := len(w.said.lines(`msg="image removed"`, name, "the image filesystem is 90.0% full")); n != 1 {
			t.Errorf("the log says %d times that %s was removed, and why", n, name)
		}
	}
	if n := len(w.said.lines("reason=FreeDiskSpaceFailed")); n != 1 {
		t.Errorf("the log says %d times that it is not enough, want once", n)
	}
}

// With a source that is silent images stay that it named, and those that are pinned.
func TestImagesThatStay(t *testing.T) {
	w := newWorld(t)
	full := w.collectImages()
	r := w.newRegistry()
	at := func(name string) string { return r.address + "/" + name }
	w.push(at("silent:1"))
	w.push(at("pinned:1"))
	w.cfg.GC.Images.Pinned = append(w.cfg.GC.Images.Pinned, at("pinned"))
	w.write("silent.yaml", manifest("{name: silent}", of("c", at("silent:1"))))
	w.write("pinned.yaml", manifest("{name: pinned}", of("c", at("pinned:1"))))
	w.start()
	w.await("they run", running("silent"), running("pinned"))
	w.images = append(w.images, at("pinned:1"))
	w.remove("pinned.yaml")
	w.await("it is gone", gone("pinned"))
	w.poll("what is wanted is remembered", func() bool { return exists(w.cfg.RootDir + "/images.json") })
	w.stop()
	for name, id := range w.ids() {
		w.stopContainer(id)
		if strings.HasPrefix(name, "silent") {
			w.removeContainer(id)
		}
	}
	w.cfg.NoSourceCache = true
	rename(t, w.dir, w.dir+".away")
	full.Store(90)
	w.start()
	w.poll("it is looked at", func() bool { return len(w.said.lines("reason=FreeDiskSpaceFailed")) > 0 })
	if !w.hasImage(at("silent:1")) || !w.hasImage(at("pinned:1")) {
		t.Fatal("an image is gone that has to stay")
	}
	rename(t, w.dir+".away", w.dir)
	w.remove("silent.yaml")
	w.poll("the image goes once its manifest is known to be gone", func() bool { return !w.hasImage(at("silent:1")) })
}
