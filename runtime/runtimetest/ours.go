package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/podkeeper/podkeeper/runtime"
)

func inspectNotOurs(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	b.Somebody.Remove(t, sandbox.ID)
	plain := b.Somebody.Run(t, "somebody-"+sandbox.ID[:12], nil)
	for what, id := range map[string]string{"gone": sandbox.ID, "not ours": plain} {
		if _, err := b.Runtime.Inspect(b.ctx, id); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("one that is %s: %v, want ErrNotFound", what, err)
		}
	}
}

// Law 6: ours is what bears our label and the name that follows from it.
func foreign(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	id := b.run(t, sandbox, "app", b.Forever)
	labels := b.containerSpec(sandbox, "app", nil).Labels(b.RootDir)
	changed := b.watching(t)
	suffix := sandbox.ID[:12]
	others := map[string]string{
		"without labels":              b.Somebody.Run(t, "plain-"+suffix, nil),
		"from a commit of ours":       b.Somebody.Run(t, "committed-"+suffix, labels),
		"with our label only":         b.Somebody.Run(t, "k8s_app_"+suffix, map[string]string{runtime.LabelOwner: b.RootDir}),
		"whose name begins like ours": b.Somebody.Run(t, b.containerSpec(sandbox, "app", nil).ContainerName()+"x", labels),
	}
	for what, other := range others {
		for _, s := range b.list(t, b.Runtime) {
			if s.ID == other {
				t.Errorf("one %s is listed", what)
			}
		}
		if _, err := b.Runtime.Inspect(b.ctx, other); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("inspect of one %s: %v, want ErrNotFound", what, err)
		}
		// What these return does not matter, what they do does.
		_ = b.Runtime.UpdateResources(b.ctx, other, runtime.Resources{Memory: 64 << 20})
		_ = b.Runtime.Stop(b.ctx, other, 0)
		_ = b.Runtime.Remove(b.ctx, other)
		if running, _ := b.Somebody.Running(t, other); !running {
			t.Errorf("one %s was touched", what)
		}
		b.Somebody.Kill(t, other)
		_ = b.Runtime.Start(b.ctx, other)
		_ = b.Runtime.Remove(b.ctx, other)
		if running, there := b.Somebody.Running(t, other); running || !there {
			t.Errorf("one %s: running %t, there %t; want it as it was left", what, running, there)
		}
	}
	b.Somebody.Kill(t, id)
	await(t, changed, id, others["without labels"], others["from a commit of ours"], others["with our label only"], others["whose name begins like ours"])
}

// Law 6: several agents share an engine.
func rootDirs(t *testing.T, b bench) {
	ours := b.sandbox(t)
	spec := b.sandboxSpec()
	theirs, err := b.Other.EnsureSandbox(b.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if theirs.ID == ours.ID {
		t.Fatal("another agent took over our sandbox")
	}
	for who, c := range map[string]struct {
		runtime runtime.Runtime
		id      string
	}{"we": {b.Runtime, ours.ID}, "they": {b.Other, theirs.ID}} {
		if list := b.list(t, c.runtime); len(list) != 1 || list[0].ID != c.id {
			t.Errorf("%s see %v, want %s only", who, list, c.id)
		}
	}
	if err := errors.Join(b.Other.Stop(b.ctx, theirs.ID, 0), b.Other.Remove(b.ctx, theirs.ID)); err != nil {
		t.Fatal(err)
	}
	if running, _ := b.Somebody.Running(t, ours.ID); !running {
		t.Error("our sandbox no longer runs")
	}
}

func watch(t *testing.T, b bench) {
	changed := b.watching(t)
	sandbox := b.sandbox(t)
	await(t, changed, sandbox.ID)
	var id string
	for i, step := range []struct {
		name string
		act  func()
	}{
		{"create", func() { id = b.create(t, sandbox, "app", b.Forever) }},
		{"start", func() {
			if err := b.Runtime.Start(b.ctx, id); err != nil {
				t.Fatal(err)
			}
		}},
		{"death", func() { b.Somebody.Kill(t, id) }},
		{"somebody's restart", func() { b.Somebody.Restart(t, id) }},
		{"removal", func() { b.Somebody.Remove(t, id) }},
	} {
		// Events come in order: once that of a new container is here, those of the
		// step before are all behind us.
		await(t, changed, b.create(t, sandbox, fmt.Sprintf("mark%d", i), b.Forever))
		t.Log(step.name)
		step.act()
		await(t, changed, id)
	}
	if _, err := b.Runtime.Inspect(b.ctx, id); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("inspect of one that is gone: %v, want ErrNotFound", err)
	}
}

func watchEnds(t *testing.T, b bench) {
	ctx, cancel := context.WithCancel(b.ctx)
	up, ended := make(chan struct{}), make(chan error)
	go func() { ended <- b.Runtime.Watch(ctx, func() { close(up) }, make(chan string)) }()
	<-up
	b.sandbox(t) // nobody takes its events
	cancel()
	if err := <-ended; err == nil {
		t.Error("the stream ended without a reason")
	}
}
