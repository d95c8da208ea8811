package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// TestStartsAtATime holds that only as many pods as the engine can feed start containers
// at a time; that what starts none passes them; and law 7: one whose start hangs does not
// keep the others waiting.
func TestStartsAtATime(t *testing.T) {
	inRig(t, func(r *rig) {
		const atATime = 8
		const container = "{name: c, image: present:1}"
		r.want(manifest("old", "", container))
		r.after(time.Second)
		r.stuck = make(chan struct{})
		var texts []string
		for i := range atATime + 1 {
			texts = append(texts, manifest(fmt.Sprintf("p%d", i), "", container))
		}
		r.want(texts...)
		snap := r.after(4 * time.Second)
		if _, there := phases(snap)["old"]; there || r.starts.Load() != atATime {
			t.Errorf("%d containers are being started; the pod that was to go is there: %t", r.starts.Load(), there)
		}
		r.after(2 * time.Second)
		if got := r.starts.Load(); got != atATime+1 {
			t.Errorf("%d containers are being started though the first hang", got)
		}
		close(r.stuck)
		got := phases(r.after(time.Second))
		for i := range texts {
			if name := fmt.Sprintf("p%d", i); got[name] != v1.PodRunning {
				t.Errorf("%s is %q", name, got[name])
			}
		}
	})
}
