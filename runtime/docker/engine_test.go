package docker_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
	"github.com/podkeeper/podkeeper/runtime/runtimetest"
)

const busybox = "busybox:stable"

// The tests below need a Docker Engine at DOCKER_HOST or the default socket,
// with busybox:stable in it.

func TestContract(t *testing.T) { runtimetest.Run(t, contract(docker.Config{})) }

// Commands keep it too where it is not the engine that runs them.
func TestContractOfNsenter(t *testing.T) {
	runtimetest.RunCommands(t, contract(docker.Config{ExecHandler: docker.NsenterExec}))
}

func contract(cfg docker.Config) func(*testing.T) runtimetest.Env {
	turn := make(chan struct{}, 1) // names are the same in all tests, and the engine is one
	return func(t *testing.T) runtimetest.Env {
		turn <- struct{}{}
		t.Cleanup(func() { <-turn })
		parent := cgroupParent(t) // goes after what was in it
		ours, rootDir := newRuntime(t, cfg)
		theirs, _ := newRuntime(t, docker.Config{})
		return runtimetest.Env{
			Runtime:      ours,
			RootDir:      rootDir,
			Other:        theirs,
			Image:        busybox,
			Missing:      "127.0.0.1:1/nobody/has-this:1",
			Forever:      []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"},
			IgnoreTERM:   []string{"sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"},
			Settle:       500 * time.Millisecond,
			Exit:         func(code int) []string { return []string{"sh", "-c", "exit " + string(rune('0'+code))} },
			FailStart:    []string{"/no/such/program"},
			Hang:         []string{"sh", "-c", "sleep 1000; true"},
			Cat:          []string{"cat"},
			Sizes:        []string{"sh", "-c", "while :; do now=$(stty size); [ \"$now\" = \"$was\" ] || echo $now; was=$now; sleep 0.05; done"},
			Say:          func(lines ...string) []string { return append([]string{"printf", "%s\\n"}, lines...) },
			CgroupParent: parent,
			Somebody:     somebody{raw(t)},
		}
	}
}

// cgroupParent returns a cgroup that this machine's engine can be told, which goes
// with the test.
func cgroupParent(t *testing.T) string {
	t.Helper()
	info, err := raw(t).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.CgroupDriver == "systemd" {
		return "podkeepertest.slice" // which systemd drops when it is empty
	}
	t.Cleanup(func() {
		for _, pattern := range []string{"/sys/fs/cgroup/podkeepertest", "/sys/fs/cgroup/*/podkeepertest"} {
			left, _ := filepath.Glob(pattern)
			for _, dir := range left {
				if err := os.Remove(dir); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return "/podkeepertest"
}

// newRuntime returns a Runtime with a root dir of its own, whose containers go
// with the test.
func newRuntime(t testing.TB, cfg docker.Config) (*docker.Runtime, string) {
	t.Helper()
	cfg.RootDir = t.TempDir()
	r, err := docker.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cli := raw(t)
	t.Cleanup(func() {
		r.Close()
		ctx := context.WithoutCancel(t.Context())
		left, err := cli.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", runtime.LabelOwner+"="+cfg.RootDir))})
		if err != nil {
			t.Errorf("list what the test left: %v", err)
		}
		for _, c := range left {
			discard(t, cli, c.ID)
		}
	})
	return r, cfg.RootDir
}

// raw returns a client beside the one under test.
func raw(t testing.TB) *client.Client {
	t.Helper()
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cli.Close() })
	if _, err := cli.ImageInspect(t.Context(), busybox); err != nil {
		t.Fatalf("these tests need a Docker Engine with %s: %v", busybox, err)
	}
	return cli
}

func discard(t testing.TB, cli *client.Client, id string) {
	err := cli.ContainerRemove(context.WithoutCancel(t.Context()), id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
		t.Errorf("remove %s: %v", id, err)
	}
}

// somebody uses the same engine beside the agent.
type somebody struct{ *client.Client }

func (s somebody) Run(t *testing.T, name string, labels map[string]string) string {
	t.Helper()
	created, err := s.ContainerCreate(t.Context(), &container.Config{
		Image: busybox, Labels: labels, Cmd: []string{"sleep", "1000"},
	}, &container.HostConfig{}, nil, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { discard(t, s.Client, created.ID) })
	if err := s.ContainerStart(t.Context(), created.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	return created.ID
}

func (s somebody) Kill(t *testing.T, id string) {
	t.Helper()
	ended, failed := s.ContainerWait(t.Context(), id, container.WaitConditionNextExit)
	if err := s.ContainerKill(t.Context(), id, "KILL"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case err := <-failed:
		t.Fatal(err)
	}
}

func (s somebody) Restart(t *testing.T, id string) {
	t.Helper()
	now := 0
	if err := s.ContainerRestart(t.Context(), id, container.StopOptions{Timeout: &now}); err != nil {
		t.Fatal(err)
	}
}

func (s somebody) Remove(t *testing.T, id string) {
	t.Helper()
	if err := s.ContainerRemove(t.Context(), id, container.RemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
		t.Fatal(err)
	}
}

func (s somebody) MakeImage(t *testing.T, names ...string) {
	t.Helper()
	base, err := s.ContainerCreate(t.Context(), &container.Config{Image: busybox}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer discard(t, s.Client, base.ID)
	made, err := s.ContainerCommit(t.Context(), base.ID, container.CommitOptions{Reference: names[0], Changes: []string{"LABEL made.for=" + names[0]}})
	for _, name := range names {
		if err == nil {
			err = s.ImageTag(t.Context(), made.ID, name)
		}
		t.Cleanup(func() {
			_, err := s.ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{})
			if err != nil && !errdefs.IsNotFound(err) {
				t.Errorf("remove image %s: %v", name, err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s somebody) Running(t *testing.T, id string) (running, there bool) {
	t.Helper()
	in, err := s.ContainerInspect(t.Context(), id)
	if errdefs.IsNotFound(err) {
		return false, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return in.State.Running, true
}
