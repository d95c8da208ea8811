package sim

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// Every invariant can fail: each bug is caught, within a few seeds, by the
// invariant that it breaks.
func TestPlantedBugs(t *testing.T) {
	for name, bug := range map[string]struct {
		lies lies
		law  string
	}{
		"each sandbox is made twice": {law: oneSandbox, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return twoSandboxes{rt}
		}}},
		"each container is started twice": {law: oneContainer, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return &twoContainers{Runtime: rt, other: map[string]string{}, start: true}
		}}},
		"each container is made twice": {law: twice, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return &twoContainers{Runtime: rt, other: map[string]string{}}
		}}},
		"what is to be stopped is only forgotten": {law: inOrder, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return &forgetful{Runtime: rt, forgotten: map[string]bool{}}
		}}},
		"every pod takes one more port, the same": {law: portOrder, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return greedy{rt}
		}}},
		"a stop takes the neighbours along": {law: neighbours, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return rude{rt}
		}}},
		"what is held by hand is forgotten with the agent": {law: convergence, lies: lies{store: func(s session) reconcile.Store {
			return oblivious{s}
		}}},
		"a broken file counts as an empty one":   {law: silence, lies: lies{set: believeErrors}},
		"a silent source counts as an empty one": {law: silence, lies: lies{set: believeSilence}},
		"a container gets another's environment": {law: undesired, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return meddler{rt}
		}}},
		"a stop reaches for what is not ours": {law: foreign, lies: lies{runtime: func(w *world, rt runtime.Runtime) runtime.Runtime {
			return grabber{rt, w}
		}}},
		"folders go when their state is written": {law: folderLast, lies: lies{store: func(s session) reconcile.Store {
			return shredder{s}
		}}},
		"nothing initialises a pod": {law: initFirst, lies: lies{set: uninitialised}},
		"an init container runs once more beside the others": {law: initFirst, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return again{rt}
		}}},
		"sidecars end with the first of the others": {law: sidecarLast, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return hasty{rt}
		}}},
		"a ConfigMap that is not there is made up": {law: needed, lies: lies{set: madeUp}},
		"a volume never changes": {law: contentLaw, lies: lies{volumes: func(v volumes) reconcile.Volumes {
			return rigid{v}
		}}},
		"what probes said is not remembered": {law: readyLaw, lies: lies{store: func(s session) reconcile.Store {
			return unprobed{s}
		}}},
		"the agent begins with no folder": {law: volumesStay, lies: lies{atStart: clearFolders}},
		"a start does nothing": {law: convergence, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return idler{rt}
		}}},
		"every container seems to have run for long": {law: backOff, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return flatterer{rt}
		}}},
		"images go although they are wanted": {law: imagesStay, lies: lies{images: func(c *gc.ImageConfig, rt runtime.Runtime) {
			c.Wanted = func(context.Context) (gc.Wanted, error) { return gc.Wanted{Whole: true}, nil }
			c.Remove = func(ctx context.Context, i runtime.StoredImage) (bool, error) {
				err := rt.RemoveImage(ctx, i.ID)
				return err == nil, err
			}
		}}},
		"images go that are another's": {law: imagesStay, lies: lies{images: func(c *gc.ImageConfig, _ runtime.Runtime) {
			c.Policy.Foreign = true
		}}},
		"critical pods are evicted like any": {law: exemptStay, lies: lies{evictor: levelling}},
		"there is always room":               {law: roomLaw, lies: lies{room: func(amounts) amounts { return amounts{} }}},
		"there is always CPU":                {law: roomLaw, lies: lies{room: func(a amounts) amounts { a[1] = 0; return a }}},
		"there is always memory":             {law: roomLaw, lies: lies{room: func(a amounts) amounts { a[2] = 0; return a }}},
		"there is less CPU than there is":    {law: convergence, lies: lies{room: func(a amounts) amounts { a[1] /= 3; return a }}},
		"a shutdown takes no turns": {law: shutLaw, lies: lies{shutdown: func(s *reconcile.Shutdown) *reconcile.Shutdown {
			all := *s
			all.Turn = len(s.Groups) - 1
			return &all
		}}},
		"no shutdown is heard of":                          {law: shutLaw, lies: lies{shutdown: func(*reconcile.Shutdown) *reconcile.Shutdown { return nil }}},
		"a shutdown waits for nobody":                      {law: shutLaw, lies: lies{hurry: true}},
		"a shutdown that is called off goes on":            {law: convergence, lies: lies{stubborn: true}},
		"nobody says that there is no room":                {law: sayLaw, lies: lies{mute: true}},
		"nobody waits until an evicted pod is gone":        {law: oneAtATime, lies: lies{evictor: impatient}},
		"an evicted pod does not hear that it is all over": {law: convergence, lies: lies{evictor: gloomy}},
		"limits are set once a minute":                     {law: stillness, lies: lies{atStart: fidget}},
		"the agent begins with a stop":                     {law: restartLaw, lies: lies{atStart: clearOut}},
		"no CPU is ever taken from a container": {law: cpuLaw, lies: lies{runtime: func(_ *world, rt runtime.Runtime) runtime.Runtime {
			return lavish{rt}
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const within = 80
			bug.lies.breaks = bug.law
			for seed := range uint64(within) {
				for _, v := range simulate(t, seed+1, bug.lies, nil).violations {
					if v.law == bug.law {
						return
					}
				}
			}
			t.Errorf("%d seeds, and none breaks %q", within, bug.law)
		})
	}
}

