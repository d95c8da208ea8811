package pause_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/podkeeper/podkeeper/runtime/pause"
)

// The engine must know the image by its name after a load, run it without
// anything else from a registry, and stop it within an instant, not the ten
// seconds that it gives a process which does not listen.
func TestEngineLoadsRunsAndStopsIt(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	engine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	version, err := engine.ServerVersion(ctx)
	if err != nil {
		t.Fatalf("this test needs a Docker Engine (scripts/engine.sh starts one): %v", err)
	}

	ref, archive, err := pause.Image(version.Arch)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second load finds everything there
		reply, err := engine.ImageLoad(ctx, bytes.NewReader(archive))
		if err != nil {
			t.Fatalf("load image: %v", err)
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil {
			t.Fatalf("load image: %v: %s", err, text)
		}
	}
	image, err := engine.ImageInspect(ctx, ref)
	if err != nil {
		t.Fatalf("the engine does not know the image by its name: %v", err)
	}
	got := fmt.Sprint(image.Os, image.Architecture, image.Config.User, image.Config.Entrypoint, image.Config.Healthcheck)
	want := fmt.Sprint("linux", version.Arch, "65535:65535", []string{"/pause"}, (*container.HealthConfig)(nil))
	if got != want {
		t.Errorf("the engine loaded %s, want %s", got, want)
	}

	created, err := engine.ContainerCreate(ctx, &container.Config{Image: ref},
		&container.HostConfig{NetworkMode: "none", ReadonlyRootfs: true}, nil, nil,
		fmt.Sprintf("podkeeper-pause-test-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err != nil {
		t.Fatalf("create container: %v", err)
	}
	t.Cleanup(func() {
		if err := engine.ContainerRemove(context.WithoutCancel(ctx), created.ID, container.RemoveOptions{Force: true}); err != nil {
			t.Errorf("remove container: %v", err)
		}
	})
	for range 2 {
		if err := engine.ContainerStart(ctx, created.ID, container.StartOptions{}); err != nil {
			t.Fatalf("start container: %v", err)
		}
		state := inspect(ctx, t, engine, created.ID)
		if !state.Running {
			t.Fatalf("after its start the container is %s with code %d", state.Status, state.ExitCode)
		}
		// Before it stands there the kernel may drop a signal to it.
		p := &process{pid: state.Pid}
		p.await(t, "sleep", p.sleeps)
		began := time.Now()
		if err := engine.ContainerStop(ctx, created.ID, container.StopOptions{}); err != nil {
			t.Fatalf("stop container: %v", err)
		}
		took := time.Since(began)
		t.Logf("stopped in %v", took.Round(time.Millisecond))
		if state := inspect(ctx, t, engine, created.ID); state.ExitCode != 0 || took > 5*time.Second {
			t.Errorf("it was stopped in %v with code %d, want code 0 at once", took, state.ExitCode)
		}
	}
}

func inspect(ctx context.Context, t *testing.T, engine *client.Client, id string) *container.State {
	t.Helper()
	reply, err := engine.ContainerInspect(ctx, id)
	if err != nil {
		t.Fatalf("inspect container: %v", err)
	}
	return reply.State
}
