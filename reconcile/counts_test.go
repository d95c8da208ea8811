package reconcile_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/reconcile/probe"
)

// counted counts what a loop says.
type counted struct {
	mu             sync.Mutex
	turns, planned int
	orphans        int
	taken          map[string]int // by verb and result
	up             []time.Duration
	rejected       []reconcile.Reason
	probed         map[string]int
}

func (c *counted) Turned(time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns++
}

func (c *counted) Planned(int, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planned++
}

func (c *counted) Took(wave []reconcile.Taken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken == nil {
		c.taken = make(map[string]int)
	}
	for _, t := range wave {
		result := "done"
		if t.Err != nil {
			result = string(t.Reason)
		}
		if t.Init {
			result = "init " + result
		}
		c.taken[string(t.Step.Verb)+" "+result]++
	}
}

func (c *counted) Rejected(r reconcile.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rejected = append(c.rejected, r)
}

func (c *counted) Orphaned() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orphans++
}

func (c *counted) orphaned() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orphans
}

func (c *counted) Up(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up = append(c.up, took)
}

func (c *counted) Probed(k reconcile.Checked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.probed == nil {
		c.probed = make(map[string]int)
	}
	c.probed[fmt.Sprint(k.Pod, " ", k.Container, " ", k.UID != "", " ", k.Kind, " ", k.Outcome)]++
}

// What the loop does is counted once, by what came of it.
func TestCounts(t *testing.T) {
	inRig(t, func(r *rig) {
		r.check.Store(func(probe.Check) probe.Result { return probe.Result{Outcome: probe.Success} })
		r.want(
			manifest("a", "", "{name: c, image: present:1, readinessProbe: {periodSeconds: 10, exec: {command: [x]}}}")+"  initContainers: [{name: i, image: present:1, args: [exit=0]}]\n",
			manifest("b", "", "{name: c, image: present:1}")+"  nodeSelector: {no: where}\n",
		)
		r.after(95 * time.Second)
		c := &r.counted
		c.mu.Lock()
		defer c.mu.Unlock()
		got := map[string]int{}
		for _, what := range []string{"create-sandbox done", "create-container done", "create-container init done", "start-container done", "start-container init done"} {
			got[what] = c.taken[what]
		}
		want := map[string]int{
			"create-sandbox done": 1, "create-container done": 1, "create-container init done": 1, "start-container done": 1, "start-container init done": 1,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]reconcile.Reason{reconcile.NodeAffinity}, c.rejected); diff != "" {
			t.Errorf("rejections (-want +got):\n%s", diff)
		}
		if len(c.up) != 1 || c.up[0] < 0 || c.up[0] > time.Minute {
			t.Errorf("pods came up after %v", c.up)
		}
		probed := c.probed["default/a-node c true readiness success"]
		all := len(c.probed)
		if probed < 9 || probed > 12 || all != 1 {
			t.Errorf("checks: %v", c.probed)
		}
		turns, planned := c.turns, c.planned
		if turns < 5 || planned < 5 {
			t.Errorf("%d turns, %d plans", turns, planned)
		}
	})
}

// What is there of a pod that nobody wanted since the agent began is an orphan; a pod
// that is removed while it runs is none.
func TestCountsOrphans(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want(manifest("a", "", "{name: c, image: present:1}"), manifest("b", "", "{name: c, image: present:1}"))
		r.after(time.Minute)
		r.want(manifest("a", "", "{name: c, image: present:1}"))
		r.after(time.Minute)
		if n := r.counted.orphaned(); n != 0 {
			t.Errorf("%d orphans of a removal", n)
		}
		r.stop()
		r.start(reconcile.Policy{})
		r.want()
		r.after(time.Minute)
		if n := r.counted.orphaned(); n != 1 {
			t.Errorf("%d orphans after a start, want 1", n)
		}
	})
}
