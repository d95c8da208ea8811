package main

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// loop measures the loop alone, on an engine in memory that answers at once: a
// full look at 1,000 pods, and what one event costs among 1,000 and 5,000.
func (b *bench) loop(ctx context.Context) ([]Row, error) {
	var rows []Row
	for _, pods := range []int{1000, 5000} {
		got, err := loopWith(ctx, pods, b.opts.n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, got...)
	}
	return rows, nil
}

func loopWith(ctx context.Context, pods, n int) ([]Row, error) {
	started := make(chan struct{}, 4*pods)
	engine := fake.New(fake.Config{Fate: fake.Immediate(), Observe: func(c fake.Change) {
		if c.Verb == "start" {
			started <- struct{}{}
		}
	}})
	engine.SetImage("busybox:stable", fake.Image{Present: true})
	set, err := manyDesired(pods)
	if err != nil {
		return nil, err
	}
	files := &memory{files: make(map[string][]byte)}
	if _, err := runLoop(ctx, engine, files, set, pods, nil); err != nil {
		return nil, err
	}
	for len(started) > 0 {
		<-started
	}
	var resync, event sample
	var mallocs float64
	for range min(n, 5) {
		d, err := runLoop(ctx, engine, files, set, pods, nil)
		if err != nil {
			return nil, err
		}
		resync.add(d)
	}
	_, err = runLoop(ctx, engine, files, set, pods, func() error {
		var before, after goruntime.MemStats
		victims := engine.Containers()
		goruntime.ReadMemStats(&before)
		events := 0
		for _, c := range victims {
			if c.IsSandbox() || c.State != runtime.Running {
				continue
			}
			t0 := time.Now()
			engine.Kill(c.ID)
			select {
			case <-started:
			case <-ctx.Done():
				return ctx.Err()
			}
			event.add(time.Since(t0))
			if events++; events == 200 {
				break
			}
		}
		goruntime.ReadMemStats(&after)
		mallocs = float64(after.Mallocs-before.Mallocs) / float64(events)
		return nil
	})
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%d pods in memory: ", pods)
	return []Row{
		row(name+"full look", resync, nil, "", "start of the loop until all is known and settled"),
		row(name+"exit → restarted", event, nil, "the same for 1000 and 5000", fmt.Sprintf("%.0f allocations an event, the model's included", mallocs)),
	}, nil
}

// runLoop runs a loop until that many pods are settled, calls f, and stops it.
// It returns how long the settling took.
func runLoop(ctx context.Context, engine *fake.Engine, files *memory, set pod.Set, pods int, f func() error) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := reconcile.New(reconcile.Config{Node: reconcile.Node{Name: "node", RootDir: "/bench"}}, reconcile.Deps{
		Runtime: engine.Client("/bench"), Store: files, Volumes: nothing{}, Logs: nothing{}, Log: slog.New(slog.DiscardHandler),
	})
	sets, ended := make(chan pod.Set, 1), make(chan error, 1)
	sets <- set
	t0 := time.Now()
	go func() { ended <- l.Run(ctx, sets) }()
	for {
		snap, err := l.Snapshot(ctx, 0)
		if err != nil {
			return 0, err
		}
		unsettled := slices.ContainsFunc(snap.Pods, func(v reconcile.View) bool { return !v.Settled() })
		if snap.Ready && len(snap.Pods) == pods && !unsettled {
			break
		}
		time.Sleep(max(20*time.Millisecond, time.Since(t0)/10)) // a snapshot of thousands is work for the loop
	}
	took := time.Since(t0)
	var err error
	if f != nil {
		err = f()
	}
	cancel()
	<-ended
	return took, err
}

func manyDesired(n int) (pod.Set, error) {
	source := pod.SourceID{Kind: pod.FileSource, Name: "/m"}
	set := pod.Set{Claims: make(map[pod.Key][]*pod.Pod), Sources: []pod.Source{{ID: source, Spoken: true, Present: true}}}
	for i := range n {
		text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec:\n  containers: [{name: c, image: 'busybox:stable', command: [sleep, inf]}]\n", i)
		result := manifests.Parse([]byte(text), pod.Origin{Source: source, Name: fmt.Sprintf("/m/p%d.yaml", i)}, manifests.Options{NodeName: "node"})
		if len(result.Documents) != 1 || result.Documents[0].Pod == nil {
			return set, fmt.Errorf("manifest: %v", result.Problems)
		}
		p := result.Documents[0].Pod
		set.Claims[p.Key()] = []*pod.Pod{p}
	}
	return set, nil
}

// memory is a root dir in memory.
type memory struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (m *memory) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func (m *memory) WriteFile(name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = data
	return nil
}

func (m *memory) Entries(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make(map[string]bool)
	for name := range m.files {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			first, _, _ := strings.Cut(rest, "/")
			names[first] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func (m *memory) RemovePod(uid types.UID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.files {
		if strings.HasPrefix(name, "pods/"+string(uid)+"/") {
			delete(m.files, name)
		}
	}
	return nil
}

// nothing stands for volumes and log links, which the loop's pods do not have.
type nothing struct{}

func (nothing) Ensure(context.Context, volume.Request) error           { return nil }
func (nothing) Path(volume.Request) string                             { return "" }
func (nothing) SubPath(volume.Request, volume.Part) (string, error)    { return "", nil }
func (nothing) ReadFile(volume.Request, string, int64) ([]byte, error) { return nil, nil }
func (nothing) Hosts(types.UID, []byte) (string, error)                { return "", nil }
func (nothing) Remove(types.UID) error                                 { return nil }
func (nothing) Link(runtime.Container) error                           { return nil }
func (nothing) Unlink(pod.Key, types.UID) error                        { return nil }
