package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Listen makes the socket, which only its owner can open. A socket that another
// agent left behind is replaced; one that an agent answers on is an error.
func Listen(path string) (net.Listener, error) {
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("socket %s: another agent answers on it; give this one its own --root-dir or --socket", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("socket %s: something else is there; give --socket another path", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	// The mode that the descriptor has before it is bound makes the socket private
	// from its first instant. A umask would be that of the whole process.
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) }); err != nil {
			return err
		}
		return failed
	}}
	l, err := private.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return l, nil
}

// Serve answers on l until ctx ends, and returns when no call is under way any
// more. state returns the state as soon as its
// revision is higher than after, and at once for 0.
func Serve(ctx context.Context, l net.Listener, state func(ctx context.Context, after uint64) (State, error)) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/state", func(w http.ResponseWriter, r *http.Request) {
		after, err := strconv.ParseUint(r.FormValue("after"), 10, 64)
		if err != nil && r.FormValue("after") != "" {
			http.Error(w, "after: want a revision", http.StatusBadRequest)
			return
		}
		s, err := state(r.Context(), after)
		if err != nil {
			http.Error(w, "the agent is stopping", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// An error is a client that went away.
		_ = json.NewEncoder(w).Encode(s)
	})
	var calls sync.WaitGroup
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		defer calls.Done()
		mux.ServeHTTP(w, r)
	})
	// Closing breaks the connections, so that no client can hold a call.
	defer calls.Wait()
	srv := &http.Server{
		Handler: counted, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- srv.Close() })
	err := srv.Serve(l)
	if stop() {
		return err
	}
	return <-stopped
}

// ErrNoAgent says that nobody answers on the socket.
var ErrNoAgent = errors.New("no agent answers")

// Client asks the agent behind a socket.
type Client struct{ http *http.Client }

// NewClient returns a client for the socket at path. It connects when asked.
func NewClient(path string) *Client {
	return &Client{http: &http.Client{Transport: &http.Transport{
		// A request on a connection that was used before would be sent again when
		// the agent goes away, and might meet the next one, whose revisions are others.
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "unix", path)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
				return nil, fmt.Errorf("%w on %s", ErrNoAgent, path)
			}
			return conn, err
		},
	}}}
}

// State returns the agent's state as soon as its revision is higher than after;
// with 0, at once. ErrNoAgent where nobody answers.
func (c *Client) State(ctx context.Context, after uint64) (State, error) {
	var s State
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/v1/state?after="+strconv.FormatUint(after, 10), nil)
	if err != nil {
		return s, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var request *url.Error
		if errors.As(err, &request) {
			err = request.Err // without the address, which means nothing to people
		}
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("agent: %s", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("agent's answer: %w", err)
	}
	return s, nil
}
