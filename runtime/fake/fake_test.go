package fake_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

const rootDir = "/var/lib/ours"

func identity(podName, container string) runtime.Identity {
	return runtime.Identity{
		Key: pod.Key{Namespace: "default", Name: podName}, UID: "u-" + "1", Source: pod.FileSource,
		Name: container, Grace: 30 * time.Second,
	}
}

// start makes a whole pod of one container, without faults.
func start(t *testing.T, c *fake.Client, podName string, command ...string) (sandbox, id string) {
	t.Helper()
	s, err := c.EnsureSandbox(t.Context(), runtime.SandboxSpec{Identity: identity(podName, runtime.SandboxName)})
	if err != nil {
		t.Fatal(err)
	}
	spec := runtime.ContainerSpec{Identity: identity(podName, "app"), Image: "app:1", Command: command}
	spec.Sandbox = s.Ref()
	id, err = c.EnsureContainer(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return s.ID, id
}

func newEngine(seed uint64) (*fake.Fate, *fake.Engine) {
	fate := fake.NewFate(seed)
	engine := fake.New(fake.Config{Fate: fate})
	engine.SetImage("app:1", fake.Image{Present: true})
	return fate, engine
}

// The order in which goroutines ask must not show.
func TestTraceFollowsFromTheSeed(t *testing.T) {
	trace := func(seed uint64, reverse bool) []string {
		var lines []string
		synctest.Test(t, func(t *testing.T) {
			fate, engine := newEngine(seed)
			fate.SetRates(fake.Rates{Slow: 0.1, Hung: 0.05, Fail: 0.1, LostReply: 0.1, LostEvent: 0.1, DupEvent: 0.1})
			client := engine.Client(rootDir)
			ctx, cancel := context.WithCancel(t.Context())
			changed := make(chan string)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for ctx.Err() == nil {
					_ = client.Watch(ctx, func() {}, changed)
				}
			}()
			joined := make(chan struct{})
			pods := []string{"a", "b", "c", "d", "e"}
			if reverse {
				slices.Reverse(pods)
			}
			for _, name := range pods {
				go func() {
					defer func() { joined <- struct{}{} }()
					for range 10 {
						_, _ = client.EnsureSandbox(ctx, runtime.SandboxSpec{Identity: identity(name, runtime.SandboxName)})
						if list, err := client.List(ctx); err == nil {
							for _, s := range list {
								if s.Key.Name == name {
									_ = client.Stop(ctx, s.ID, time.Second)
									_ = client.Remove(ctx, s.ID)
								}
							}
						}
					}
				}()
			}
			for n := 0; n < len(pods); {
				select {
				case <-joined:
					n++
				case <-changed:
				}
			}
			cancel()
			<-done
			lines = fate.Lines()
		})
		return lines
	}
	first := trace(1, false)
	if diff := cmp.Diff(first, trace(1, true)); diff != "" {
		t.Errorf("the same seed, goroutines started in another order (-first +second):\n%s", diff)
	}
	if slices.Equal(first, trace(2, false)) {
		t.Error("another seed has the same trace")
	}
	for _, want := range []string{"(fault)", "(reply lost)", "timeout", ": ok"} {
		if !strings.Contains(strings.Join(first, "\n"), want) {
			t.Errorf("200 calls, and none shows %q", want)
		}
	}
}

// Two effects that fall on the same instant are told apart by their keys.
func TestInstantsAreUnique(t *testing.T) {
	run := func(names []string) (order []string) {
		synctest.Test(t, func(t *testing.T) {
			fate := fake.NewFate(1)
			done := make(chan struct{})
			for _, name := range names {
				go func() {
					defer func() { done <- struct{}{} }()
					call := fake.Call{Verb: "call", Object: name, Min: time.Second, Max: time.Second}
					_ = fate.Do(t.Context(), call, func() error {
						order = append(order, fmt.Sprintf("%s %d", name, time.Now().Nanosecond()))
						return nil
					})
				}()
			}
			for range names {
				<-done
			}
		})
		return order
	}
	want := []string{"a 0", "b 1", "c 2", "d 3"}
	for _, names := range [][]string{{"a", "b", "c", "d"}, {"d", "c", "b", "a"}, {"c", "a", "d", "b"}} {
		if diff := cmp.Diff(want, run(names)); diff != "" {
			t.Errorf("asked in the order %v (-want +got):\n%s", names, diff)
		}
	}
}

func TestFenceEndsCallsWithoutEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, engine := newEngine(1)
		first, second := engine.Client(rootDir), engine.Client(rootDir)
		failed := make(chan error)
		go func() {
			_, err := first.EnsureSandbox(t.Context(), runtime.SandboxSpec{Identity: identity("web", runtime.SandboxName)})
			failed <- err
		}()
		synctest.Wait() // it is parked
		first.Fence()
		if err := <-failed; !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("the parked call: %v", err)
		}
		if _, err := first.List(t.Context()); err == nil {
			t.Error("a dead agent's call was answered")
		}
		if list, err := second.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("got %v, %v; want nothing made", list, err)
		}
	})
}

