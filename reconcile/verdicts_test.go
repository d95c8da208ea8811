package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
)

const (
	web = "{name: c, image: present:1, imagePullPolicy: Never}"
	// asking is a container that is not BestEffort.
	asking = "{name: c, image: present:1, imagePullPolicy: Never, resources: {requests: {memory: 1Mi}}}"
)

// verdict returns one about a pod as it runs.
func verdict(v reconcile.View, cause pod.Cause) pod.Verdict {
	return pod.Verdict{
		UID: v.Object.UID, Hash: v.Plan.Pod.Hash, Cause: cause, Grace: time.Second,
		Reason: pod.Evicted, Message: "90Mi of memory are left, the threshold is 100Mi",
	}
}

// the returns the view of a pod by its name without the node's suffix.
func the(t *testing.T, snap reconcile.Snapshot, name string) reconcile.View {
	t.Helper()
	for _, v := range snap.Pods {
		if v.Object.Name == name+"-node" {
			return v
		}
	}
	t.Fatalf("no pod %s", name)
	return reconcile.View{}
}

func memoryShort() reconcile.Pressure {
	return reconcile.Pressure{Looked: true, Memory: reconcile.Shortage{Message: "90Mi of memory are left"}}
}

// TestEvictedPodComesBack holds C117: what was evicted for the node's sake runs
// again when the node is well, and not before, also where the agent was restarted
// at any point.
func TestEvictedPodComesBack(t *testing.T) {
	for name, restart := range map[string]bool{"by the same agent": false, "by another agent": true} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				text := manifest("a", "", web)
				r.want(text)
				a := the(t, r.after(time.Second), "a")
				r.loop.Press(r.t.Context(), memoryShort())
				r.loop.Evict(r.t.Context(), verdict(a, pod.MemoryPressure))
				again := func() {
					if restart {
						r.stop()
						r.start(reconcile.Policy{})
						r.want(text)
					}
				}
				gone := the(t, r.after(5*time.Second), "a")
				again()
				gone = the(t, r.after(5*time.Second), "a")
				s := gone.Object.Status
				if s.Phase != v1.PodFailed || s.Reason != "Evicted" || !strings.Contains(s.Message, "90Mi of memory are left, the threshold is 100Mi") {
					t.Errorf("status: %s %s %q", s.Phase, s.Reason, s.Message)
				}
				if len(gone.Containers) > 0 {
					t.Errorf("%d containers are left", len(gone.Containers))
				}
				if got := s.ContainerStatuses[0].State.Terminated; got == nil || got.ExitCode == 0 {
					t.Errorf("the container has not ended: %+v", s.ContainerStatuses[0].State)
				}
				if len(r.volumes.removals()) == 0 {
					t.Error("its volumes are left")
				}
				r.loop.Press(r.t.Context(), reconcile.Pressure{Looked: true, Memory: reconcile.Shortage{Message: "90Mi", Over: time.Now().Add(time.Minute)}})
				again()
				r.loop.Press(r.t.Context(), reconcile.Pressure{Looked: true, Memory: reconcile.Shortage{Over: time.Now().Add(time.Minute)}})
				if got := phases(r.after(59 * time.Second))["a"]; got != v1.PodFailed {
					t.Errorf("before the transition period has passed: %s", got)
				}
				back := the(t, r.after(2*time.Second), "a")
				if back.Object.Status.Phase != v1.PodRunning || back.Object.UID != a.Object.UID {
					t.Errorf("it is %s, uid %s, was %s", back.Object.Status.Phase, back.Object.UID, a.Object.UID)
				}
			})
		})
	}
}

// Pod conditions: what was ended for the node's sake has DisruptionTarget, until it is
// back.
func TestDisruptedPod(t *testing.T) {
	for cause, want := range map[pod.Cause]bool{pod.MemoryPressure: true, pod.Preempted: true, pod.OwnLimit: false} {
		t.Run(string(cause), func(t *testing.T) {
			inRig(t, func(r *rig) {
				has := func(snap reconcile.Snapshot, want v1.PodCondition) bool {
					return slices.ContainsFunc(the(t, snap, "a").Object.Status.Conditions, func(c v1.PodCondition) bool {
						timed := !c.LastTransitionTime.IsZero()
						c.LastTransitionTime = metav1.Time{}
						return c == want && timed
					})
				}
				text := manifest("a", "", web) + "  restartPolicy: Never\n"
				r.want(text)
				v := verdict(the(t, r.after(time.Second), "a"), cause)
				condition := v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "TerminationByKubelet", Message: v.Message}
				r.loop.Evict(r.t.Context(), v)
				if got := has(r.after(time.Minute), condition); got != want {
					t.Errorf("condition %v, want %v", got, want)
				}
				r.want(strings.Replace(text, "c,", "c, args: [x],", 1))
				snap := r.after(time.Minute)
				if has(snap, condition) || phases(snap)["a"] != v1.PodRunning {
					t.Errorf("edited it is %s, and has the condition", phases(snap)["a"])
				}
			})
		})
	}
}

