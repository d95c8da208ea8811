package runtimetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
)

func containerRuns(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	spec := b.containerSpec(sandbox, "app", b.Forever)
	id, err := b.Runtime.EnsureContainer(b.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	c := b.inspect(t, id)
	if c.State != runtime.Created || c.Ended() || !c.Started.IsZero() || !c.Finished.IsZero() {
		t.Errorf("got %+v, want it created and no more", c)
	}
	if diff := cmp.Diff(spec.Identity, c.Identity); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	if c.Image != b.Image || c.ImageID == "" {
		t.Errorf("got image %q, id %q; want %q and its id", c.Image, c.ImageID, b.Image)
	}
	if err := b.Runtime.Start(b.ctx, id); err != nil {
		t.Fatal(err)
	}
	c = b.inspect(t, id)
	if c.State != runtime.Running || c.Started.IsZero() || c.Start == "" || c.Ended() {
		t.Errorf("got %+v, want it running", c)
	}
	if got := find(t, b.list(t, b.Runtime), spec.Identity); got.ID != id || got.State != runtime.Running || got.Identity != spec.Identity {
		t.Errorf("list says %+v, want %s running with the same identity", got, id)
	}
}

// Law 4: a create whose reply was lost is found again, never made twice.
func containerEnsuredTwice(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	first, second := b.create(t, sandbox, "app", b.Forever), b.create(t, sandbox, "app", b.Forever)
	if first != second {
		t.Errorf("first %s, then %s; want the same", first, second)
	}
	if err := b.Runtime.Start(b.ctx, first); err != nil {
		t.Fatal(err)
	}
	started := b.inspect(t, first).Start
	if third := b.create(t, sandbox, "app", b.Forever); third != first {
		t.Errorf("got %s, want %s, which runs", third, first)
	}
	if c := b.inspect(t, first); c.State != runtime.Running || c.Start != started {
		t.Errorf("got %s since %s, want it running since %s", c.State, c.Start, started)
	}
	if list := b.list(t, b.Runtime); len(list) != 2 {
		t.Errorf("got %d, want a sandbox and a container: %v", len(list), list)
	}
}

// Law 6: who holds the name keeps it, and law 4 holds for the other name too.
func nameHeld(t *testing.T, b bench) {
	spec := b.sandboxSpec()
	held := b.Somebody.Run(t, spec.ContainerName(), nil)
	first, second := b.sandbox(t), b.sandbox(t)
	if first.ID == held || first.ID != second.ID {
		t.Errorf("somebody's is %s, first %s, second %s; want one of our own, twice", held, first.ID, second.ID)
	}
	if diff := cmp.Diff(spec.Identity, first.Identity); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	c := b.containerSpec(first, "app", b.Forever)
	held = b.Somebody.Run(t, c.ContainerName(), nil)
	one, two := b.create(t, first, "app", b.Forever), b.create(t, first, "app", b.Forever)
	if one == held || one != two {
		t.Errorf("somebody's is %s, first %s, second %s; want one of our own, twice", held, one, two)
	}
	if running, _ := b.Somebody.Running(t, held); !running {
		t.Error("somebody's container no longer runs")
	}
}

func createWithoutImage(t *testing.T, b bench) {
	spec := b.containerSpec(b.sandbox(t), "app", b.Forever)
	spec.Image = b.Missing
	if _, err := b.Runtime.EnsureContainer(b.ctx, spec); !errors.Is(err, runtime.ErrImageNotFound) {
		t.Errorf("got %v, want ErrImageNotFound", err)
	}
	if list := b.list(t, b.Runtime); len(list) != 1 {
		t.Errorf("got %v, want the sandbox only", list)
	}
}

func createWithoutSandbox(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	b.Somebody.Remove(t, sandbox.ID)
	_, err := b.Runtime.EnsureContainer(b.ctx, b.containerSpec(sandbox, "app", b.Forever))
	if !errors.Is(err, runtime.ErrNotFound) || errors.Is(err, runtime.ErrImageNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if list := b.list(t, b.Runtime); len(list) != 0 {
		t.Errorf("got %v, want nothing", list)
	}
}

func startTwice(t *testing.T, b bench) {
	id := b.run(t, b.sandbox(t), "app", b.Forever)
	before := b.inspect(t, id)
	if err := b.Runtime.Start(b.ctx, id); err != nil {
		t.Errorf("start of one that runs: %v, want success (law 4)", err)
	}
	if after := b.inspect(t, id); after.Start != before.Start {
		t.Errorf("it was restarted: %s, then %s", before.Start, after.Start)
	}
}

func startGone(t *testing.T, b bench) {
	id := b.create(t, b.sandbox(t), "app", b.Forever)
	b.Somebody.Remove(t, id)
	if err := b.Runtime.Start(b.ctx, id); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func failedStart(t *testing.T, b bench) {
	id := b.create(t, b.sandbox(t), "app", b.FailStart)
	err := b.Runtime.Start(b.ctx, id)
	if err == nil {
		t.Fatal("what cannot be started was started")
	}
	for _, class := range []error{runtime.ErrNotFound, runtime.ErrImageNotFound, runtime.ErrUnavailable} {
		if errors.Is(err, class) {
			t.Errorf("got %v, which is of class %v", err, class)
		}
	}
	c := b.inspect(t, id)
	if c.State != runtime.Created || c.ExitCode == 0 || c.Error == "" || !c.FailedStart() || !c.Ended() {
		t.Errorf("got %+v, want it created, with an exit code and the engine's text: that was an attempt", c)
	}
	if err := b.Runtime.Remove(b.ctx, id); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func startInEndedSandbox(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	id := b.create(t, sandbox, "app", b.Forever)
	b.Somebody.Kill(t, sandbox.ID)
	if err := b.Runtime.Start(b.ctx, id); err == nil {
		t.Fatal("a container started in a network that is gone")
	}
	if c := b.inspect(t, id); c.State == runtime.Running {
		t.Errorf("got %+v, want it not running", c)
	}
}

func exitCodes(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	changed := b.watching(t)
	for name, code := range map[string]int{"well": 0, "badly": 7} {
		id := b.run(t, sandbox, name, b.Exit(code))
		c := b.ended(t, changed, id)
		if c.State != runtime.Exited || c.ExitCode != code || c.OOMKilled || c.FailedStart() {
			t.Errorf("got %+v, want it exited with %d", c, code)
		}
		if c.Finished.IsZero() || c.Finished.Before(c.Started) {
			t.Errorf("started %s, finished %s", c.Started, c.Finished)
		}
	}
}

func stopAsks(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	id := b.run(t, sandbox, "app", b.Forever)
	sleep(t, b.Settle)
	began := time.Now()
	for _, id := range []string{id, sandbox.ID} {
		if err := b.Runtime.Stop(b.ctx, id, time.Minute); err != nil {
			t.Fatal(err)
		}
		if c := b.inspect(t, id); c.State != runtime.Exited || c.ExitCode == 137 {
			t.Errorf("got %+v, want it exited, not killed, when Stop returns", c)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %s with processes that end when asked", took)
	}
}

func stopKills(t *testing.T, b bench) {
	id := b.run(t, b.sandbox(t), "app", b.IgnoreTERM)
	sleep(t, b.Settle)
	began := time.Now()
	if err := b.Runtime.Stop(b.ctx, id, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 1500*time.Millisecond {
		t.Errorf("took %s, want the grace period of 2 s", took)
	}
	if c := b.inspect(t, id); c.State != runtime.Exited || c.ExitCode != 137 {
		t.Errorf("got %+v, want it killed: exit code 137", c)
	}
}

// Law 4: already done is success.
func stopOver(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	ended, never, gone := b.run(t, sandbox, "ended", b.Forever), b.create(t, sandbox, "never", b.Forever), b.create(t, sandbox, "gone", b.Forever)
	b.Somebody.Kill(t, ended)
	b.Somebody.Remove(t, gone)
	for what, id := range map[string]string{"ended": ended, "never started": never, "gone": gone} {
		if err := b.Runtime.Stop(b.ctx, id, time.Minute); err != nil {
			t.Errorf("stop of one that is %s: %v", what, err)
		}
	}
	if c := b.inspect(t, never); c.State != runtime.Created || c.Ended() {
		t.Errorf("got %+v, want it created still", c)
	}
}

func removeTwice(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	id, never := b.run(t, sandbox, "app", b.Forever), b.create(t, sandbox, "never", b.Forever)
	if err := b.Runtime.Remove(b.ctx, id); err == nil {
		t.Error("one that runs was removed")
	}
	if c := b.inspect(t, id); c.State != runtime.Running {
		t.Errorf("got %+v, want it running still", c)
	}
	if err := b.Runtime.Stop(b.ctx, id, 0); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{id, never, id, never} {
		if err := b.Runtime.Remove(b.ctx, id); err != nil {
			t.Errorf("remove, the second time too (law 4): %v", err)
		}
	}
	if list := b.list(t, b.Runtime); len(list) != 1 {
		t.Errorf("got %v, want the sandbox only", list)
	}
}

func cgroupParent(t *testing.T, b bench) {
	spec := b.sandboxSpec()
	spec.CgroupParent = b.CgroupParent
	sandbox, err := b.Runtime.EnsureSandbox(b.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	c := b.containerSpec(sandbox, "app", b.Forever)
	c.CgroupParent = sandbox.CgroupParent
	id, err := b.Runtime.EnsureContainer(b.ctx, c)
	if err == nil {
		err = b.Runtime.Start(b.ctx, id)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := b.inspect(t, id).CgroupParent; sandbox.CgroupParent != b.CgroupParent || got != b.CgroupParent {
		t.Errorf("sandbox in %q, container in %q; want both in %q", sandbox.CgroupParent, got, b.CgroupParent)
	}
}

func resources(t *testing.T, b bench) {
	spec := b.containerSpec(b.sandbox(t), "app", b.Forever)
	spec.Resources = runtime.Resources{CPUShares: 512, CPUPeriod: 100_000, CPUQuota: 50_000, Memory: 64 << 20, Pids: 100}
	id, err := b.Runtime.EnsureContainer(b.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Runtime.Start(b.ctx, id); err != nil {
		t.Fatal(err)
	}
	before := b.inspect(t, id)
	if diff := cmp.Diff(spec.Resources, before.Resources); diff != "" {
		t.Errorf("at create (-want +got):\n%s", diff)
	}
	want := runtime.Resources{CPUShares: 256, CPUPeriod: 100_000, CPUQuota: 20_000, Memory: 128 << 20, Pids: 200}
	none := runtime.Resources{CPUShares: 2, CPUPeriod: 100_000}
	pinned, other := none, want
	pinned.CPUSet, other.CPUSet = "0", "0"
	for _, want := range []runtime.Resources{want, want, none, want, pinned, other} {
		if err := b.Runtime.UpdateResources(b.ctx, id, want); err != nil {
			t.Fatal(err)
		}
		after := b.inspect(t, id)
		if diff := cmp.Diff(want, after.Resources); diff != "" {
			t.Errorf("updated (-want +got):\n%s", diff)
		}
		if after.Start != before.Start {
			t.Error("the update restarted it")
		}
	}
	if err := b.Runtime.UpdateResources(b.ctx, id, none); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pinned, b.inspect(t, id).Resources); diff != "" {
		t.Errorf("updated without CPUs (-want +got):\n%s", diff)
	}
	b.Somebody.Remove(t, id)
	if err := b.Runtime.UpdateResources(b.ctx, id, want); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("update of one that is gone: %v, want ErrNotFound", err)
	}
}

func images(t *testing.T, b bench) {
	if info, err := b.Runtime.Image(b.ctx, b.Image); err != nil || info.ID == "" {
		t.Errorf("%s is %+v, %v", b.Image, info, err)
	}
	if _, err := b.Runtime.Image(b.ctx, b.Missing); !errors.Is(err, runtime.ErrImageNotFound) {
		t.Errorf("look-up of what the engine lacks: %v, want ErrImageNotFound", err)
	}
	if err := b.Runtime.Pull(b.ctx, b.Missing, runtime.Auth{}, nil); err == nil {
		t.Errorf("%s was pulled", b.Missing)
	}
}

func contextOver(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	over, cancel := context.WithCancel(b.ctx)
	cancel()
	for verb, err := range map[string]error{
		"inspect": second(b.Runtime.Inspect(over, sandbox.ID)),
		"list":    second(b.Runtime.List(over)),
		"create":  second(b.Runtime.EnsureContainer(over, b.containerSpec(sandbox, "app", b.Forever))),
		"stop":    b.Runtime.Stop(over, sandbox.ID, 0),
	} {
		if err == nil || errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("%s with a context that is over: %v", verb, err)
		}
	}
	if c := b.inspect(t, sandbox.ID); c.State != runtime.Running {
		t.Errorf("got %+v, want it running still", c)
	}
}

func second[T any](_ T, err error) error { return err }

// sleep waits for a process that has no way to tell that it is ready.
func sleep(t *testing.T, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
