package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/client"
	"github.com/fsnotify/fsnotify"

	"github.com/podkeeper/podkeeper/server"
)

// bench is a root dir of its own, with the folders that the rows share.
type bench struct {
	opts   options
	dir    string // everything below it is the benchmark's
	home   string // and what is below that there, the agent's
	socket string // of the engine
	engine engine
	gone   chan destruction
	stamps *fsnotify.Watcher
	cancel context.CancelFunc
}

func newBench(ctx context.Context, opts options) (*bench, error) {
	host := os.Getenv("DOCKER_HOST")
	if host == "" {
		host = client.DefaultDockerHost
	}
	socket, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return nil, fmt.Errorf("DOCKER_HOST %s: the benchmark needs a unix socket", host)
	}
	dir, err := os.MkdirTemp("", "podkeeper-bench-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &bench{opts: opts, dir: dir, socket: socket, engine: newEngine(socket), gone: make(chan destruction, 1024), cancel: cancel}
	for _, sub := range []string{"bin", "out"} {
		if err := os.Mkdir(b.path(sub), 0o755); err != nil {
			return nil, err
		}
	}
	if b, err = b.beside("agent"); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", b.path("bin/stamp"), "./agent/bench/stamp")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build stamp: %w\n%s", err, text)
	}
	if b.stamps, err = fsnotify.NewWatcher(); err == nil {
		err = b.stamps.Add(b.path("out"))
	}
	if err != nil {
		return nil, err
	}
	return b, b.engine.destroyed(ctx, b.gone)
}

func (b *bench) path(elem ...string) string {
	return filepath.Join(append([]string{b.dir}, elem...)...)
}

// own returns what is not shared with an agent beside.
func (b *bench) own(elem ...string) string {
	return b.path(append([]string{b.home}, elem...)...)
}

// beside returns the benchmark with a home of its own for the agent.
func (b *bench) beside(home string) (*bench, error) {
	other := *b
	other.home = home
	return &other, os.MkdirAll(other.own("manifests"), 0o755)
}

// clear removes the pods.
func (b *bench) clear() { b.command(context.Background(), "delete", "--all").Run() }

// close removes everything that the benchmark made.
func (b *bench) close() {
	b.clear()
	b.cancel()
	b.stamps.Close()
	os.RemoveAll(b.dir)
}

// agent is a running agent.
type agent struct {
	b   *bench
	cmd *exec.Cmd
}

func (b *bench) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, b.opts.binary, append(args, "--root-dir", b.own("root"))...)
}