// TestEvictedPodThatIsNotRestarted holds that it stays failed, until it is edited.
func TestEvictedPodThatIsNotRestarted(t *testing.T) {
	for _, policy := range []string{"Never", "OnFailure"} {
		t.Run(policy, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.want(manifest("a", "", web) + "  restartPolicy: " + policy + "\n")
				a := the(t, r.after(time.Second), "a")
				r.loop.Evict(r.t.Context(), verdict(a, pod.OwnLimit))
				if got := phases(r.after(time.Hour))["a"]; got != v1.PodFailed {
					t.Errorf("after an hour: %s", got)
				}
				r.want(manifest("a", "", strings.Replace(web, "c,", "c, args: [x],", 1)) + "  restartPolicy: " + policy + "\n")
				if got := phases(r.after(time.Second))["a"]; got != v1.PodRunning {
					t.Errorf("edited: %s", got)
				}
			})
		})
	}
}

// TestOwnLimitBacksOff holds that a pod which its own limit evicts comes back
// later each time, and soon again once it has run for long.
func TestOwnLimitBacksOff(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want(manifest("a", "", web))
		away := func() time.Duration {
			t.Helper()
			r.loop.Evict(r.t.Context(), verdict(the(t, r.after(time.Second), "a"), pod.OwnLimit))
			for begin := time.Now(); time.Since(begin) < time.Hour; {
				if snap := r.after(100 * time.Millisecond); phases(snap)["a"] == v1.PodRunning {
					return time.Since(begin).Round(time.Second)
				}
			}
			return time.Hour
		}
		for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
			if got := away(); got != want {
				t.Errorf("eviction %d: it was away for %s, want %s", i+1, got, want)
			}
		}
		time.Sleep(10 * time.Minute)
		if got := away(); got != 10*time.Second {
			t.Errorf("after 10 minutes of running it was away for %s", got)
		}
	})
}

// TestAdmissionUnderPressure holds who is let in, and that what runs stays.
func TestAdmissionUnderPressure(t *testing.T) {
	short := func(y reconcile.Pressure) reconcile.Pressure { y.Looked = true; return y }
	low := reconcile.Waiting{Reason: reconcile.OutOfDisk, Message: "100Mi are left"}
	for name, c := range map[string]struct {
		pressure reconcile.Pressure
		want     map[string]reconcile.Reason
	}{
		"memory": {memoryShort(), map[string]reconcile.Reason{"besteffort": reconcile.MemoryPressure, "burstable": "", "critical": ""}},
		"disk": {
			short(reconcile.Pressure{Disk: reconcile.Shortage{Message: "1Gi is left"}}),
			map[string]reconcile.Reason{"besteffort": reconcile.DiskPressure, "burstable": reconcile.DiskPressure, "critical": ""},
		},
		"processes": {
			short(reconcile.Pressure{PIDs: reconcile.Shortage{Message: "10 are left"}}),
			map[string]reconcile.Reason{"besteffort": reconcile.PIDPressure, "burstable": reconcile.PIDPressure, "critical": ""},
		},
		"a disk that is nearly full": {
			short(reconcile.Pressure{LowDisk: low}),
			map[string]reconcile.Reason{"besteffort": reconcile.OutOfDisk, "burstable": reconcile.OutOfDisk, "critical": reconcile.OutOfDisk},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				old := manifest("old", "", web)
				r.want(old)
				r.after(time.Second)
				r.loop.Press(r.t.Context(), c.pressure)
				r.want(old, manifest("besteffort", "", web), manifest("burstable", "", asking), manifest("critical", "", web)+"  priorityClassName: system-node-critical\n")
				snap := r.after(time.Minute)
				got := make(map[string]reconcile.Reason)
				for name := range c.want {
					got[name] = the(t, snap, name).Plan.Blocked.Reason
					if phase := phases(snap)[name]; (phase == v1.PodRunning) != (got[name] == "") {
						t.Errorf("%s is %s, refused for %q", name, phase, got[name])
					}
				}
				for name, want := range c.want {
					if got[name] != want {
						t.Errorf("%s is refused for %q, want %q", name, got[name], want)
					}
				}
				if phases(snap)["old"] != v1.PodRunning {
					t.Error("what runs was touched")
				}
				if n := r.log.count("pod waits"); n > 3 {
					t.Errorf("%d lines say that a pod waits", n)
				}
				r.loop.Press(r.t.Context(), reconcile.Pressure{Looked: true})
				for name, phase := range phases(r.after(time.Second)) {
					if phase != v1.PodRunning {
						t.Errorf("after the pressure %s is %s", name, phase)
					}
				}
			})
		})
	}
}