type twoSandboxes struct{ runtime.Runtime }

func (r twoSandboxes) EnsureSandbox(ctx context.Context, s runtime.SandboxSpec) (runtime.Container, error) {
	c, err := r.Runtime.EnsureSandbox(ctx, s)
	s.Attempt += 100
	_, _ = r.Runtime.EnsureSandbox(ctx, s)
	return c, err
}

// twoContainers makes two for one, and may start both.
type twoContainers struct {
	runtime.Runtime
	start bool
	mu    sync.Mutex
	other map[string]string
}

func (r *twoContainers) EnsureContainer(ctx context.Context, s runtime.ContainerSpec) (string, error) {
	id, err := r.Runtime.EnsureContainer(ctx, s)
	s.Attempt += 100
	other, _ := r.Runtime.EnsureContainer(ctx, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.other[id] = other
	return id, err
}

func (r *twoContainers) Start(ctx context.Context, id string) error {
	err := r.Runtime.Start(ctx, id)
	r.mu.Lock()
	other := r.other[id]
	r.mu.Unlock()
	if r.start && other != "" {
		_ = r.Runtime.Start(ctx, other)
	}
	return err
}

// forgetful says of what it was to stop that it is gone.
type forgetful struct {
	runtime.Runtime
	mu        sync.Mutex
	forgotten map[string]bool
}

func (r *forgetful) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forgotten[id]
}

func (r *forgetful) Stop(_ context.Context, id string, _ time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten[id] = true
	return nil
}

func (r *forgetful) Inspect(ctx context.Context, id string) (runtime.Container, error) {
	if r.has(id) {
		return runtime.Container{}, runtime.ErrNotFound
	}
	return r.Runtime.Inspect(ctx, id)
}

func (r *forgetful) Remove(ctx context.Context, id string) error {
	if r.has(id) {
		return nil
	}
	return r.Runtime.Remove(ctx, id)
}

func (r *forgetful) List(ctx context.Context) ([]runtime.Summary, error) {
	list, err := r.Runtime.List(ctx)
	return slices.DeleteFunc(list, func(s runtime.Summary) bool { return r.has(s.ID) }), err
}

type greedy struct{ runtime.Runtime }

func (r greedy) EnsureSandbox(ctx context.Context, s runtime.SandboxSpec) (runtime.Container, error) {
	s.Ports = append(slices.Clone(s.Ports), runtime.Port{HostPort: 9, ContainerPort: 9, Protocol: "TCP"})
	return r.Runtime.EnsureSandbox(ctx, s)
}

// rude stops all containers of the pod with one of them.
type rude struct{ runtime.Runtime }

func (r rude) Stop(ctx context.Context, id string, grace time.Duration) error {
	err := r.Runtime.Stop(ctx, id, grace)
	list, _ := r.List(ctx)
	i := slices.IndexFunc(list, func(s runtime.Summary) bool { return s.ID == id })
	for _, s := range list {
		if i >= 0 && s.Key == list[i].Key && !s.IsSandbox() {
			_ = r.Runtime.Stop(ctx, s.ID, grace)
		}
	}
	return err
}

