package reconcile_test

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// there says what is in the engine of a pod, containers and sandboxes, and how many
// of them run.
func (r *rig) there(name string) (containers, sandboxes, running int) {
	for _, c := range r.engine.Containers() {
		switch {
		case c.Key.Name != name+"-node":
			continue
		case c.IsSandbox():
			sandboxes++
		default:
			containers++
		}
		if c.State == runtime.Running {
			running++
		}
	}
	return containers, sandboxes, running
}

func gone(snap reconcile.Snapshot, name string) bool {
	for _, v := range snap.Pods {
		if strings.HasPrefix(v.Object.Name, name+"-") {
			return v.Gone()
		}
	}
	return true
}

// What a removed pod wrote last can be read for a while: its containers stay, and
// hold no port and no network, and keep no pod from taking its place.
func TestLogsOfARemovedPodStay(t *testing.T) {
	inRig(t, func(r *rig) {
		r.stop()
		r.keepLogs = time.Minute
		r.start(reconcile.Policy{})
		web := manifest("web", "", "{name: c, image: present:1, "+port+"80}]}")
		r.want(web)
		r.after(time.Second)
		r.want(manifest("other", "", "{name: c, image: present:1, "+port+"80}]}"))
		snap := r.after(40 * time.Second)
		if c, _, running := r.there("web"); c != 1 || running != 0 || !gone(snap, "web") {
			t.Errorf("soon after: %d containers, %d run, gone %v; want one that ended, of a pod that is gone", c, running, gone(snap, "web"))
		}
		if n := len(r.volumes.removals()); n != 1 {
			t.Errorf("its volumes were removed %d times while its logs stay, want once", n)
		}
		if got := phases(snap)["other"]; got != v1.PodRunning {
			t.Errorf("the pod that takes its port is %s", got)
		}
		snap = r.after(time.Minute)
		if c, sandboxes, _ := r.there("web"); c != 0 || sandboxes != 0 || len(snap.Pods) != 1 {
			t.Errorf("later: %d containers and %d sandboxes of %d pods", c, sandboxes, len(snap.Pods))
		}
		// One that comes back does not wait.
		r.want(web)
		r.after(time.Second)
		r.want()
		r.after(40 * time.Second)
		r.want(web)
		if got := phases(r.after(time.Second))["web"]; got != v1.PodRunning {
			t.Errorf("the pod that came back is %s", got)
		}
		// Nor does one that is given its UID.
		r.want(manifest("first", ", uid: u1", "{name: c, image: present:1}"))
		r.after(time.Second)
		r.want(manifest("second", ", uid: u1", "{name: c, image: present:1}"))
		if got := phases(r.after(5 * time.Second))["second"]; got != v1.PodRunning {
			t.Errorf("the pod that was given its UID is %s", got)
		}
		// One that ended long ago goes at once.
		once := manifest("once", "", `{name: c, image: present:1, command: ["exit=0"]}`) + "  restartPolicy: Never\n"
		r.want(once)
		r.after(2 * time.Minute)
		r.want()
		r.after(time.Second)
		if c, _, _ := r.there("once"); c != 0 {
			t.Errorf("%d containers of a pod that had ended before it was removed", c)
		}
	})
}

// A disk that is short has no room for them; nor does one that is not short any more
// take them away.
func TestLogsOfARemovedPodGoForTheDisk(t *testing.T) {
	inRig(t, func(r *rig) {
		r.stop()
		r.keepLogs = time.Hour
		r.start(reconcile.Policy{})
		r.want(manifest("web", "", "{name: c, image: present:1}"))
		r.after(time.Second)
		r.want()
		over := reconcile.Shortage{Message: "that is over, but not yet for 5m", Over: time.Now().Add(5 * time.Minute)}
		r.loop.Press(context.Background(), reconcile.Pressure{Looked: true, Disk: over})
		r.after(time.Minute)
		if c, _, _ := r.there("web"); c != 1 {
			t.Errorf("%d containers before", c)
		}
		r.loop.Press(context.Background(), reconcile.Pressure{Looked: true, Disk: reconcile.Shortage{Message: "short"}})
		if snap := r.after(time.Second); len(snap.Pods) != 0 {
			t.Errorf("%d pods are left", len(snap.Pods))
		}
	})
}