// TestEvictionOnAFullDisk holds that a verdict which cannot be written down is
// carried out all the same.
func TestEvictionOnAFullDisk(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want(manifest("a", "", web))
		a := the(t, r.after(time.Second), "a")
		r.files.fill(true)
		r.loop.Press(r.t.Context(), reconcile.Pressure{Looked: true, Disk: reconcile.Shortage{Message: "nothing is left"}})
		r.loop.Evict(r.t.Context(), verdict(a, pod.DiskPressure))
		gone := the(t, r.after(10*time.Second), "a")
		if gone.Object.Status.Phase != v1.PodFailed || len(gone.Containers) > 0 {
			t.Errorf("it is %s, and has %d containers", gone.Object.Status.Phase, len(gone.Containers))
		}
		r.files.fill(false)
		r.loop.Press(r.t.Context(), reconcile.Pressure{Looked: true, Disk: reconcile.Shortage{Over: time.Now()}})
		if got := phases(r.after(2 * time.Minute))["a"]; got != v1.PodRunning {
			t.Errorf("with room again it is %s", got)
		}
	})
}

// TestVerdictAboutAnother drops what is about a generation that is gone.
func TestVerdictAboutAnother(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want(manifest("a", "", web))
		v := verdict(the(t, r.after(time.Second), "a"), pod.MemoryPressure)
		v.Hash.Digest += "x"
		r.loop.Evict(r.t.Context(), v)
		if got := phases(r.after(time.Minute))["a"]; got != v1.PodRunning {
			t.Errorf("it is %s", got)
		}
	})
}

// A verdict about the node is not carried out long after, when the engine is back, nor
// before it has said what is left.
func TestVerdictBeforeAnOutage(t *testing.T) {
	const stubborn = "{name: c, image: present:1, command: [ignore-term]}"
	for name, happens := range map[string]func(r *rig, evict func()){
		"while it is away": func(r *rig, evict func()) {
			r.engine.Down(true)
			r.after(time.Second)
			evict()
			r.after(time.Minute)
			r.engine.Up()
		},
		"before it went away": func(r *rig, evict func()) {
			r.want(manifest("a", "", strings.Replace(stubborn, "term", "term, x", 1))) // its wave takes longer than that
			r.after(time.Second)
			evict()
			r.engine.Down(true)
			r.after(time.Minute)
			r.engine.Up()
		},
		"before it has listed its containers": func(r *rig, evict func()) {
			r.engine.Down(true)
			r.after(time.Minute)
			lists := make(chan struct{})
			r.lists.Store(&lists)
			r.engine.Up()
			if r.after(10 * time.Second); !r.after(0).Online {
				r.t.Error("the engine is not back")
			}
			evict()
			r.after(time.Second)
			close(lists)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.want(manifest("a", "", stubborn))
				a := the(t, r.after(time.Second), "a")
				happens(r, func() { r.loop.Evict(r.t.Context(), verdict(a, pod.MemoryPressure)) })
				if got := phases(r.after(2 * time.Minute))["a"]; got != v1.PodRunning {
					t.Errorf("it is %s", got)
				}
				r.loop.Evict(r.t.Context(), verdict(the(t, r.after(0), "a"), pod.MemoryPressure))
				if got := phases(r.after(time.Minute))["a"]; got != v1.PodFailed {
					t.Errorf("after another verdict it is %s", got)
				}
			})
		})
	}
}

// Nothing is kept of evicted generations that are gone.
func TestEvictionsAreForgotten(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want(manifest("a", "", web))
		a := the(t, r.after(time.Second), "a")
		r.loop.Evict(r.t.Context(), verdict(a, pod.MemoryPressure))
		r.after(time.Minute)
		if n := r.loop.KnownEvictions(r.t.Context()); n != 2 {
			t.Errorf("%d are known", n)
		}
		r.want(manifest("a", "", web) + "  hostname: other\n")
		r.after(time.Minute)
		if n := r.loop.KnownEvictions(r.t.Context()); n != 0 {
			t.Errorf("%d are known of what is gone", n)
		}
	})
}

// TestEvictionIsToldByWhoFoundIt holds that the loop tells once of a pod that makes
// room, and nothing of one that is evicted: the evictor does.
func TestEvictionIsToldByWhoFoundIt(t *testing.T) {
	for cause, c := range map[pod.Cause]struct {
		reason string
		want   int
	}{pod.OwnLimit: {pod.Evicted, 0}, pod.Preempted: {pod.Preempting, 1}} {
		inRig(t, func(r *rig) {
			r.want(manifest("a", "", web) + "  restartPolicy: Never\n")
			v := verdict(the(t, r.after(time.Second), "a"), cause)
			v.Reason = c.reason
			r.loop.Evict(r.t.Context(), v)
			r.after(time.Hour)
			told := 0
			for _, line := range r.told.lines() {
				if strings.HasPrefix(line, "Warning "+c.reason+" ") {
					told++
				}
			}
			if told != c.want {
				t.Errorf("%s was told %d times, want %d", c.reason, told, c.want)
			}
		})
	}
}
