package sim

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// Law 7: every call about the sick pods hangs for two minutes, whichever it is,
// and there are more of them than pods that may start at a time.
func TestSickPodsDelayOnlyThemselves(t *testing.T) {
	for _, v := range withSickPods(t, nil) {
		t.Error(v)
	}
}

func TestPlantedBugOneCallAtATime(t *testing.T) {
	found := withSickPods(t, func(rt runtime.Runtime) runtime.Runtime { return serial{rt, make(chan struct{}, 1)} })
	if !slices.ContainsFunc(found, func(v violation) bool { return v.law == delayLaw }) {
		t.Errorf("got %v, want a breach of %q", found, delayLaw)
	}
}

func withSickPods(t *testing.T, lie func(runtime.Runtime) runtime.Runtime) (found []violation) {
	synctest.Test(t, func(*testing.T) {
		var ill atomic.Bool
		w := newWorld(1, true, lies{runtime: func(w *world, rt runtime.Runtime) runtime.Runtime {
			rt = &sick{Runtime: rt, w: w, ill: &ill}
			if lie != nil {
				rt = lie(rt)
			}
			return rt
		}}, nil)
		w.engine.Client("/var/lib/other") // the neighbour's number
		w.tree.makeDir(folder)
		put := func(name string, env int) {
			p := &podSpec{name: name, restart: "Always", grace: 2, containers: []containerSpec{{name: "c", image: "app:1", words: []string{"run"}, env: env}}}
			file := path.Join(folder, name+".yaml")
			w.tree.replace(file, p.yaml())
			w.truth.says(fileOrigin(file), p.yaml())
		}
		pods := []string{"sick0", "sick1", "sick2", "sick3", "sick4", "well"}
		for _, name := range pods {
			put(name, 0)
		}
		w.startAgent(-1)
		w.pass(time.Minute)
		ill.Store(true)
		for round := 1; round <= 5; round++ {
			for _, name := range pods {
				put(name, round)
			}
			w.pass(12 * time.Second)
			if !w.runs("well", round) {
				w.laws.violate(delayLaw, "the well pod is not at version %d after 12 s", round)
			}
			w.pass(90 * time.Second)
		}
		ill.Store(false)
		w.pass(10 * time.Minute)
		for _, name := range pods {
			if !w.runs(name, 5) {
				w.laws.violate(convergence, "%s does not run after it has recovered", name)
			}
		}
		w.crash()
		found = w.laws.violations
	})
	return found
}

// runs reports whether the container of a pod runs in that version.
func (w *world) runs(name string, env int) bool {
	return slices.ContainsFunc(w.engine.Containers(), func(c fake.View) bool {
		return c.Key.Name == name+"-"+nodeName && c.Spec != nil && c.State == runtime.Running && slices.Contains(c.Spec.Env, fmt.Sprintf("REV=%d", env))
	})
}

// sick lets every call about a sick pod hang.
type sick struct {
	runtime.Runtime
	w   *world
	ill *atomic.Bool
}

func (r *sick) hang(ctx context.Context, name string) error {
	if !r.ill.Load() || !strings.HasPrefix(name, "sick") {
		return nil
	}
	select {
	case <-time.After(2 * time.Minute):
	case <-ctx.Done():
	}
	return runtime.ErrUnavailable
}

func (r *sick) podOf(id string) string {
	for _, c := range r.w.engine.Containers() {
		if c.ID == id {
			return c.Key.Name
		}
	}
	return ""
}

func (r *sick) Inspect(ctx context.Context, id string) (runtime.Container, error) {
	if err := r.hang(ctx, r.podOf(id)); err != nil {
		return runtime.Container{}, err
	}
	return r.Runtime.Inspect(ctx, id)
}

func (r *sick) EnsureSandbox(ctx context.Context, s runtime.SandboxSpec) (runtime.Container, error) {
	if err := r.hang(ctx, s.Key.Name); err != nil {
		return runtime.Container{}, err
	}
	return r.Runtime.EnsureSandbox(ctx, s)
}

func (r *sick) EnsureContainer(ctx context.Context, s runtime.ContainerSpec) (string, error) {
	if err := r.hang(ctx, s.Key.Name); err != nil {
		return "", err
	}
	return r.Runtime.EnsureContainer(ctx, s)
}

func (r *sick) Start(ctx context.Context, id string) error {
	if err := r.hang(ctx, r.podOf(id)); err != nil {
		return err
	}
	return r.Runtime.Start(ctx, id)
}

func (r *sick) Stop(ctx context.Context, id string, grace time.Duration) error {
	if err := r.hang(ctx, r.podOf(id)); err != nil {
		return err
	}
	return r.Runtime.Stop(ctx, id, grace)
}

func (r *sick) Remove(ctx context.Context, id string) error {
	if err := r.hang(ctx, r.podOf(id)); err != nil {
		return err
	}
	return r.Runtime.Remove(ctx, id)
}

// serial makes one call at a time.
type serial struct {
	runtime.Runtime
	turn chan struct{}
}

func (r serial) wait(ctx context.Context) (done func()) {
	select {
	case r.turn <- struct{}{}:
		return func() { <-r.turn }
	case <-ctx.Done():
		return func() {}
	}
}

func (r serial) Inspect(ctx context.Context, id string) (runtime.Container, error) {
	defer r.wait(ctx)()
	return r.Runtime.Inspect(ctx, id)
}

func (r serial) Stop(ctx context.Context, id string, grace time.Duration) error {
	defer r.wait(ctx)()
	return r.Runtime.Stop(ctx, id, grace)
}

func (r serial) EnsureContainer(ctx context.Context, s runtime.ContainerSpec) (string, error) {
	defer r.wait(ctx)()
	return r.Runtime.EnsureContainer(ctx, s)
}
