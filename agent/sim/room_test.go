package sim

import (
	"bytes"
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// criticalKey is that of the pod for which others make room.
var criticalKey = pod.Key{Namespace: "default", Name: critical + "-" + nodeName}

// roomOf is for how many pods a node has room in a scenario, 0 for no limit.
func roomOf(seed uint64) int64 {
	if seed%3 == 0 {
		return 2
	}
	return 0
}

func (w *world) allocatable() reconcile.Allocatable {
	if w.lies.spacious {
		return reconcile.Allocatable{}
	}
	return reconcile.Allocatable{Pods: w.laws.room}
}

// fits checks that no more pods run than there is room for, where it was the agent
// that let them in.
func (l *laws) fits(c *life) {
	keys := map[pod.Key]bool{c.Key: true}
	for _, o := range l.live {
		if o.IsSandbox() && ours(o.View) && o.State == runtime.Running && o.byUs {
			keys[o.Key] = true
		}
	}
	if l.room > 0 && int64(len(keys)) > l.room {
		l.violate(roomLaw, "%s starts beside %d other pods", c.Name, len(keys)-1)
	}
}

// preempted reports whether a pod may have to go for the critical one, and notes it.
func (l *laws) preempted(c *life) bool {
	if l.room == 0 || c.Key == criticalKey {
		return false
	}
	asks, others := false, int64(0)
	for key := range l.truth.said {
		ever := l.truth.saidSince(key, time.Now().Add(-stale))
		switch {
		case key == criticalKey:
			asks = ever
		case ever || len(l.of(key)) > 0:
			others++
		}
	}
	if !asks || others < l.room {
		return false
	}
	l.outbid[c.UID] = true
	return true
}

// wasPreempted reports whether a version of a pod is remembered as one that had to go
// for the critical one.
func (d *driver) wasPreempted(p *pod.Pod) bool {
	uid := manifests.MintUID(rootDir, nodeName, p.Key(), p.Hash)
	return bytes.Contains(d.disk.files["pods/"+string(uid)+"/state.json"], []byte(`"`+reconcile.Preempting+`"`))
}

// saidSince reports whether any origin has said a version of a key at any time since.
func (t *truth) saidSince(key pod.Key, at time.Time) bool {
	for _, said := range t.said[key] {
		for i, s := range said {
			if s.pod != nil && (i+1 == len(said) || said[i+1].since.After(at)) {
				return true
			}
		}
	}
	return false
}

// crowded reports whether a pod has to wait for room: as many others have it. Nobody
// but its like keeps the critical one waiting.
func (d *driver) crowded(want *pod.Pod, all map[pod.Key][]fake.View) bool {
	if d.laws.room == 0 || want.Key() == criticalKey {
		return false
	}
	holders := int64(0)
	for key := range d.truth.said {
		versions, sure := d.truth.now(key)
		runs := slices.ContainsFunc(all[key], func(c fake.View) bool { return c.IsSandbox() && c.State == runtime.Running })
		if key != want.Key() && (runs || !sure || slices.ContainsFunc(versions, d.truth.mayLack)) {
			holders++
		}
	}
	return holders >= d.laws.room
}