func TestEngineRestart(t *testing.T) {
	for name, liveRestore := range map[string]bool{"containers run on under live-restore": true, "containers end without": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, engine := newEngine(1)
				c := engine.Client(rootDir)
				_, id := start(t, c, "web")
				before, err := c.Inspect(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				stream := make(chan error)
				go func() { stream <- c.Watch(t.Context(), func() { stream <- nil }, make(chan string)) }()
				<-stream
				stopping := make(chan error)
				go func() { stopping <- c.Stop(t.Context(), id, time.Hour) }()
				synctest.Wait()
				engine.Down(liveRestore)
				for what, err := range map[string]error{"the stream": <-stream, "a call in flight": <-stopping, "a new call": c.Remove(t.Context(), id)} {
					if !errors.Is(err, runtime.ErrUnavailable) {
						t.Errorf("%s: %v, want ErrUnavailable", what, err)
					}
				}
				engine.Up()
				after, err := c.Inspect(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if (after.State == runtime.Running) != liveRestore || after.Start != before.Start {
					t.Errorf("before %+v, after %+v", before, after)
				}
			})
		})
	}
}

func TestSandboxRestartLeavesItsContainersBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, engine := newEngine(1)
		sandbox, id := start(t, engine.Client(rootDir), "web")
		networks := func() map[string]runtime.SandboxRef {
			found := map[string]runtime.SandboxRef{}
			for _, c := range engine.Containers() {
				found[c.ID] = c.Network
			}
			return found
		}
		before := networks()
		engine.Restart(sandbox)
		after := networks()
		if before[id] != before[sandbox] || after[id] != before[id] || after[sandbox] == before[sandbox] {
			t.Errorf("before %v, after %v; want the container in the network that its sandbox had before", before, after)
		}
	})
}

func TestPrograms(t *testing.T) {
	for name, test := range map[string]struct {
		command []string
		after   time.Duration
		stop    bool
		state   runtime.State
		code    int
		oom     bool
		atLeast time.Duration
		atMost  time.Duration
	}{
		"runs for ever":        {after: 1000 * time.Hour, state: runtime.Running},
		"exits after a while":  {command: []string{"exit=3", "after=10m"}, after: 11 * time.Minute, state: runtime.Exited, code: 3},
		"runs until then":      {command: []string{"exit=3", "after=10m"}, after: 9 * time.Minute, state: runtime.Running},
		"is killed for memory": {command: []string{"oom"}, after: time.Second, state: runtime.Exited, code: 137, oom: true},
		"ignores SIGTERM":      {command: []string{"ignore-term"}, stop: true, state: runtime.Exited, code: 137, atLeast: 30 * time.Second, atMost: 31 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, engine := newEngine(1)
				c := engine.Client(rootDir)
				_, id := start(t, c, "web", test.command...)
				time.Sleep(test.after)
				began := time.Now()
				if test.stop {
					if err := c.Stop(t.Context(), id, 30*time.Second); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took < test.atLeast || took > test.atMost {
						t.Errorf("stop took %s", took)
					}
				}
				got, err := c.Inspect(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if got.State != test.state || got.ExitCode != test.code || got.OOMKilled != test.oom {
					t.Errorf("got %s, exit code %d, OOM %t", got.State, got.ExitCode, got.OOMKilled)
				}
			})
		})
	}
}

// Law 6: the attempt is remembered even though it had no effect.
func TestTouchingAnothersContainerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, engine := newEngine(1)
		id, err := engine.Run("theirs", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = engine.Client(rootDir).Stop(t.Context(), id, 0)
		if v := engine.Violations(); len(v) != 1 || !strings.Contains(v[0], "theirs") {
			t.Errorf("got %q, want one that names it", v)
		}
		if c := engine.Containers()[0]; c.State != runtime.Running {
			t.Errorf("got %+v, want it running", c)
		}
	})
}

func TestPullMakesAnImagePresent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, engine := newEngine(1)
		engine.SetImage("there:1", fake.Image{Pullable: true})
		engine.SetImage("secret:1", fake.Image{Denied: true})
		c := engine.Client(rootDir)
		for ref, want := range map[string]error{"there:1": nil, "secret:1": runtime.ErrImageDenied, "nowhere:1": runtime.ErrImageNotFound} {
			err := c.Pull(t.Context(), ref, runtime.Auth{}, nil)
			if !errors.Is(err, want) {
				t.Errorf("pull %s: %v, want %v", ref, err, want)
			}
			if _, err := c.Image(t.Context(), ref); errors.Is(err, runtime.ErrImageNotFound) != (want != nil) {
				t.Errorf("look-up of %s: %v", ref, err)
			}
		}
	})
}
