package agent_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/docker/docker/client"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// engine is a Docker Engine of a test's own, in a network of its own.
type engine struct {
	t         *testing.T
	dir       string // holds all that is its
	netns     string
	flags     []string
	client    *client.Client
	host      string
	daemon    *exec.Cmd
	container *exec.Cmd // the containerd below it, which lives on while it restarts
}

func newEngine(t *testing.T, flags ...string) *engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "podkeeper-engine-")
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{t: t, dir: dir, netns: filepath.Base(dir), flags: flags, host: "unix://" + dir + "/docker.sock"}
	t.Cleanup(e.clean)
	e.run("ip", "netns", "add", e.netns)
	e.run("ip", "-n", e.netns, "link", "set", "lo", "up")
	writeFile(t, dir+"/containerd.toml", "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n")
	writeFile(t, dir+"/daemon.json", "{}") // not the machine's
	e.container = e.spawn("containerd", "--config", dir+"/containerd.toml", "--root", dir+"/containerd", "--state", dir+"/containerd-state", "--address", dir+"/containerd.sock")
	poll(t, "containerd listens", func() bool { return exists(dir + "/containerd.sock") })
	if e.client, err = client.NewClientWithOpts(client.WithHost(e.host), client.WithAPIVersionNegotiation()); err != nil {
		t.Fatal(err)
	}
	e.start()
	e.load("busybox:stable")
	return e
}

func (e *engine) run(name string, args ...string) {
	e.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		e.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// spawn starts a program in the engine's network, with a log in its folder.
func (e *engine) spawn(name string, args ...string) *exec.Cmd {
	e.t.Helper()
	log, err := os.OpenFile(filepath.Join(e.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		e.t.Fatal(err)
	}
	defer log.Close()
	// Not ip netns exec: that hides the cgroups below another /sys.
	cmd := exec.Command("nsenter", append([]string{"--net=/run/netns/" + e.netns, "--", name}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := startBound(e.t, cmd); err != nil {
		e.t.Fatal(err)
	}
	return cmd
}

func (e *engine) start() {
	e.t.Helper()
	e.daemon = e.spawn("dockerd", append([]string{
		"--data-root", e.dir + "/data", "--exec-root", e.dir + "/exec", "--pidfile", e.dir + "/pid", "--host", e.host,
		"--containerd", e.dir + "/containerd.sock", "--config-file", e.dir + "/daemon.json",
	}, e.flags...)...)
	poll(e.t, "the private engine answers", func() bool {
		_, err := e.client.Ping(context.Background())
		return err == nil
	})
}

// stop ends the engine as a service manager does.
func (e *engine) stop() {
	e.t.Helper()
	_ = e.daemon.Process.Signal(syscall.SIGTERM)
	if err := e.daemon.Wait(); err != nil {
		e.t.Errorf("dockerd: %v", err)
	}
}

// load copies an image from the machine's engine.
func (e *engine) load(image string) {
	e.t.Helper()
	machine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		e.t.Fatal(err)
	}
	defer machine.Close()
	saved, err := machine.ImageSave(context.Background(), []string{image})
	if err != nil {
		e.t.Fatal(err)
	}
	defer saved.Close()
	loaded, err := e.client.ImageLoad(context.Background(), saved)
	if err == nil {
		err = streamError(loaded.Body)
	}
	if err != nil {
		e.t.Fatalf("load %s: %v", image, err)
	}
}

// clean ends every process of the engine and takes away all that it made.
func (e *engine) clean() {
	if e.client != nil {
		e.client.Close()
	}
	for _, cmd := range []*exec.Cmd{e.daemon, e.container} {
		if cmd != nil && cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
	}
	for _, pid := range e.left() {
		e.t.Errorf("process %d is left", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if e.t.Failed() {
		if log, err := os.ReadFile(e.dir + "/dockerd.log"); err == nil {
			e.t.Logf("dockerd said:\n%s", log[max(0, len(log)-4000):])
		}
	}
	e.unmount()
	if out, err := exec.Command("ip", "netns", "del", e.netns).CombinedOutput(); err != nil {
		e.t.Errorf("remove network namespace: %v\n%s", err, out)
	}
	if err := os.RemoveAll(e.dir); err != nil {
		e.t.Error(err)
	}
}

// left returns the processes that were told of the engine's folder.
func (e *engine) left() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(line), e.dir+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// unmount takes away what an engine leaves mounted, deepest first.
func (e *engine) unmount() {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	var points []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], e.dir+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Sort(points)
	for _, point := range slices.Backward(points) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil {
			e.t.Errorf("unmount %s: %v", point, err)
		}
	}
}

// onEngine returns a world on that engine, with three pods: one that runs on,
// and two that end.
func (e *engine) onEngine() *world {
	e.t.Helper()
	w := newWorldOn(e.t, e.client)
	w.cfg.Docker.Host = e.host
	runs := w.path("runs")
	mkdir(e.t, runs)
	volumes := "  volumes: [{name: s, hostPath: {path: " + runs + "}}]\n"
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	w.write("always.yaml", manifest("{name: always}", sleeping("a"), sleeping("b")))
	w.write("done.yaml", manifest("{name: done}", shell("app", "echo run >> /s/done", mount))+"  restartPolicy: OnFailure\n"+volumes)
	w.write("failed.yaml", manifest("{name: failed}", shell("app", "echo run >> /s/failed; exit 1", mount))+"  restartPolicy: Never\n"+volumes)
	w.start()
	w.await("one runs, two ended", running("always"), phase("done", v1.PodSucceeded), phase("failed", v1.PodFailed))
	return w
}

// endedOnce checks that the pods that ended did not run again.
func (w *world) endedOnce() {
	w.t.Helper()
	w.await("they ended", phase("done", v1.PodSucceeded), phase("failed", v1.PodFailed))
	for _, name := range []string{"done", "failed"} {
		if data, err := os.ReadFile(w.path("runs/" + name)); string(data) != "run\n" {
			w.t.Errorf("%s ran again: %q (%v)", name, data, err)
		}
	}
}

// C057: a restart of the engine starts anew what is to run always, and nothing
// that ended.
func TestEngineRestart(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	w := e.onEngine()
	before := w.ids()
	e.stop()
	w.await("the agent knows", func(s server.State) bool { return !s.Online })
	e.start()
	// One that was restarted into the sandbox just before that ended has two.
	w.await("all is up again", running("always"), func(s server.State) bool {
		return status(s, "always", "a").RestartCount >= 1 && status(s, "always", "b").RestartCount >= 1
	})
	after := w.ids()
	for name := range before {
		if after[name] == before[name] {
			t.Errorf("%s is the same container", name)
		}
	}
	if len(after) != 3 {
		t.Errorf("%v run, want one sandbox and two containers", after)
	}
	w.endedOnce()
}

// With live-restore a restart of the engine touches nothing.
func TestEngineRestartWithLiveRestore(t *testing.T) {
	t.Parallel()
	e := newEngine(t, "--live-restore")
	w := e.onEngine()
	before := w.ids()
	e.stop()
	w.await("the agent knows", func(s server.State) bool { return !s.Online })
	e.start()
	w.await("the agent is back", func(s server.State) bool { return s.Online }, runs("always", "a", 0), runs("always", "b", 0))
	// What it would do to what it takes for dead, it would do by the time that
	// another pod runs.
	w.write("marker.yaml", manifest("{name: marker}", sleeping("app")))
	w.await("another pod runs", running("marker"), running("always"))
	w.same(before, "always-node/POD/0", "always-node/a/0", "always-node/b/0")
	w.endedOnce()
}