// believeErrors takes what a broken origin no longer says for removed.
func believeErrors(set pod.Set) pod.Set {
	return doctored(set, func(o pod.OriginStatus) bool { return o.Failed() || o.Stale })
}

// believeSilence takes what a silent source says for nothing.
func believeSilence(set pod.Set) pod.Set {
	silent := map[pod.SourceID]bool{}
	for _, s := range set.Sources {
		silent[s.ID] = !s.Present
	}
	set = doctored(set, func(o pod.OriginStatus) bool { return silent[o.Origin.Source] })
	for i := range set.Sources {
		set.Sources[i].Present, set.Sources[i].Spoken = true, true
	}
	return set
}

// doctored drops the pods of the origins that match, and their problems.
func doctored(set pod.Set, match func(pod.OriginStatus) bool) pod.Set {
	out := pod.Set{Claims: map[pod.Key][]*pod.Pod{}}
	dropped := map[pod.Origin]bool{}
	for _, s := range set.Sources {
		s.Origins = slices.Clone(s.Origins)
		for i, o := range s.Origins {
			if match(o) {
				dropped[o.Origin] = true
				s.Origins[i] = pod.OriginStatus{Origin: o.Origin}
			}
		}
		out.Sources = append(out.Sources, s)
	}
	for key, claims := range set.Claims {
		for _, p := range claims {
			if !dropped[p.Origin] {
				out.Claims[key] = append(out.Claims[key], p)
			}
		}
	}
	return out
}

type meddler struct{ runtime.Runtime }

func (r meddler) EnsureContainer(ctx context.Context, s runtime.ContainerSpec) (string, error) {
	s.Env = append(slices.Clone(s.Env), "MORE=1")
	return r.Runtime.EnsureContainer(ctx, s)
}

// grabber stops, with each of ours, everything that somebody made.
type grabber struct {
	runtime.Runtime
	w *world
}

func (r grabber) Stop(ctx context.Context, id string, grace time.Duration) error {
	for _, c := range r.w.engine.Containers() {
		if !ours(c) {
			_ = r.Runtime.Stop(ctx, c.ID, grace)
		}
	}
	return r.Runtime.Stop(ctx, id, grace)
}

type shredder struct{ session }

func (s shredder) WriteFile(name string, data []byte) error {
	if dir, base := path.Split(name); base == "state.json" {
		uid := types.UID(strings.TrimSuffix(strings.TrimPrefix(dir, "pods/"), "/"))
		_ = volumes(s).Remove(uid)
		_ = s.RemovePod(uid)
	}
	return s.session.WriteFile(name, data)
}

type idler struct{ runtime.Runtime }

func (idler) Start(ctx context.Context, _ string) error {
	select {
	case <-time.After(time.Minute):
	case <-ctx.Done():
	}
	return nil
}

// flatterer says that what has ended ran for an hour.
type flatterer struct{ runtime.Runtime }

func (r flatterer) Inspect(ctx context.Context, id string) (runtime.Container, error) {
	c, err := r.Runtime.Inspect(ctx, id)
	if c.State == runtime.Exited {
		c.Started = c.Finished.Add(-time.Hour)
	}
	return c, err
}

func fidget(ctx context.Context, _ *world, rt runtime.Runtime) {
	go func() {
		for ctx.Err() == nil {
			if list, err := rt.List(ctx); err == nil && len(list) > 0 {
				_ = rt.UpdateResources(ctx, list[0].ID, runtime.Resources{})
			}
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
		}
	}()
}

func clearOut(ctx context.Context, _ *world, rt runtime.Runtime) {
	list, _ := rt.List(ctx)
	for _, s := range list {
		_ = rt.Stop(ctx, s.ID, time.Second)
	}
}

// clearFolders removes the folders of all pods that have no container.
func clearFolders(_ context.Context, w *world, _ runtime.Runtime) {
	s := session{disk: w.disk, fence: w.agent.fence, onEffect: func(string) {}}
	for _, uid := range w.disk.pods() {
		if !slices.ContainsFunc(w.engine.Containers(), func(c fake.View) bool { return c.UID == uid }) {
			if err := (volumes{s}).Remove(uid); err == nil {
				_ = s.RemovePod(uid)
			}
		}
	}
}
