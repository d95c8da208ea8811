package sim

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// What the machine can be short of.
const (
	ofNothing int32 = iota
	ofMemory
	ofDisk
	shortages
)

// critical is the name of a pod that is.
const critical = "p5"

// perContainer is what each running container takes of memory, and of the disk.
const perContainer = int64(64 << 20)

// press has the machine be short of something, or of nothing any more.
func (d *driver) press() bool {
	next := int32(d.r.IntN(int(shortages)))
	d.fate.Trace("short of %d", next)
	d.short.Store(next)
	return true
}

// node is a machine whose containers all take the same.
func (w *world) node() stats.Node {
	used := int64(0)
	for _, c := range w.engine.Containers() {
		if ours(c) && !c.IsSandbox() && c.State == runtime.Running {
			used += perContainer
		}
	}
	const plenty, little = int64(4 << 30), int64(150 << 20)
	available := func(kind int32) int64 {
		if w.short.Load() == kind {
			return max(little-used, 0)
		}
		return plenty - used
	}
	capacity, left := plenty, available(ofMemory)
	fs := &stats.Filesystem{Path: rootDir, Device: "1", Capacity: plenty, Available: available(ofDisk)}
	return stats.Node{
		Memory: stats.NodeMemory{Capacity: &capacity, Available: &left},
		NodeFS: fs, ImageFS: fs, ContainerFS: fs,
	}
}

// looks reads something of the machine, which takes a moment: nobody else acts on what
// he reads at that instant.
func (i *incarnation) looks(ctx context.Context, fate *fake.Fate, read func()) {
	call := fake.Call{Verb: "look", Object: "node", Min: time.Millisecond, Max: 10 * time.Millisecond, Fence: i.fence, Rates: &fake.Rates{}, Quiet: true}
	_ = fate.Do(ctx, call, func() error {
		read()
		return nil
	}) // who is dead reads nothing
}

// evictor is that of an agent.
func (w *world) evictor(i *incarnation) gc.Evictor {
	loop := i.loop
	threshold := gc.Amount{Value: 100 << 20}
	e := gc.Evictor{
		Policy: gc.EvictionPolicy{
			Thresholds: []gc.Threshold{{Signal: gc.MemoryAvailable, Amount: threshold}, {Signal: gc.NodeFSAvailable, Amount: threshold}},
			Transition: 5 * time.Minute,
		},
		Node: func(ctx context.Context) (n stats.Node) {
			i.looks(ctx, w.fate, func() { n = w.node() })
			return n
		},
		Pods: func(ctx context.Context) ([]gc.Candidate, error) {
			snap, err := loop.Snapshot(ctx, 0)
			if err == nil && !(snap.Ready && snap.Online) {
				err = errors.New("the engine is away")
			}
			return agent.Candidates(snap), err
		},
		Usage:   w.usage,
		Reclaim: func(context.Context, bool) {},
		Press:   func(ctx context.Context, r gc.Report) { loop.Press(ctx, agent.Pressure(r)) },
		Evict: func(ctx context.Context, v pod.Verdict) {
			w.laws.condemned(v)
			loop.Evict(ctx, v)
		},
		Gone:   func(ctx context.Context, uid types.UID) { agent.AwaitGone(ctx, loop, uid) },
		Events: pod.LogEvents(w.log), Log: w.log,
	}
	if w.lies.evictor != nil {
		w.lies.evictor(&e)
	}
	return e
}

func (w *world) usage(_ context.Context, list []gc.Candidate, _ bool) []gc.Candidate {
	used := make(map[types.UID]int64)
	for _, c := range w.engine.Containers() {
		if ours(c) && !c.IsSandbox() && c.State == runtime.Running {
			used[c.UID] += perContainer
		}
	}
	for i, c := range list {
		bytes := used[c.UID]
		list[i].Stats = &stats.Pod{
			Cgroup:     stats.Cgroup{WorkingSet: &bytes},
			Containers: map[string]stats.Container{"": {RootFS: &stats.Usage{Time: w.wall(), Bytes: bytes}}},
		}
	}
	return list
}

// condemned sees each verdict.
func (l *laws) condemned(v pod.Verdict) {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	now := time.Now()
	for _, c := range l.live {
		if !ours(c.View) {
			continue
		}
		if c.UID == v.UID && l.truth.ever(c.Key, func(p *pod.Pod) bool { return p.Hash == v.Hash && pod.Exempt(p.Object) }) {
			l.violate(exemptStay, "%s is to be evicted: %s", c.Name, v.Message)
		}
		// An agent that died has not waited for what it began, and none waits for ever.
		if at, out := l.evicted[c.UID]; out && c.UID != v.UID && at.After(l.began) && now.Sub(at) < 30*time.Second {
			l.violate(oneAtATime, "%s is to be evicted while %s is there", v.UID, c.Name)
		}
	}
	l.evicted[v.UID] = now
}

// wasEvicted reports whether a version of a pod was evicted, and has not come back.
func (l *laws) wasEvicted(p *pod.Pod) bool {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	_, out := l.evicted[manifests.MintUID(rootDir, nodeName, p.Key(), p.Hash)]
	return out
}

// levelling knows no priorities.
func levelling(e *gc.Evictor) {
	pods := e.Pods
	e.Pods = func(ctx context.Context) ([]gc.Candidate, error) {
		list, err := pods(ctx)
		for i, c := range list {
			p := *c.Pod
			p.Object = p.Object.DeepCopy()
			p.Object.Spec.PriorityClassName, p.Object.Spec.Priority = "", nil
			list[i].Pod = &p
		}
		return list, err
	}
}

// impatient does not wait for the removal of a pod.
func impatient(e *gc.Evictor) {
	e.Gone = func(ctx context.Context, _ types.UID) {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// gloomy tells of every shortage, and never of its end.
func gloomy(e *gc.Evictor) {
	press := e.Press
	e.Press = func(ctx context.Context, r gc.Report) {
		if r.Conditions[pod.MemoryPressure].Over.IsZero() || r.Conditions[pod.DiskPressure].Over.IsZero() {
			press(ctx, r)
		}
	}
}

// Law 3, where a pod is evicted and comes back: whatever effect is the agent's last,
// the same containers are made, and the pod runs again.
func TestCrashInAnEviction(t *testing.T) {
	// A sandbox and two containers twice.
	crashEverywhere(t, 6, func(s *script) {
		s.put()
		s.wait(3 * time.Minute)
		s.short.Store(ofMemory)
		s.wait(time.Minute)
		s.short.Store(ofNothing)
		s.wait(15 * time.Minute)
	})
}
