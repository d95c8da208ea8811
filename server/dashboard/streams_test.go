package dashboard_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/dashboard"
)

// session is a client of a stage that has logged in.
type session struct {
	t       *testing.T
	address string
	cookie  *http.Cookie
	key     string
	http    *http.Client
}

func (s *stage) session(t *testing.T) *session {
	t.Helper()
	address, token, _ := strings.Cut(s.url, "#")
	c := &session{t: t, address: strings.TrimSuffix(address, "/"), http: &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}}
	t.Cleanup(c.http.CloseIdleConnections)
	c.login(token)
	return c
}

func (c *session) login(token string) {
	c.t.Helper()
	resp, err := c.http.Post(c.address+"/login", "text/plain", strings.NewReader(token))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	key, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("login: %s %v", resp.Status, err)
	}
	c.cookie, c.key = resp.Cookies()[0], string(key)
}

func (c *session) get(ctx context.Context, path string) *http.Response {
	c.t.Helper()
	return c.do(ctx, http.MethodGet, path, nil)
}

func (c *session) do(ctx context.Context, method, path string, body io.Reader) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.address+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	req.AddCookie(c.cookie)
	req.Header.Set("X-Podkeeper-Key", c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// Clients that vanish give back what they had.
func TestStreamsAreBounded(t *testing.T) {
	s := newStage(t, false, running("web"))
	c := s.session(t)
	for range 2 {
		ctx, vanish := context.WithCancel(t.Context())
		for range 32 {
			// Those of before are given back as soon as the other side knows.
			for c.get(ctx, "/live").StatusCode != http.StatusOK {
			}
		}
		if resp := c.get(ctx, "/live"); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("one too many: %s", resp.Status)
		}
		vanish()
	}
}

// pipes is a network in memory, in which time may stand.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(here)) }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p <- server
	return client, nil
}

// servePipes serves a page without a network, in a bubble.
func servePipes(t *testing.T, a dashboard.Answers) *session {
	t.Helper()
	h, token := dashboard.New(netip.MustParseAddrPort(here), a)
	network := make(pipes)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, network, h, slog.New(slog.DiscardHandler)) }()
	c := &session{t: t, address: "http://" + here, http: &http.Client{Transport: &http.Transport{DialContext: network.dial}}}
	t.Cleanup(func() {
		c.http.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	c.login(token)
	return c
}

// An action takes as long as it takes.
func TestSlowActionIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newModel(running("web")).answers(true)
		a.Act = func(ctx context.Context, _ pod.Key, _ string) error {
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		resp := servePipes(t, a).do(t.Context(), http.MethodPost, "/pods/default/web/stop", nil)
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			t.Errorf("stop: %s", resp.Status)
		}
	})
}

// A client that sends nothing does not hold on for ever.
func TestSlowBodyIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servePipes(t, newModel(running("web")).answers(true))
		body, hold := io.Pipe()
		defer hold.Close()
		began := time.Now()
		resp := c.do(t.Context(), http.MethodPost, "/pods/default/web/stop", body)
		defer resp.Body.Close()
		if took := time.Since(began); resp.StatusCode != http.StatusRequestEntityTooLarge || took != 5*time.Second {
			t.Errorf("%s after %v", resp.Status, took)
		}
	})
}

// A client that reads nothing does not hold the end of the command up.
func TestSlowClientHoldsNothing(t *testing.T) {
	s := newStage(t, false, running("web"))
	c := s.session(t)
	resp := c.get(t.Context(), "/pods/default/web/log/app")
	defer resp.Body.Close()
	log := <-s.opened
	written := make(chan error, 1)
	go func() {
		_, err := io.Copy(log.w, endless{})
		written <- err
	}()
	s.stop()
	if err := <-written; err == nil {
		t.Error("the log is still read")
	}
}

func TestLogSaysWhyThereIsNone(t *testing.T) {
	s := newStage(t, false, running("web"))
	resp := s.session(t).get(t.Context(), "/pods/default/web/log/other")
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusNotFound || string(text) != "no container other\n" {
		t.Errorf("%s %q %v", resp.Status, text, err)
	}
}

func TestLogThatBreaksOffIsNoEnd(t *testing.T) {
	for name, end := range map[string]error{"ends": nil, "breaks off": errors.New("the agent is gone")} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, false, running("web"))
			resp := s.session(t).get(t.Context(), "/pods/default/web/log/app")
			defer resp.Body.Close()
			log := <-s.opened
			if _, err := io.WriteString(log.w, "a line\n"); err != nil {
				t.Fatal(err)
			}
			log.w.CloseWithError(end)
			text, err := io.ReadAll(resp.Body)
			if string(text) != "a line\n" || (err == nil) != (end == nil) {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
