package agent_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/node/podlog"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server"
)

// world is a root dir of its own on the machine's engine, and the agent on it.
type world struct {
	t      *testing.T
	cfg    agent.Config
	dir    string // of manifests
	engine *client.Client
	log    *slog.Logger

	cancel context.CancelFunc
	ended  chan error
}

// newWorld returns a world with an empty folder of manifests. What it leaves on
// the engine is removed at the end.
func newWorld(t *testing.T) *world {
	t.Helper()
	engine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	root := t.TempDir()
	w := &world{t: t, dir: filepath.Join(root, "manifests"), engine: engine}
	w.cfg = agent.Config{
		RootDir: filepath.Join(root, "root"), Socket: filepath.Join(root, "s"), NodeName: "node",
		Manifests: []string{w.dir},
		Logs:      podlog.Config{PodsDir: filepath.Join(root, "logs/pods"), ContainersDir: filepath.Join(root, "logs/containers")},
	}
	w.log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.stop()
		if err := agent.DeleteAll(context.Background(), w.cfg, slog.New(slog.NewTextHandler(io.Discard, nil))); err != nil {
			t.Error(err)
		}
		if left := w.containers(); len(left) > 0 {
			t.Errorf("%d containers are left", len(left))
		}
	})
	return w
}

func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.ended = cancel, make(chan error, 1)
	go func() { w.ended <- agent.Run(ctx, w.cfg, w.log) }()
}

func (w *world) stop() {
	w.t.Helper()
	if w.cancel == nil {
		return
	}
	w.cancel()
	if err := <-w.ended; err != nil && !errors.Is(err, context.Canceled) {
		w.t.Error(err)
	}
	w.cancel = nil
}

// write puts a manifest in place by rename, as careful editors do.
func (w *world) write(name, text string) {
	w.t.Helper()
	temp := filepath.Join(w.dir, "."+name)
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(temp, filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

const patience = 60 * time.Second

// await waits until the agent's state satisfies cond, and returns it.
func (w *world) await(what string, cond func(server.State) bool) server.State {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := server.NewClient(w.cfg.Socket)
	var s server.State
	for {
		next, err := c.State(ctx, s.Revision)
		switch {
		case errors.Is(err, server.ErrNoAgent) && ctx.Err() == nil:
			continue // it is starting
		case err != nil:
			w.t.Fatalf("waiting until %s: %v; last state: %s", what, err, summary(s))
		}
		if s = next; cond(s) {
			return s
		}
	}
}

func summary(s server.State) string {
	text := ""
	for _, p := range s.Pods {
		text += p.Pod.Namespace + "/" + p.Pod.Name + " " + string(p.Pod.Status.Phase) + " " + p.Pod.Status.Message + "; "
		for _, c := range p.Pod.Status.ContainerStatuses {
			if c.State.Waiting != nil {
				text += c.Name + ": " + c.State.Waiting.Reason + " " + c.State.Waiting.Message + "; "
			}
		}
	}
	return text
}

func find(s server.State, name string) *server.Pod {
	i := slices.IndexFunc(s.Pods, func(p server.Pod) bool { return p.Pod.Name == name+"-node" })
	if i < 0 {
		return nil
	}
	return &s.Pods[i]
}

// running: the pod has all of its containers running and nothing left to do.
func running(name string) func(server.State) bool {
	return func(s server.State) bool {
		p := find(s, name)
		if p == nil || !p.Settled() || len(p.Pod.Status.ContainerStatuses) == 0 {
			return false
		}
		for _, c := range p.Pod.Status.ContainerStatuses {
			if c.State.Running == nil || c.State.Running.StartedAt.IsZero() {
				return false
			}
		}
		return true
	}
}

func gone(name string) func(server.State) bool {
	return func(s server.State) bool { return s.Ready && find(s, name) == nil }
}

// containers returns what the engine has of this world, by name in the pod.
func (w *world) containers() map[string]container.Summary {
	w.t.Helper()
	list, err := w.engine.ContainerList(context.Background(), container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", runtime.LabelOwner+"="+w.cfg.RootDir)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	found := make(map[string]container.Summary)
	for _, c := range list {
		found[c.Labels["io.kubernetes.pod.name"]+"/"+c.Labels["io.kubernetes.container.name"]+"/"+c.Labels["io.podkeeper.attempt"]] = c
	}
	return found
}

const twoContainers = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - {name: a, image: "busybox:stable", command: [sleep, "3600"]}
  - {name: b, image: "busybox:stable", command: [sleep, "3601"]}
`

func TestManifestBecomesRunningPodAndGoesAgain(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.write("web.yaml", twoContainers)
	w.await("web runs", running("web"))
	got := w.containers()
	for _, name := range []string{"web-node/POD/0", "web-node/a/0", "web-node/b/0"} {
		if got[name].State != "running" {
			t.Errorf("%s is %q, want running", name, got[name].State)
		}
	}
	w.remove("web.yaml")
	w.await("web is gone", gone("web"))
	if left := w.containers(); len(left) != 0 {
		t.Errorf("%d containers are left", len(left))
	}
	if entries, _ := os.ReadDir(filepath.Join(w.cfg.RootDir, "pods")); len(entries) != 0 {
		t.Errorf("folders are left: %v", entries)
	}
}
