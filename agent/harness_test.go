package agent_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/client"
	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/podlog"
	"github.com/podkeeper/podkeeper/server"
)

// world is a root dir of its own on the machine's engine, and the agent on it.
type world struct {
	t      *testing.T
	cfg    agent.Config
	tmp    string // holds all that the test writes
	dir    string // of manifests
	engine *client.Client
	log    *slog.Logger
	said   *transcript // what the agent logged
	images []string    // that the test made

	cancel context.CancelFunc
	ended  chan error
}

// newWorld returns a world with an empty folder of manifests, for a test that
// runs beside others. What it leaves on the engine is removed at the end.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldAlone(t)
}

// newWorldAlone is for a test that runs before all others.
func newWorldAlone(t *testing.T) *world {
	t.Helper()
	engine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return newWorldOn(t, engine)
}

func newWorldOn(t *testing.T, engine *client.Client) *world {
	t.Helper()
	// The path of a socket has to be short, which t.TempDir is not.
	tmp, err := os.MkdirTemp("", "podkeeper-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(tmp); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, tmp: tmp, dir: filepath.Join(tmp, "manifests"), engine: engine, said: new(transcript)}
	w.cfg = agent.Config{
		RootDir: filepath.Join(tmp, "root"), Socket: filepath.Join(tmp, "s"), NodeName: "node", NodeIPs: []string{"192.0.2.1"},
		Manifests: []string{w.dir},
		Logs:      podlog.Config{PodsDir: filepath.Join(tmp, "logs/pods"), ContainersDir: filepath.Join(tmp, "logs/containers")},
		GC:        gc.Config{Images: &gc.ImagePolicy{Off: true}}, // the engine is not the test's alone
	}
	w.log = slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), w.said), nil))
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.stop()
		if err := agent.DeleteAll(context.Background(), w.cfg, slog.New(slog.DiscardHandler)); err != nil {
			t.Error(err)
		}
		if left := w.containers(); len(left) > 0 {
			t.Errorf("%d containers are left", len(left))
		}
		for _, name := range w.images { // now that nothing uses them
			w.removeImage(name)
		}
	})
	return w
}

// transcript holds what was logged.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines returns the lines that have all of the words.
func (l *transcript) lines(words ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			found = append(found, line)
		}
	}
	return found
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

// restart is a stop and a start: the agent forgets all that is in memory.
func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

// write puts a manifest in place by rename, as careful editors do.
func (w *world) write(name, text string) {
	w.t.Helper()
	writeFile(w.t, filepath.Join(w.dir, name), text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	rename(t, temp, path)
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

// path is one that a manifest can name.
func (w *world) path(name string) string { return filepath.Join(w.tmp, name) }

// patience is how long the engine may take for what a test waits for.
var patience = flag.Duration("patience", 90*time.Second, "how long a test waits; a slow machine needs more")

// await waits until the agent's state satisfies all of cond, and returns it.
func (w *world) await(what string, cond ...condition) server.State {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), *patience)
	defer cancel()
	c := server.NewClient(w.cfg.Socket)
	var s server.State
	for {
		next, err := c.State(ctx, s.Revision)
		switch {
		case errors.Is(err, server.ErrNoAgent) && ctx.Err() == nil:
			pause() // it is starting
			continue
		case err != nil:
			w.t.Fatalf("waiting until %s: %v; last state: %s", what, err, summary(s))
		}
		if s = next; all(cond...)(s) {
			return s
		}
	}
}

// poll waits for what no event tells of: what processes in containers do.
func (w *world) poll(what string, done func() bool) {
	w.t.Helper()
	poll(w.t, what, done)
}

func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(*patience); !done(); pause() {
		if time.Now().After(deadline) {
			t.Fatalf("waiting until %s: it did not come", what)
		}
	}
}

func pause() { <-time.After(20 * time.Millisecond) }

func summary(s server.State) string {
	text := ""
	for _, p := range s.Pods {
		text += p.Pod.Namespace + "/" + p.Pod.Name + " " + string(p.Pod.Status.Phase) + " " + p.Pod.Status.Message + " " + p.Kept + "; "
		for _, c := range p.Pod.Status.ContainerStatuses {
			text += c.Name + " " + strconv.Itoa(int(c.RestartCount))
			if c.State.Waiting != nil {
				text += ": " + c.State.Waiting.Reason + " " + c.State.Waiting.Message
			}
			text += "; "
		}
		for _, step := range p.Steps {
			text += "to do: " + step.Text + "; "
		}
	}
	for _, src := range s.Sources {
		text += src.ID.String() + " " + src.Problem + "; "
		for _, o := range src.Origins {
			for _, p := range o.Problems {
				text += p.String() + "; "
			}
		}
	}
	return text
}

// freePort returns a port of the host that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// answer returns what a listener on the port says, "" where nobody does.
func answer(port string) string { return answerAt("127.0.0.1:" + port) }

func answerAt(address string) string {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	text, _ := io.ReadAll(conn)
	return strings.TrimSpace(string(text))
}

// sleeper is a command that runs until it is told to end.
const sleeper = `["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]`

// manifest returns that of a pod with a short grace period.
func manifest(metadata string, containers ...string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: " + metadata +
		"\nspec:\n  terminationGracePeriodSeconds: 2\n  containers:\n  - " + strings.Join(containers, "\n  - ") + "\n"
}

// sleeping returns a container of busybox that sleeps; more are fields of it.
func sleeping(name string, more ...string) string {
	return "{" + strings.Join(append([]string{"name: " + name, `image: "busybox:stable"`, "command: " + sleeper}, more...), ", ") + "}"
}

// of returns a container of an image that knows what to run.
func of(name, image string, more ...string) string {
	return "{" + strings.Join(append([]string{"name: " + name, `image: "` + image + `"`}, more...), ", ") + "}"
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
