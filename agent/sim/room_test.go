package sim

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// criticalKey is that of the pod for which others make room.
var criticalKey = pod.Key{Namespace: "default", Name: critical + "-" + nodeName}

// amounts are how many pods, thousandths of a CPU and bytes of memory.
type amounts [3]int64

// roomOf is what a node has for pods in a scenario, 0 for no limit: some have room for
// few pods, some little CPU and memory, and some both.
func roomOf(seed uint64) (a amounts) {
	if seed%3 == 0 {
		a[0] = 2
	}
	if seed%4 == 1 {
		a[1], a[2] = 3000, 2<<30
	}
	return a
}

// requests draws what a pod asks for, where there is not enough for all.
func (d *driver) requests(p *podSpec) {
	if d.laws.room[1] > 0 {
		p.cpu, p.gigs = d.r.IntN(3), d.r.IntN(3)
	}
}

// asks is what a pod asks for.
func asks(p *pod.Pod) amounts {
	sum := resource.PodRequests(p.Object, resource.PodResourcesOptions{})
	return amounts{1, sum.Cpu().MilliValue(), sum.Memory().Value()}
}

func (a amounts) plus(b amounts) amounts {
	for i := range a {
		a[i] += b[i]
	}
	return a
}

func (a amounts) most(b amounts) amounts {
	for i := range a {
		a[i] = max(a[i], b[i])
	}
	return a
}

// exceeds reports whether that is more than there is.
func (a amounts) exceeds(room amounts) bool {
	for i := range a {
		if room[i] > 0 && a[i] > room[i] {
			return true
		}
	}
	return false
}

func (w *world) allocatable() reconcile.Allocatable {
	room := w.laws.room
	if w.lies.room != nil {
		room = w.lies.room(room)
	}
	return reconcile.Allocatable{Pods: room[0], CPU: room[1], Memory: room[2]}
}

// fits checks that no more pods run than there is room for, where it was the agent
// that let them in. What one of them asked for may have been changed in place: the
// least counts.
func (l *laws) fits(c *life) {
	if l.room == (amounts{}) {
		return
	}
	used := l.least(c.View)
	for _, o := range l.live {
		if o.IsSandbox() && ours(o.View) && o.State == runtime.Running && o.byUs && o.Key != c.Key {
			used = used.plus(l.least(o.View))
		}
	}
	if used.exceeds(l.room) {
		l.violate(roomLaw, "%s starts: pods, CPU and memory are %v of %v", c.Name, used, l.room)
	}
}

// least is what a sandbox's pod asked for at least.
func (l *laws) least(c fake.View) amounts {
	least, known := amounts{1}, false
	l.truth.ever(c.Key, func(p *pod.Pod) bool {
		if a := asks(p); p.Hash == c.PodHash {
			if !known {
				least, known = a, true
			}
			for i := range a {
				least[i] = min(least[i], a[i])
			}
		}
		return false
	})
	return least
}

// preempted reports whether a pod may have to go for the critical one, and notes it.
func (l *laws) preempted(c *life) bool {
	if l.room == (amounts{}) || c.Key == criticalKey {
		return false
	}
	wanted, sum := false, amounts{}
	for key := range l.truth.said {
		ever := l.truth.saidSince(key, time.Now().Add(-stale))
		if key == criticalKey {
			wanted = ever
		}
		if ever || len(l.of(key)) > 0 {
			sum = sum.plus(l.truth.mostAsked(key, func(*pod.Pod) bool { return true }))
		}
	}
	if !wanted || !sum.exceeds(l.room) {
		return false
	}
	l.outbid[c.UID] = true
	return true
}

// mostAsked is the most that versions of a pod ever asked for that match.
func (t *truth) mostAsked(key pod.Key, match func(*pod.Pod) bool) amounts {
	most := amounts{1}
	t.ever(key, func(p *pod.Pod) bool {
		if match(p) {
			most = most.most(asks(p))
		}
		return false
	})
	return most
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

// crowded reports whether a pod has to wait for room: others have it, or it is kept for
// one that waits for some that will end. Nobody but its like keeps the critical one
// waiting.
func (d *driver) crowded(want *pod.Pod, all map[pod.Key][]fake.View) bool {
	if d.laws.room == (amounts{}) || want.Key() == criticalKey {
		return asks(want).exceeds(d.laws.room)
	}
	used, kept, waits := asks(want), asks(want), false
	for key := range d.truth.said {
		if key == want.Key() {
			continue
		}
		versions, sure := d.truth.now(key)
		i := slices.IndexFunc(all[key], func(c fake.View) bool { return c.IsSandbox() && c.State == runtime.Running })
		holds := d.truth.mostAsked(key, func(p *pod.Pod) bool {
			return i < 0 && !sure || i >= 0 && p.Hash == all[key][i].PodHash || slices.Contains(versions, p)
		})
		switch has := i >= 0 || !sure || slices.ContainsFunc(versions, d.truth.mayLack); {
		case has && slices.ContainsFunc(versions, func(p *pod.Pod) bool { return p.Object.Spec.RestartPolicy != v1.RestartPolicyAlways }):
			used = used.plus(holds)
		case has:
			used, kept = used.plus(holds), kept.plus(holds)
		case len(versions) > 0:
			kept, waits = kept.plus(holds), true
		}
	}
	return used.exceeds(d.laws.room) || waits && kept.exceeds(d.laws.room)
}

// resized reports whether what a pod asks for was changed in place: where there is no
// room for that, it goes on as it was.
func (d *driver) resized(want *pod.Pod) bool {
	return d.truth.ever(want.Key(), func(p *pod.Pod) bool { return p.Hash == want.Hash && asks(p) != asks(want) })
}

// saysWhy checks that a pod waits for room as one that says so.
func (d *driver) saysWhy(when string, all map[pod.Key][]fake.View) {
	if d.laws.room == (amounts{}) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	snap, err := d.agent.loop.Snapshot(ctx, 0)
	if err != nil {
		d.laws.violate(convergence, "the loop does not answer: %v", err)
		return
	}
	used := amounts{}
	for _, list := range all {
		for _, c := range list {
			if c.IsSandbox() && c.State == runtime.Running {
				used = used.plus(d.laws.least(c))
			}
		}
	}
	for _, v := range snap.Pods {
		want, why := v.Plan.Pod, string(v.Plan.Blocked.Reason)
		if d.lies.mute {
			why = ""
		}
		if want == nil || len(all[want.Key()]) > 0 || want.Key() == criticalKey || hostPort(want.Object) != 0 || d.truth.mayLack(want) ||
			d.laws.isHeld(want.Key()) || d.laws.wasEvicted(want) || d.wasPreempted(want) || want.Object.Spec.RestartPolicy != v1.RestartPolicyAlways {
			continue
		}
		if used.plus(asks(want)).exceeds(d.laws.room) && !strings.HasPrefix(why, "OutOf") {
			d.laws.violate(sayLaw, "%s: %s waits for %q, and %v of %v are in use", when, want.Key(), why, used, d.laws.room)
		}
	}
}
