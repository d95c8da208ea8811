package dashboard_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
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
	resp, err := c.http.Post(address+"login", "text/plain", strings.NewReader(token))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	key, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("login: %s %v", resp.Status, err)
	}
	c.cookie, c.key = resp.Cookies()[0], string(key)
	return c
}

func (c *session) get(ctx context.Context, path string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address+path, nil)
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
