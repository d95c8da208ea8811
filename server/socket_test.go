package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

var quiet = slog.New(slog.DiscardHandler)

// board is a state that changes, and those who wait for it to.
type board struct {
	mu      sync.Mutex
	state   server.State
	changed chan struct{} // closed at the next change
	parked  chan uint64   // gets what a call waits after
}

func newBoard() *board {
	return &board{state: server.State{Revision: 1, NodeName: "n", Pods: []server.Pod{}}, changed: make(chan struct{}), parked: make(chan uint64, 10)}
}

func (b *board) set(s server.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = s
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *board) get(ctx context.Context, after uint64) (server.State, error) {
	for {
		b.mu.Lock()
		state, changed := b.state, b.changed
		b.mu.Unlock()
		if state.Revision > after {
			return state, nil
		}
		b.parked <- after
		select {
		case <-changed:
		case <-ctx.Done():
			return server.State{}, ctx.Err()
		}
	}
}

// serve serves b on a socket until the test ends or stop is called, which
// returns what Serve returned.
func serve(t *testing.T, b *board) (path string, stop func() error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := server.Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	// A test may have put another socket in its place.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, server.Handler(server.Answers{State: b.get}), quiet) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	return path, stop
}

func TestStateIsAnsweredAtOnce(t *testing.T) {
	b := newBoard()
	path, _ := serve(t, b)
	got, err := server.NewClient(path).State(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.state, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestStateWaitsForAChange(t *testing.T) {
	b := newBoard()
	path, _ := serve(t, b)
	type answer struct {
		state server.State
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		s, err := server.NewClient(path).State(t.Context(), 1)
		answers <- answer{s, err}
	}()
	if after := <-b.parked; after != 1 {
		t.Fatalf("asked for what comes after %d, want 1", after)
	}
	select {
	case a := <-answers:
		t.Fatalf("answered before a change: %+v", a)
	default:
	}
	b.set(server.State{Revision: 2, NodeName: "m"})
	a := <-answers
	if a.err != nil || a.state.Revision != 2 || a.state.NodeName != "m" {
		t.Errorf("got %+v, want the state of revision 2", a)
	}
}

func TestAClientThatGoesAwayIsNotWaitedFor(t *testing.T) {
	b := newBoard()
	path, stop := serve(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := server.NewClient(path).State(ctx, 1)
		ended <- err
	}()
	<-b.parked
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("client: %v, want that its context ended", err)
	}
	if err := stop(); err != nil {
		t.Errorf("Serve = %v after its context ended, want nil", err)
	}
}

// Law 10: Serve ends with its context, although a client waits.
func TestServeEndsWhileAClientWaits(t *testing.T) {
	b := newBoard()
	path, stop := serve(t, b)
	ended := make(chan error, 1)
	go func() {
		_, err := server.NewClient(path).State(context.WithoutCancel(t.Context()), 1)
		ended <- err
	}()
	<-b.parked
	if err := stop(); err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	if err := <-ended; err == nil {
		t.Error("the client got a state from an agent that stopped")
	}
	if _, err := server.NewClient(path).State(t.Context(), 0); !errors.Is(err, server.ErrNoAgent) {
		t.Errorf("after the end: %v, want ErrNoAgent", err)
	}
}

func TestNoAgentAnswers(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "left")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	for name, path := range map[string]string{
		"there is no socket":                      filepath.Join(dir, "none"),
		"an agent that crashed left its socket":   left,
		"the folder of the socket does not exist": filepath.Join(dir, "none", "s"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := server.NewClient(path).State(t.Context(), 0)
			if !errors.Is(err, server.ErrNoAgent) {
				t.Fatalf("State = %v, want ErrNoAgent", err)
			}
			// People read it: it names the socket, and no address of HTTP.
			if want := "no agent answers on " + path; err.Error() != want {
				t.Errorf("error is %q, want %q", err, want)
			}
		})
	}
}