// startAgent starts the binary; host is the engine's address, "" the real one. Logs of
// removed pods do not stay: what is gone is measured.
func (b *bench) startAgent(ctx context.Context, host string, flags ...string) (*agent, error) {
	if host == "" {
		host = "unix://" + b.socket
	}
	cmd := b.command(ctx, append([]string{"run", "--manifests", b.own("manifests"), "--hostname-override", "node", "--docker-host", host, "--minimum-container-ttl-duration", "0"}, flags...)...)
	log, err := os.Create(b.own("agent.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return &agent{b, cmd}, cmd.Start()
}

// await waits until the agent's state satisfies cond.
func (b *bench) await(ctx context.Context, what string, cond func(server.State) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	c := server.NewClient(b.own("root/podkeeper.sock"))
	var after uint64
	for {
		s, err := c.State(ctx, after)
		switch {
		case errors.Is(err, server.ErrNoAgent) && ctx.Err() == nil:
			time.Sleep(5 * time.Millisecond) // it is starting
			continue
		case err != nil:
			log, _ := os.ReadFile(b.own("agent.log"))
			return fmt.Errorf("waiting until %s: %w\n%s", what, err, log[max(0, len(log)-2000):])
		case cond(s):
			return nil
		}
		after = s.Revision
	}
}

func ready(s server.State) bool { return s.Ready && s.Online }

// settled: that many pods are there, all as they should be.
func settled(n int) func(server.State) bool {
	return func(s server.State) bool {
		if !ready(s) || len(s.Pods) != n {
			return false
		}
		for _, p := range s.Pods {
			if !p.Settled() || p.Removing {
				return false
			}
		}
		return true
	}
}

func (a *agent) stop() error {
	a.cmd.Process.Signal(syscall.SIGTERM)
	return a.cmd.Wait()
}

// manifest is a pod of n containers that stamp their start. env is an extra
// variable of the last one.
func (b *bench) manifest(pod string, n int, env string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  terminationGracePeriodSeconds: 10\n  containers:\n", pod)
	for i := range n {
		fmt.Fprintf(&text, "  - name: c%d\n    image: busybox:stable\n    command: [/b/stamp, /out, %s-c%d]\n", i, pod, i)
		if i == n-1 && env != "" {
			fmt.Fprintf(&text, "    env: [{name: X, value: %q}]\n", env)
		}
		text.WriteString("    volumeMounts: [{name: b, mountPath: /b}, {name: out, mountPath: /out}]\n")
	}
	fmt.Fprintf(&text, "  volumes:\n  - {name: b, hostPath: {path: %s}}\n  - {name: out, hostPath: {path: %s}}\n", b.path("bin"), b.path("out"))
	return text.String()
}

// stamped returns the names of the stamps that such a pod writes.
func stamped(pod string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-c%d", pod, i))
	}
	return names
}

// put writes a manifest beside its place; the returned function renames it there.
func (b *bench) put(pod, text string) (func() (time.Time, error), error) {
	temp := b.own("manifests", "."+pod)
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return func() (time.Time, error) {
		now := time.Now()
		return now, os.Rename(temp, b.own("manifests", pod+".yaml"))
	}, nil
}

func (b *bench) unput(pod string) (time.Time, error) {
	now := time.Now()
	return now, os.Remove(b.own("manifests", pod+".yaml"))
}

// awaitStamps waits until all of the stamps are newer than since, and returns
// the last of them.
func (b *bench) awaitStamps(ctx context.Context, since time.Time, names ...string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	last := since
	for _, name := range names {
		for {
			at, ok := b.stamp(name)
			if ok && at.After(since) {
				if at.After(last) {
					last = at
				}
				break
			}
			select {
			case <-b.stamps.Events:
			case err := <-b.stamps.Errors:
				return last, err
			case <-ctx.Done():
				log, _ := os.ReadFile(b.own("agent.log"))
				return last, fmt.Errorf("no stamp %s: %w\n%s", name, ctx.Err(), log[max(0, len(log)-2000):])
			}
		}
	}
	return last, nil
}

func (b *bench) stamp(name string) (time.Time, bool) {
	data, err := os.ReadFile(b.path("out", name))
	if err != nil {
		return time.Time{}, false
	}
	ns, err := strconv.ParseInt(string(data), 10, 64)
	return time.Unix(0, ns), err == nil
}

// awaitGone waits until a container of that name was destroyed.
func (b *bench) awaitGone(ctx context.Context, prefix string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		select {
		case d := <-b.gone:
			if strings.HasPrefix(d.name, prefix) {
				return d.at, nil
			}
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%s is not gone: %w", prefix, ctx.Err())
		}
	}
}

func (b *bench) drainGone() {
	for {
		select {
		case <-b.gone:
		default:
			return
		}
	}
}

// record runs f with an agent whose creates are recorded.
func (b *bench) record(ctx context.Context, f func() error) (*recorder, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	socket := b.path("recorder.sock")
	os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	rec := &recorder{root: b.own("root")}
	done := make(chan struct{})
	go func() { defer close(done); rec.serve(ctx, l, b.engine) }()
	a, err := b.startAgent(ctx, "unix://"+socket)
	if err != nil {
		return nil, err
	}
	if err = b.await(ctx, "the agent is up", ready); err == nil {
		err = f()
	}
	if stopErr := a.stop(); err == nil {
		err = stopErr
	}
	cancel()
	<-done
	return rec, err
}
