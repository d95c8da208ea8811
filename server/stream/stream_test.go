package stream_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server/stream"
	"github.com/podkeeper/podkeeper/server/stream/streamtest"
)

// server serves streams of one in-process container over TLS.
type server struct {
	*httptest.Server
	ended chan error // what each call of a command said when it returned
	cfg   stream.Config
	dial  stream.Dial
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{ended: make(chan error, 100), dial: func(context.Context, uint16) (net.Conn, error) { return nil, errors.New("no dialer") }}
	mux := http.NewServeMux()
	answer := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := serve(w, r); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		})
	}
	answer("/exec", func(w http.ResponseWriter, r *http.Request) error {
		return stream.Exec(w, r, s.cfg, func(ctx context.Context, command []string, streams runtime.Streams) (int, error) {
			code, err := program(ctx, command, streams)
			s.ended <- err
			return code, err
		})
	})
	answer("/attach", func(w http.ResponseWriter, r *http.Request) error {
		return stream.Attach(w, r, s.cfg, func(ctx context.Context, streams runtime.Streams) error {
			_, err := program(ctx, []string{"cat"}, streams)
			return err
		})
	})
	answer("/portForward", func(w http.ResponseWriter, r *http.Request) error { return stream.PortForward(w, r, s.cfg, s.dial) })
	answer("/run", func(w http.ResponseWriter, r *http.Request) error {
		return stream.Run(w, r, func(_ context.Context, command []string, _ int) (runtime.ExecResult, error) {
			return runtime.ExecResult{ExitCode: len(command) - 1, Output: []byte(strings.Join(command, "|") + "\n")}, nil
		})
	})
	s.Server = httptest.NewTLSServer(mux)
	t.Cleanup(func() {
		s.Close()
		nothingLeft(t)
	})
	return s
}

// nothingLeft waits until no goroutine of a stream is left, on either side.
func nothingLeft(t *testing.T) {
	t.Helper()
	var left string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		left = ""
		all := make([]byte, 1<<20)
		for _, one := range strings.Split(string(all[:goruntime.Stack(all, true)]), "\n\n") {
			if strings.Contains(one, "spdystream") || strings.Contains(one, "httpstream") || strings.Contains(one, "server/stream.") || strings.Contains(one, "cri-streaming") {
				left += one + "\n\n"
			}
		}
		if left == "" {
			return
		}
		goruntime.Gosched()
	}
	t.Errorf("goroutines are left:\n%s", left)
}

// program is what runs in the container.
func program(ctx context.Context, command []string, s runtime.Streams) (int, error) {
	if s.Stdin != nil {
		defer s.Stdin.Close()
		// As a runtime does: closing it is what ends the copy.
		defer context.AfterFunc(ctx, func() { s.Stdin.Close() })()
	}
	switch command[0] {
	case "cat":
		if _, err := io.Copy(s.Stdout, s.Stdin); err != nil {
			return 0, errors.Join(err, ctx.Err())
		}
		return 0, nil
	case "exit":
		return strconv.Atoi(command[1])
	case "fail":
		return 0, errors.New("the container went away")
	case "both":
		_, err := io.WriteString(s.Stdout, "out\n")
		_, failed := io.WriteString(s.Stderr, "err\n")
		return 0, errors.Join(err, failed)
	case "zeros":
		n, _ := strconv.Atoi(command[1])
		for b := make([]byte, 32<<10); n > 0; n -= len(b) {
			if _, err := s.Stdout.Write(b[:min(len(b), n)]); err != nil {
				return 0, err
			}
		}
		return 5, nil
	case "sizes":
		for range 2 {
			size := <-s.Resize
			if _, err := fmt.Fprintf(s.Stdout, "%dx%d ", size.Width, size.Height); err != nil {
				return 0, err
			}
		}
		return 0, nil
	default: // hang
		<-ctx.Done()
		return 0, ctx.Err()
	}
}

// client is how one is configured that speaks to it.
func (s *server) client() *rest.Config {
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

func (s *server) executors(t *testing.T, path string, query url.Values) map[string]remotecommand.Executor {
	t.Helper()
	return streamtest.Executors(t, s.client(), path, query)
}

func ask(command ...string) url.Values { return url.Values{"command": command, "output": {"1"}} }

func with(query url.Values, names ...string) url.Values {
	for _, name := range names {
		query.Set(name, "1")
	}
	return query
}

func TestExec(t *testing.T) {
	s := newServer(t)
	much := make([]byte, 8<<20)
	if _, err := rand.Read(much); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		query          url.Values
		stdin          []byte
		stdout, stderr string
		code           int
		err            string
	}{
		"input and its end":     {query: with(ask("cat"), "input"), stdin: []byte("hello"), stdout: "hello"},
		"no input":              {query: with(ask("cat"), "input"), stdin: []byte{}, stdout: ""},
		"much both ways":        {query: with(ask("cat"), "input"), stdin: much, stdout: string(much)},
		"both outputs":          {query: with(ask("both"), "error"), stdout: "out\n", stderr: "err\n"},
		"an exit code":          {query: ask("exit", "3"), code: 3},
		"input nobody reads":    {query: with(ask("exit", "4"), "input"), stdin: much, code: 4},
		"much output, and code": {query: ask("zeros", "3000000"), stdout: strings.Repeat("\x00", 3000000), code: 5},
		"it cannot":             {query: ask("fail"), err: "the container went away"},
	} {
		for how, executor := range s.executors(t, "/exec", test.query) {
			var stdout, stderr bytes.Buffer
			opts := remotecommand.StreamOptions{Stdout: &stdout}
			if test.query.Has("error") {
				opts.Stderr = &stderr
			}
			if test.stdin != nil {
				opts.Stdin = bytes.NewReader(test.stdin)
			}
			err := executor.StreamWithContext(t.Context(), opts)
			var exit exec.ExitError
			switch {
			case test.code != 0 && (!errors.As(err, &exit) || exit.ExitStatus() != test.code):
				t.Errorf("%s by %s: %v, want exit code %d", name, how, err, test.code)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("%s by %s: %v, want %q", name, how, err, test.err)
			case test.code == 0 && test.err == "" && err != nil:
				t.Errorf("%s by %s: %v", name, how, err)
			}
			if stdout.String() != test.stdout || stderr.String() != test.stderr {
				t.Errorf("%s by %s: %d bytes on stdout and %q on stderr, want %d and %q", name, how, stdout.Len(), stderr.String(), len(test.stdout), test.stderr)
			}
			<-s.ended
		}
	}
}