func TestListen(t *testing.T) {
	t.Run("only the owner can open the socket", func(t *testing.T) {
		defer syscall.Umask(syscall.Umask(0))
		path, _ := serve(t, newBoard())
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := info.Mode(), os.ModeSocket|0o600; got != want {
			t.Errorf("mode is %v, want %v", got, want)
		}
	})
	t.Run("a socket that an agent answers on is left alone", func(t *testing.T) {
		path, _ := serve(t, newBoard())
		l, err := server.Listen(path, 0)
		if err == nil {
			l.Close()
			t.Fatal("took the socket of an agent that runs")
		}
		if !strings.Contains(err.Error(), path) {
			t.Errorf("error %q does not name %s", err, path)
		}
		if _, err := server.NewClient(path).State(t.Context(), 0); err != nil {
			t.Errorf("the first agent answers no more: %v", err)
		}
	})
	t.Run("a socket that a crash left is replaced", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		old.SetUnlinkOnClose(false)
		old.Close()
		l, err := server.Listen(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
	t.Run("what is not a socket is left alone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "precious")
		if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := server.Listen(path, 0); err == nil {
			l.Close()
			t.Error("took the place of a file")
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "data" {
			t.Errorf("the file holds %q, %v", data, err)
		}
	})
	t.Run("a folder that is missing is an error that names the socket", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "none", "s")
		l, err := server.Listen(path, 0)
		if err == nil {
			l.Close()
			t.Fatal("listens in a folder that does not exist")
		}
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
			t.Errorf("error is %q, want that %s is missing", err, path)
		}
	})
}

// overSocket is a client of HTTP for the socket at path.
func overSocket(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

func TestRequestsThatAreRefused(t *testing.T) {
	path, _ := serve(t, newBoard())
	client := overSocket(path)
	for name, test := range map[string]struct {
		method, path string
		want         int
	}{
		"a revision that is no number":       {"GET", "/v1/state?after=x", http.StatusBadRequest},
		"a negative revision":                {"GET", "/v1/state?after=-1", http.StatusBadRequest},
		"no revision means the state as is":  {"GET", "/v1/state", http.StatusOK},
		"another resource":                   {"GET", "/v1/pods", http.StatusNotFound},
		"a negative revision of events":      {"GET", "/events?after=-1", http.StatusBadRequest},
		"events change nothing":              {"POST", "/events", http.StatusMethodNotAllowed},
		"the socket changes nothing: POST":   {"POST", "/v1/state", http.StatusMethodNotAllowed},
		"the socket changes nothing: DELETE": {"DELETE", "/v1/state", http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), test.method, "http://agent"+test.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != test.want {
				t.Errorf("status %d, want %d", resp.StatusCode, test.want)
			}
		})
	}
}

// A client that waits must not be handed on to the next agent by its transport:
// what it waits for would be a revision of the one before.
func TestAClientThatWaitsLearnsOfTheEnd(t *testing.T) {
	b := newBoard()
	path, stop := serve(t, b)
	client := server.NewClient(path)
	if _, err := client.State(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := client.State(t.Context(), 1)
		ended <- err
	}()
	<-b.parked
	// The next agent is there before the last one's connections are gone.
	next := newBoard()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l, server.Handler(server.Answers{State: next.get}), quiet) }()
	defer func() {
		cancel()
		<-served
	}()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("got a state, want that the agent went away")
		}
	case after := <-next.parked:
		t.Errorf("waits at the next agent for what comes after %d", after)
	}
}

// Law 10: a call that is under way is waited for.
func TestServeWaitsForItsCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := server.Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	entered, leave := make(chan struct{}), make(chan struct{})
	var left atomic.Bool
	slow := func(ctx context.Context, _ uint64) (server.State, error) {
		close(entered)
		<-leave
		left.Store(true)
		return server.State{}, ctx.Err()
	}
	go func() {
		if _, err := server.NewClient(path).State(context.Background(), 0); err == nil {
			t.Error("the client was answered by an agent that stops")
		}
		close(leave) // not before its connection was broken
	}()
	go func() {
		<-entered
		cancel()
	}()
	if err := server.Serve(ctx, l, server.Handler(server.Answers{State: slow}), quiet); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if !left.Load() {
		t.Error("Serve returned while a call was under way")
	}
}

// A pod is restarted by its key; what keeps it from that comes back in words.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := server.Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(ctx, l, server.Handler(server.Answers{Restart: func(_ context.Context, key pod.Key, container string) error {
			switch key.Name + container {
			case "a b":
				return nil
			case "held":
				return errors.New("it is held")
			default:
				return fmt.Errorf("%w: nothing supplies pod %s", server.ErrNoPod, key)
			}
		}}), quiet)
	}()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	c := server.NewClient(path)
	if err := c.Restart(t.Context(), pod.Key{Namespace: "n", Name: "a b"}, ""); err != nil {
		t.Error(err)
	}
	if err := c.Restart(t.Context(), pod.Key{Namespace: "n", Name: "he"}, "ld"); err == nil || err.Error() != "it is held" {
		t.Errorf("got %v", err)
	}
	if err := c.Restart(t.Context(), pod.Key{Namespace: "n", Name: "x"}, ""); !errors.Is(err, server.ErrNoPod) || err.Error() != "no such pod: nothing supplies pod n/x" {
		t.Errorf("got %v", err)
	}
}
