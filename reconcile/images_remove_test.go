package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// stored returns what the engine has under a name.
func (r *rig) stored(name string) (image runtime.StoredImage, there bool) {
	r.t.Helper()
	list, err := r.engine.Client("/root").Images(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	at := slices.IndexFunc(list, func(i runtime.StoredImage) bool { return slices.Contains(i.Names, name) })
	if at < 0 {
		return image, false
	}
	return list[at], true
}

// Law 9: what a pod names stays, by whatever name, and whether it runs or not.
func TestWantedImagesStay(t *testing.T) {
	inRig(t, func(r *rig) {
		r.engine.SetImage("two:1", fake.Image{Present: true, ID: "sha256:2"})
		r.engine.SetImage("r.local/two:2", fake.Image{Present: true, ID: "sha256:2"})
		r.engine.SetImage("data:1", fake.Image{Present: true})
		r.engine.SetImage("idle:1", fake.Image{Present: true})
		r.want(
			manifest("a", "", "{name: c, image: r.local/two:2}")+"  nodeSelector: {no: such}\n",
			manifest("b", "", "{name: c, image: absent:1, imagePullPolicy: Never}")+"  initContainers: [{name: i, image: present:1}]\n"+
				"  volumes: [{name: v, image: {reference: data:1, pullPolicy: Never}}]\n",
		)
		r.after(time.Second)
		for name, wanted := range map[string]bool{"two:1": true, "present:1": true, "data:1": true, "idle:1": false} {
			image, _ := r.stored(name)
			removed, err := r.loop.RemoveImage(r.t.Context(), image)
			if removed == wanted || err != nil {
				t.Errorf("%s removed: %v, %v", name, removed, err)
			}
			if _, there := r.stored(name); there != wanted {
				t.Errorf("%s is there: %v, want %v", name, there, wanted)
			}
		}
		names, whole, err := r.loop.WantedImages(r.t.Context())
		if want := []string{"absent:1", "data:1", "present:1", "r.local/two:2"}; !slices.Equal(names, want) || !whole || err != nil {
			t.Errorf("wanted are %v, whole %v, %v; want %v", names, whole, err, want)
		}
	})
}

// Before the first set nobody knows what is wanted (law 1).
func TestNoImageGoesBeforeTheFirstSet(t *testing.T) {
	inRig(t, func(r *rig) {
		image, _ := r.stored("present:1")
		if removed, err := r.loop.RemoveImage(r.t.Context(), image); removed || err != nil {
			t.Errorf("removed: %v, %v", removed, err)
		}
		if _, whole, _ := r.loop.WantedImages(r.t.Context()); whole {
			t.Error("all was said before anything was")
		}
	})
}

// What was known of an image goes with it: a pod that comes a moment later pulls it
// again, and one that comes while it goes waits for that.
func TestAnImageThatWasRemovedIsPulledAgain(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want(manifest("a", "", "{name: c, image: remote:1, imagePullPolicy: IfNotPresent}"))
		r.after(time.Second)
		r.want()
		r.after(time.Minute)
		image, there := r.stored("remote:1")
		if !there || image.InUse {
			t.Fatalf("the image is %+v, there %v; want it in nobody's use", image, there)
		}
		for _, name := range []string{"b", "c"} {
			r.hold = make(chan struct{})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if removed, err := r.loop.RemoveImage(context.WithoutCancel(r.t.Context()), image); !removed || err != nil {
					t.Errorf("removed: %v, %v", removed, err)
				}
			}()
			synctest.Wait()
			r.want(manifest(name, "", "{name: c, image: remote:1, imagePullPolicy: IfNotPresent}"))
			if phase := phases(r.after(time.Second))[name]; phase != v1.PodPending {
				t.Errorf("while the image goes, the pod is %s", phase)
			}
			close(r.hold)
			<-ended
			if snap := r.after(30 * time.Second); phases(snap)[name] != v1.PodRunning || failures(snap) != "" {
				t.Errorf("the pod is %s: %s", phases(snap)[name], failures(snap))
			}
			r.want()
			r.after(time.Minute)
		}
		if n := r.log.count("CreateContainer failed"); n > 0 {
			t.Errorf("%d creates found no image", n)
		}
	})
}

func failures(snap reconcile.Snapshot) (text string) {
	for _, v := range snap.Pods {
		for _, w := range v.Plan.Waiting {
			text += w.Message
		}
	}
	return text
}

// An image of which nobody asks is not remembered for ever.
func TestImagesAreForgotten(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want(manifest("a", "", "{name: c, image: absent:1}"))
		r.after(time.Second)
		if got := r.loop.KnownImages(r.t.Context()); !slices.Equal(got, []string{"absent:1"}) {
			t.Errorf("known are %v", got)
		}
		r.want(manifest("b", "", "{name: c, image: present:1}"))
		r.after(6 * time.Minute)
		if got := r.loop.KnownImages(r.t.Context()); !slices.Equal(got, []string{"present:1"}) {
			t.Errorf("known are %v", got)
		}
	})
}