func TestAttach(t *testing.T) {
	s := newServer(t)
	for how, executor := range s.executors(t, "/attach", url.Values{"input": {"1"}, "output": {"1"}}) {
		var out bytes.Buffer
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out})
		if err != nil || out.String() != "hello" {
			t.Errorf("%s: %q, %v", how, out.String(), err)
		}
	}
}

// sizes tells them one after the other, and then no more.
type sizes struct {
	mu   sync.Mutex
	list []remotecommand.TerminalSize
}

func (s *sizes) Next() *remotecommand.TerminalSize {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		return nil
	}
	next := s.list[0]
	s.list = s.list[1:]
	return &next
}

func TestTerminal(t *testing.T) {
	s := newServer(t)
	for how, executor := range s.executors(t, "/exec", with(ask("sizes"), "tty", "input")) {
		var out bytes.Buffer
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{
			Stdin: strings.NewReader(""), Stdout: &out, Tty: true, TerminalSizeQueue: &sizes{list: []remotecommand.TerminalSize{{Width: 100, Height: 40}, {Width: 80, Height: 25}}},
		})
		if err != nil || out.String() != "100x40 80x25 " {
			t.Errorf("%s: %q, %v", how, out.String(), err)
		}
	}
}

// A client that goes away ends what was done for it, and leaves nothing.
func TestClientVanishes(t *testing.T) {
	s := newServer(t)
	for name, test := range map[string]struct {
		query url.Values
		drops int
	}{
		"it listened":                {ask("hang"), 0},
		"it typed":                   {with(ask("hang"), "input"), 0},
		"it read much":               {ask("zeros", strconv.Itoa(1<<40)), 0},
		"it had sent much, not read": {with(ask("hang"), "input"), 200},
	} {
		for how := range s.executors(t, "/exec", test.query) {
			cut := s.between(t)
			executor := s.executors(t, "/exec", test.query)[how]
			began := make(chan struct{})
			done := make(chan error, 1)
			go func() {
				done <- executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: &drops{left: test.drops}, Stdout: writer(func(b []byte) { closeOnce(began) })})
			}()
			if name == "it read much" {
				<-began
			}
			s.await(t)
			cut()
			if err := <-s.ended; err == nil {
				t.Errorf("%s by %s: the command was not told", name, how)
			}
			<-done
		}
	}
}

// between has the next clients go through a wire that can be cut.
func (s *server) between(t *testing.T) (cut func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	direct := s.Listener.Addr().String()
	url := s.URL
	s.URL = "https://" + l.Addr().String()
	var mu sync.Mutex
	var ends []net.Conn
	var copying sync.WaitGroup
	copying.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", direct)
			if err != nil {
				t.Error(err)
				client.Close()
				return
			}
			mu.Lock()
			ends = append(ends, client, to)
			mu.Unlock()
			copying.Go(func() { _, _ = io.Copy(to, client) })
			copying.Go(func() { _, _ = io.Copy(client, to) })
		}
	})
	return func() {
		s.URL = url
		l.Close()
		mu.Lock()
		for _, end := range ends {
			end.Close()
		}
		mu.Unlock()
		copying.Wait()
	}
}

// await waits until a stream is being served.
func (s *server) await(t *testing.T) {
	t.Helper()
	all := make([]byte, 1<<20)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		if strings.Contains(string(all[:goruntime.Stack(all, true)]), "stream_test.program(") {
			return
		}
	}
	t.Fatal("no command runs")
}

// drops are more messages than SPDY keeps of what nobody reads, and less than what the
// kernel does, which would not tell of an end that comes after that.
type drops struct{ left int }

func (d *drops) Read(b []byte) (int, error) {
	if d.left--; d.left < 0 {
		select {}
	}
	return copy(b, "x"), nil
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// Also one of whom nothing is read is seen to have gone.
func TestHungUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if _, err := io.WriteString(client, "nobody reads this"); err != nil {
		t.Fatal(err)
	}
	if stream.HungUp(here) {
		t.Error("it is there, and has hung up")
	}
	client.Close()
	for deadline := time.Now().Add(10 * time.Second); !stream.HungUp(here); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it has gone, and has not hung up")
		}
	}
}

func streamOptions() remotecommand.StreamOptions {
	return remotecommand.StreamOptions{Stdout: io.Discard}
}
