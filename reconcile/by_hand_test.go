package reconcile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

func webKey(name string) pod.Key { return pod.Key{Namespace: "default", Name: name + "-node"} }

// A pod that is restarted by hand is another one, as if its manifest had gone and come
// back; that a crash of the agent lies between changes nothing.
func TestRestartByHand(t *testing.T) {
	for name, crash := range map[string]bool{"by one agent": false, "by another agent": true} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				text := manifest("a", "", "{name: c, image: present:1, args: [ignore-term]}")
				r.want(text)
				before := the(t, r.after(time.Second), "a").Containers
				if err := r.loop.Restart(r.t.Context(), webKey("a")); err != nil {
					t.Fatal(err)
				}
				if crash {
					r.after(time.Second) // its grace period is longer
					r.stop()
					r.start(reconcile.Policy{})
					r.want(text)
				}
				a := the(t, r.after(time.Minute), "a")
				if a.Object.Status.Phase != v1.PodRunning || len(a.Containers) != len(before) {
					t.Fatalf("%s with %d containers", a.Object.Status.Phase, len(a.Containers))
				}
				for i := range before {
					if a.Containers[i].ID == before[i].ID {
						t.Errorf("%s is the one of before", before[i].Name)
					}
				}
				after := the(t, r.after(time.Hour), "a").Containers
				if after[0].ID != a.Containers[0].ID {
					t.Error("it was restarted more than once")
				}
				if !strings.Contains(strings.Join(r.volumes.removals(), " "), string(a.Object.UID)) {
					t.Error("its volumes stayed")
				}
			})
		})
	}
}

// What has come to its end, or was evicted for good, runs again.
func TestRestartByHandOfWhatIsOver(t *testing.T) {
	inRig(t, func(r *rig) {
		text := manifest("a", "", "{name: c, image: present:1, imagePullPolicy: Never}") + "  restartPolicy: Never\n"
		job := manifest("job", "", "{name: c, image: present:1, args: [exit=0]}") + "  restartPolicy: Never\n"
		r.want(text, job)
		a := the(t, r.after(time.Second), "a")
		r.loop.Evict(r.t.Context(), verdict(a, pod.OwnLimit))
		snap := r.after(time.Hour)
		if got := phases(snap); got["a"] != v1.PodFailed || got["job"] != v1.PodSucceeded {
			t.Fatalf("phases %v", got)
		}
		if message := the(t, snap, "a").Object.Status.Message; !strings.Contains(message, "restarted by hand") {
			t.Errorf("message %q", message)
		}
		was := the(t, snap, "job").Object.Status.ContainerStatuses[0].ContainerID
		for _, name := range []string{"a", "job"} {
			if err := r.loop.Restart(r.t.Context(), webKey(name)); err != nil {
				t.Fatal(err)
			}
		}
		snap = r.after(time.Minute)
		if got := phases(snap); got["a"] != v1.PodRunning || got["job"] != v1.PodSucceeded {
			t.Errorf("phases %v", got)
		}
		if the(t, snap, "job").Object.Status.ContainerStatuses[0].ContainerID == was {
			t.Error("the job did not run again")
		}
	})
}

// What could not be started again is left alone.
func TestNoRestartByHand(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want(manifest("a", "", web), manifest("z", "", "{name: c, image: present:1, "+port+"80}]}"))
		r.after(time.Second)
		if err := r.loop.Restart(r.t.Context(), webKey("b")); !errors.Is(err, reconcile.ErrNoPod) {
			t.Errorf("of a pod that nothing supplies: %v", err)
		}
		r.want(manifest("a", "", "{name: c, image: present:1, "+port+"80}]}"), manifest("z", "", "{name: c, image: present:1, "+port+"80}]}"))
		before := the(t, r.after(time.Second), "a").Containers
		if err := r.loop.Restart(r.t.Context(), webKey("a")); !errors.Is(err, reconcile.ErrHeld) || !strings.Contains(err.Error(), "NodePorts") {
			t.Errorf("of a pod whose edit waits for a port: %v", err)
		}
		if after := the(t, r.after(time.Minute), "a").Containers; after[0].ID != before[0].ID {
			t.Error("it was restarted all the same")
		}
	})
}

