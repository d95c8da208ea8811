package docker_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/podkeeper/podkeeper/runtime/docker"
)

// A command of an agent that was killed runs on in the engine: the next agent ends it
// before it starts one of its own there, and touches nobody else's.
func TestExecLeftBehind(t *testing.T) {
	t.Parallel()
	p := newPods(t, docker.Config{})
	id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sleep", "1000"))
	theirs, err := p.raw.ContainerExecCreate(t.Context(), id, container.ExecOptions{Cmd: []string{"sleep", "2000"}})
	if err == nil {
		err = p.raw.ContainerExecStart(t.Context(), theirs.ID, container.ExecStartOptions{Detach: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	// What an agent leaves behind that dies: it is not there to kill what it started.
	left, err := p.raw.ContainerExecCreate(t.Context(), id, container.ExecOptions{DetachKeys: docker.ExecMark, Cmd: []string{"sleep", "3000"}})
	if err == nil {
		err = p.raw.ContainerExecStart(t.Context(), left.ID, container.ExecStartOptions{Detach: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	pollUntil(t, func() bool { return slices.Equal(processes(t, id), []string{"sleep 1000", "sleep 2000", "sleep 3000"}) })
	// That an agent marks its own is seen by one that hangs.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.Exec(ctx, id, []string{"sleep", "4000"}, 10)
		ended <- err
	}()
	pollUntil(t, func() bool { return slices.Equal(processes(t, id), []string{"sleep 1000", "sleep 2000", "sleep 4000"}) })
	next, err := docker.New(docker.Config{RootDir: p.RootDir()}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if result, err := next.Exec(t.Context(), id, []string{"echo", "hi"}, 10); err != nil || string(result.Output) != "hi\n" {
		t.Errorf("the next agent's command: %q, %v", result.Output, err)
	}
	if got := processes(t, id); !slices.Equal(got, []string{"sleep 1000", "sleep 2000"}) {
		t.Errorf("there run %q, want the container's own and somebody's", got)
	}
	cancel()
	<-ended
}
