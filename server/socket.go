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
	"syscall"
	"time"

	"github.com/podkeeper/podkeeper/pod"
)

// Listen makes the socket, which only its owner can open, and a group unless that is
// 0. A socket that another agent left behind is replaced; one that an agent answers on
// is an error.
func Listen(path string, group int) (net.Listener, error) {
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
	if group != 0 {
		// The mode comes last: until then the group may not open it.
		if err := errors.Join(os.Chown(path, -1, group), os.Chmod(path, 0o660)); err != nil {
			return nil, errors.Join(fmt.Errorf("socket %s: %w", path, err), l.Close())
		}
	}
	return l, nil
}

// Answers are what clients of the socket can ask for. Each returns what is newer
// than a revision as soon as there is something, and at once for 0.
type Answers struct {
	State  func(ctx context.Context, after uint64) (State, error)
	Events func(ctx context.Context, after uint64) (Events, error)
	// Restart has a pod, or with a name one container of it, ended and started anew.
	// Stop has a pod ended and held until Start is called. The error of each wraps
	// ErrNoPod, or is why it cannot be.
	Restart     func(ctx context.Context, key pod.Key, container string) error
	Stop, Start func(ctx context.Context, key pod.Key) error
	Inventory
	// Kubelet serves every other path: the kubelet API, with full access. Nil is
	// nothing there.
	Kubelet http.Handler
}

// ErrNoPod says that there is no such pod.
var ErrNoPod = errors.New("no such pod")

// Handler answers clients of the socket, who may do everything.
func Handler(a Answers) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/state", newer(a.State, writeState))
	mux.HandleFunc("GET /events", newer(a.Events, writeJSON))
	handleByHand(mux, a)
	handleInventory(mux, a.Inventory)
	if a.Kubelet != nil {
		mux.Handle("/", a.Kubelet)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if r.Method != http.MethodGet { // which waits for what is newer
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTime))
		}
		mux.ServeHTTP(w, r)
	})
}

// newer answers with what is newer than the revision that the request names.
func newer[T any](answer func(ctx context.Context, after uint64) (T, error), write func(http.ResponseWriter, *http.Request, T)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text := r.URL.Query().Get("after")
		after, err := strconv.ParseUint(text, 10, 64)
		if err != nil && text != "" {
			http.Error(w, "after: want a revision", http.StatusBadRequest)
			return
		}
		found, err := answer(r.Context(), after)
		if err != nil {
			http.Error(w, "the agent is stopping", http.StatusServiceUnavailable)
			return
		}
		write(w, r, found)
	}
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
	return ask(ctx, c, "/v1/state", after, compactType, readState)
}

// Events returns the events that happened after that revision, as soon as there are
// any; with 0, at once all there are. ErrNoAgent where nobody answers.
func (c *Client) Events(ctx context.Context, after uint64) (Events, error) {
	return ask(ctx, c, "/events", after, "application/json", func(resp *http.Response) (e Events, err error) {
		return e, json.NewDecoder(resp.Body).Decode(&e)
	})
}

// ask asks for what is newer than a revision, in that form.
func ask[T any](ctx context.Context, c *Client, path string, after uint64, accept string, read func(*http.Response) (T, error)) (found T, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent"+path+"?after="+strconv.FormatUint(after, 10), nil)
	if err != nil {
		return found, err
	}
	req.Header.Set("Accept", accept)
	resp, err := c.send(req)
	if err != nil {
		return found, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return found, fmt.Errorf("agent: %s", resp.Status)
	}
	if found, err = read(resp); err != nil {
		return found, fmt.Errorf("agent's answer: %w", err)
	}
	return found, nil
}

func (c *Client) do(ctx context.Context, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, nil)
	if err != nil {
		return nil, err
	}
	return c.send(req)
}

func (c *Client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err // without the address, which means nothing to people
	}
	return resp, err
}