// A container that waits for its image gets it at once when it is restarted by hand.
func TestRestartOfAContainerThatWaitsForItsImage(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want(manifest("a", "", "{name: c, image: late:1}"))
		if got := phases(r.after(12 * time.Minute)); got["a"] != v1.PodPending {
			t.Fatalf("phases %v", got)
		}
		r.engine.SetImage("late:1", fake.Image{Pullable: true})
		if err := r.loop.RestartContainer(r.t.Context(), webKey("a"), "c"); err != nil {
			t.Fatal(err)
		}
		if got := phases(r.after(20 * time.Second)); got["a"] != v1.PodRunning {
			t.Errorf("phases %v", got)
		}
	})
}

// A restart of what has not run yet does nothing, and says so.
func TestNoRestartOfAContainerThatHasNotRun(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want(manifest("z", "", "{name: c, image: present:1, "+port+"80}]}"), manifest("a", "", "{name: c, image: present:1, "+port+"80}]}"))
		if got := phases(r.after(time.Minute)); got["z"] != v1.PodPending {
			t.Fatalf("phases %v", got)
		}
		if err := r.loop.RestartContainer(r.t.Context(), webKey("z"), "c"); !errors.Is(err, reconcile.ErrHeld) || !strings.Contains(err.Error(), "has not run yet") {
			t.Errorf("of a pod that waits for a port: %v", err)
		}
		if err := r.loop.RestartContainer(r.t.Context(), webKey("a"), "c"); err != nil {
			t.Errorf("of one that runs: %v", err)
		}
	})
}

// A hold is seen also when nothing of its pod is there, and ends by hand alone.
func TestHoldOfAPodThatIsGone(t *testing.T) {
	inRig(t, func(r *rig) {
		text := manifest("a", "", web)
		r.want(text)
		r.after(time.Minute)
		if err := r.loop.Stop(r.t.Context(), webKey("a")); err != nil {
			t.Fatal(err)
		}
		r.after(time.Minute)
		r.want()
		if snap := r.after(time.Hour); len(snap.Holds) != 1 || snap.Holds[webKey("a")].IsZero() {
			t.Errorf("holds %v", snap.Holds)
		}
		r.want(text)
		if a := the(t, r.after(time.Minute), "a"); a.Held.IsZero() || a.Object.Status.Reason != "Stopped" || len(a.Containers) != 0 {
			t.Errorf("it is %s with %d containers", a.Object.Status.Reason, len(a.Containers))
		}
		r.want()
		r.after(time.Hour)
		if err := r.loop.Start(r.t.Context(), webKey("a")); err != nil {
			t.Error(err)
		}
		r.want(text)
		if got := phases(r.after(time.Minute)); got["a"] != v1.PodRunning {
			t.Errorf("phases %v", got)
		}
	})
}

// A pod that is stopped gives its port to another, and asks for it anew.
func TestStoppedPodGivesItsPortUp(t *testing.T) {
	inRig(t, func(r *rig) {
		served := "{name: c, image: present:1, " + port + "80}]}"
		r.want(manifest("a", "", served))
		r.after(time.Minute)
		if err := r.loop.Stop(r.t.Context(), webKey("a")); err != nil {
			t.Fatal(err)
		}
		r.after(time.Minute)
		r.want(manifest("a", "", served), manifest("b", "", served))
		if got := phases(r.after(time.Minute)); got["a"] != v1.PodPending || got["b"] != v1.PodRunning {
			t.Fatalf("phases %v", got)
		}
		if err := r.loop.Start(r.t.Context(), webKey("a")); err != nil {
			t.Fatal(err)
		}
		if a := the(t, r.after(time.Minute), "a"); a.Object.Status.Reason != "NodePorts" {
			t.Errorf("it is %s: %s", a.Object.Status.Reason, a.Object.Status.Message)
		}
	})
}
