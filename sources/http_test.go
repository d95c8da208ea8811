package sources_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/sources"
	"github.com/podkeeper/podkeeper/sources/sourcestest"
)

// serve is a transport that answers with a handler, in the bubble.
type serve struct {
	mu       sync.Mutex
	handler  http.HandlerFunc // nil: nobody listens
	requests []*http.Request
}

func (s *serve) set(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = h
}

func (s *serve) seen() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *serve) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.requests = append(s.requests, req.Clone(req.Context()))
	handler := s.handler
	s.mu.Unlock()
	if req.URL.Host == "down.example" {
		return nil, errors.New("connection refused")
	}
	if handler == nil {
		return nil, fmt.Errorf("connection to %s refused", req.URL) // a careless library
	}
	w := httptest.NewRecorder()
	handler(w, req)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

func body(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

func pages(t *testing.T, transport http.RoundTripper, store *sourcestest.Store, edit func(*sources.HTTPConfig)) *rig {
	t.Helper()
	if store == nil {
		store = &sourcestest.Store{}
	}
	r := &rig{t: t, store: store, log: &bytes.Buffer{}}
	cfg := sources.HTTPConfig{
		URL: "http://user:hunter2@h.example/p?token=s3cr3t", Header: http.Header{"X-Token": {"t0ps3cret"}},
		Transport: transport, Parse: r.parse, Store: store, Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if edit != nil {
		edit(&cfg)
	}
	src, err := sources.NewHTTP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.start(src)
	return r
}

const period = 20 * time.Second

func TestHTTPBodies(t *testing.T) {
	// Law 1, C128, C129, C130: a good body, then another, then what it leads to.
	for name, test := range map[string]struct {
		answer      http.HandlerFunc
		pods, state string
		problem     string // of the source, or of the origin
	}{
		"another good body replaces":      {body(200, "p x:2"), "p=x:2 (p)", "present, spoken", ""},
		"an explicit empty list removes":  {body(200, `{"apiVersion":"v1","kind":"PodList","items":[]}`), "", "present, spoken", ""},
		"an empty body keeps":             {body(200, ""), "p=x:1 (p), q=x:1 (p)", "present, spoken, p stale error", "empty"},
		"a blank body keeps":              {body(200, " \r\n "), "p=x:1 (p), q=x:1 (p)", "present, spoken, p stale error", "blank"},
		"comments alone keep":             {body(200, "# nothing"), "p=x:1 (p), q=x:1 (p)", "present, spoken, p stale error", "explicit empty list"},
		"a list without items keeps":      {body(200, `{"apiVersion":"v1","kind":"PodList"}`), "p=x:1 (p), q=x:1 (p)", "present, spoken, p stale error", "explicit empty list"},
		"an HTML page keeps":              {body(200, "\n<!DOCTYPE html><html>502</html>"), "p=x:1 (p), q=x:1 (p)", "present, spoken, p stale error", "HTML"},
		"a body that is cut off keeps":    {body(200, `{"items":["p`), "p=x:1 (p), q=x:1 (p)", "present, spoken, p stale error", "cut off"},
		"C129.3: a bad item removes none": {body(200, "p x:2\nbad\nr x:1"), "p=x:2 (p), q=x:1 (p), r=x:1 (p)", "present, spoken, p stale error", "bad document"},
		"11 MiB keep":                     {body(200, strings.Repeat(" ", 11<<20)), "p=x:1 (p), q=x:1 (p)", "spoken, p stale", "limit of 10 MiB"},
		"404 keeps":                       {body(404, "p x:3"), "p=x:1 (p), q=x:1 (p)", "spoken, p stale", "404 Not Found"},
		"503 keeps":                       {body(503, "p x:3"), "p=x:1 (p), q=x:1 (p)", "spoken, p stale", "503 Service Unavailable"},
		"304 without being asked keeps":   {body(304, ""), "p=x:1 (p), q=x:1 (p)", "spoken, p stale", "304"},
		"no answer keeps":                 {nil, "p=x:1 (p), q=x:1 (p)", "spoken, p stale", "refused"},
		"an answer too late keeps":        {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "p=x:1 (p), q=x:1 (p)", "spoken, p stale", "within 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &serve{handler: body(200, "p x:1\nq x:1")}
				r := pages(t, s, nil, nil)
				r.want("p=x:1 (p), q=x:1 (p)", "present, spoken")
				s.set(test.answer)
				r.pass(period + 11*time.Second)
				r.want(test.pods, test.state)
				if got := problemOf(r.last()); !strings.Contains(got, test.problem) || (test.problem == "") != (got == "") {
					t.Errorf("problem %q, want %q in it", got, test.problem)
				}
				n := r.count()
				r.pass(5 * period)
				if r.count() != n {
					t.Errorf("%d more supplies while nothing changes", r.count()-n)
				}
				if n := strings.Count(r.log.String(), "level=WARN"); n > 1 {
					t.Errorf("C029: said %d times, want once:\n%s", n, r.log)
				}
				s.set(body(200, "p x:1\nq x:1"))
				r.pass(period + 11*time.Second)
				r.want("p=x:1 (p), q=x:1 (p)", "present, spoken")
				if strings.ContainsAny(r.last().Source.Problem, "x") {
					t.Errorf("problem %q after all is well", r.last().Source.Problem)
				}
			})
		})
	}
}

func problemOf(s sources.Supply) string {
	text := s.Source.Problem
	for _, o := range s.Source.Origins {
		for _, p := range o.Problems {
			text += p.Message
		}
	}
	return text
}

func TestHTTPSecretsAreNeverShown(t *testing.T) {
	// Not in names, problems, errors or the log, whatever goes wrong.
	for name, handler := range map[string]http.HandlerFunc{
		"nobody listens": nil,
		"all is well":    body(200, "p x:1"),
		"forbidden":      body(403, "bad token t0ps3cret"),
		"redirect loop": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String()+"&n=1", http.StatusFound)
		},
		"redirect to a signed URL that is down": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://down.example/q?sig=s1gnature", http.StatusFound)
		},
		"redirect to a place that is none": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://[::1/?token=s3cr3t")
			w.WriteHeader(302)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := pages(t, &serve{handler: handler}, nil, nil)
				r.pass(3 * period)
				r.mu.Lock()
				shown := fmt.Sprintf("%+v", r.supplies) + r.log.String()
				r.mu.Unlock()
				for _, secret := range []string{"s1gnature", "hunter2", "s3cr3t", "t0ps3cret"} {
					if strings.Contains(shown, secret) {
						t.Errorf("%s is shown:\n%s", secret, shown)
					}
				}
				if got := r.last().Source.ID.Name; got != "http://h.example/p" {
					t.Errorf("name %q", got)
				}
			})
		})
	}
	for _, url := range []string{"http://u:hun/ter2@h", "ftp://u:hunter2@h/", "http://h:hunter2/", "http:///?hunter2", "hunter2"} {
		if _, err := sources.NewHTTP(sources.HTTPConfig{URL: url, Parse: parse, Log: discard}); err == nil || strings.Contains(err.Error(), "ter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := sources.NewHTTP(sources.HTTPConfig{URL: "http://h/", Header: http.Header{"X": {"t0ps3cret\n"}}, Parse: parse, Log: discard}); err == nil || strings.Contains(err.Error(), "t0ps3cret") {
		t.Errorf("bad header: %v", err)
	}
}

func TestHTTPConditionalRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		text, etag := "p x:1", `"1"`
		set := func(newText, newETag string) { mu.Lock(); defer mu.Unlock(); text, etag = newText, newETag }
		var sent []string
		s := &serve{}
		s.set(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, r.Header.Get("If-None-Match"))
			if etag != "" && r.Header.Get("If-None-Match") == etag {
				w.WriteHeader(304)
				return
			}
			w.Header().Set("ETag", etag)
			fmt.Fprint(w, text)
		})
		r := pages(t, s, nil, nil)
		r.pass(2 * period) // "", "1", "1"
		set("bad", `"2"`)
		r.pass(2 * period) // "1", and after a refused body nothing
		r.want("p=x:1 (p)", "present, spoken, p stale error")
		set("p x:1", `"3"`)
		r.pass(2 * period) // nothing, "3"
		r.want("p=x:1 (p)", "present, spoken")
		mu.Lock()
		defer mu.Unlock()
		want := []string{"", `"1"`, `"1"`, `"1"`, "", "", `"3"`}
		if !slices.Equal(sent, want) {
			t.Errorf("If-None-Match: %q, want %q", sent, want)
		}
		if r.parses() != 3 {
			t.Errorf("decoded %d times, want 3", r.parses())
		}
	})
}

func TestHTTPLastModified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const at = "Mon, 02 Jan 2006 15:04:05 GMT"
		s := &serve{}
		s.set(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("If-Modified-Since") == at {
				w.WriteHeader(304)
				return
			}
			w.Header().Set("Last-Modified", at)
			fmt.Fprint(w, "p x:1")
		})
		r := pages(t, s, nil, nil)
		r.pass(5 * period)
		r.want("p=x:1 (p)", "present, spoken")
		if r.count() != 1 {
			t.Errorf("%d supplies, want 1", r.count())
		}
	})
}

func TestHTTPStartsFromItsLastGoodBody(t *testing.T) {
	// After a reboot while the URL is down the pods start, and nothing
	// is removed: the source has not spoken.
	for name, down := range map[string]http.HandlerFunc{
		"nobody listens": nil, "it hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"it fails": body(500, ""), "an HTML page": body(200, "<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &serve{handler: body(200, "p x:1\nq x:1")}
				r := pages(t, s, nil, nil)
				r.stop()
				s.set(down)
				r = pages(t, s, r.store, nil)
				r.pass(time.Second)
				if got := pods(r.last()); got != "p=x:1 (p), q=x:1 (p)" {
					t.Errorf("supplies %q a second after the start", got)
				}
				r.pass(time.Minute)
				s0 := r.last()
				if s0.Source.Spoken || !s0.Source.Origins[0].Stale {
					t.Errorf("state %q, want stale and not spoken", state(s0))
				}
				s.set(body(200, "q x:2"))
				r.pass(period + 11*time.Second)
				r.want("q=x:2 (p)", "present, spoken")
			})
		})
	}
	t.Run("an answer within a second comes before the last good body", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &serve{handler: body(200, "p x:1\nq x:1")}
			r := pages(t, s, nil, nil)
			r.stop()
			s.set(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(900 * time.Millisecond)
				fmt.Fprint(w, "q x:1")
			})
			r = pages(t, s, r.store, nil)
			r.pass(time.Minute)
			r.always(0, "without p", func(s sources.Supply) bool { return !supplies("p")(s) })
			r.want("q=x:1 (p)", "present, spoken")
		})
	})
	t.Run("an empty list is remembered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &serve{handler: body(200, "p x:1")}
			r := pages(t, s, nil, nil)
			s.set(body(200, `{"kind":"PodList","items":[]}`))
			r.pass(period)
			r.stop()
			s.set(nil)
			r = pages(t, s, r.store, nil)
			r.pass(time.Minute)
			r.want("", "")
		})
	})
}

func TestHTTPRetriesQuickly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &serve{}
		s.set(func(w http.ResponseWriter, _ *http.Request) {
			if len(s.seen()) < 3 {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(503)
				return
			}
			fmt.Fprint(w, "p x:1")
		})
		r := pages(t, s, nil, nil)
		r.pass(2 * time.Second)
		r.want("p=x:1 (p)", "present, spoken")
		if got := len(s.seen()); got != 3 {
			t.Errorf("%d requests, want 3", got)
		}
	})
}

func TestHTTPRedirectLoopIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &serve{handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }}
		r := pages(t, s, nil, nil)
		r.pass(10 * time.Second)
		if got := len(s.seen()); got != 10 {
			t.Errorf("%d requests, want 10", got)
		}
		if got := problemOf(r.last()); got != "more than 10 redirects" {
			t.Errorf("problem %q", got)
		}
	})
}

func TestHTTPRedirects(t *testing.T) {
	// What is meant for the configured host is not sent to another.
	for name, test := range map[string]struct {
		hops []string // after the configured URL
		kept bool     // at the last
	}{
		"another path":                {[]string{"http://h.example/q"}, true},
		"up to TLS":                   {[]string{"https://h.example/q"}, true},
		"another host":                {[]string{"http://evil.example/q"}, false},
		"a host below":                {[]string{"http://x.h.example/q"}, false},
		"another port":                {[]string{"http://h.example:81/q"}, false},
		"another host and back":       {[]string{"http://evil.example/", "http://h.example/q"}, false},
		"another host, twice":         {[]string{"http://evil.example/", "http://evil.example/q"}, false},
		"up to TLS, and down again":   {[]string{"https://h.example/", "http://h.example/q"}, true},
		"the same host, other letter": {[]string{"http://H.Example/q"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &serve{}
				s.set(func(w http.ResponseWriter, r *http.Request) {
					if n := len(s.seen()); n <= len(test.hops) {
						http.Redirect(w, r, test.hops[n-1], http.StatusFound)
						return
					}
					fmt.Fprint(w, "p x:1")
				})
				r := pages(t, s, nil, nil)
				r.want("p=x:1 (p)", "present, spoken")
				seen := s.seen()
				last := seen[len(seen)-1]
				if last.URL.Path != "/q" {
					t.Fatalf("ended at %s", last.URL)
				}
				if got := last.Header.Get("X-Token") != ""; got != test.kept {
					t.Errorf("header sent: %v, want %v", got, test.kept)
				}
				if _, _, ok := last.BasicAuth(); ok && !test.kept {
					t.Error("the password was sent to another host")
				}
				if last.Header.Get("Referer") != "" {
					t.Errorf("the query was sent as Referer: %s", last.Header.Get("Referer"))
				}
			})
		})
	}
}

func TestNamesOfURLs(t *testing.T) {
	got, err := sources.NamesOfURLs([]string{"https://u:p@h:8443/a?token=1", "https://h:8443/a?token=2", "http://h/b#x", "https://h:8443/a"})
	want := []string{"https://h:8443/a", "https://h:8443/a#2", "http://h/b", "https://h:8443/a#3"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("names %q, %v; want %q", got, err, want)
	}
}

// eventually waits for a real source in real time: it checks after each supply.
func eventually(t *testing.T, out <-chan sources.Supply, what string, ok func(sources.Supply) bool) sources.Supply {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case s := <-out:
			if ok(s) {
				return s
			}
		case <-deadline:
			t.Fatalf("no supply that is %s", what)
		}
	}
}

func TestHTTPOverTheWire(t *testing.T) {
	// C130, with a real server: gzip, a cut-off body, a drip of a byte a second.
	var mu sync.Mutex
	var handler http.HandlerFunc
	set := func(h http.HandlerFunc) { mu.Lock(); defer mu.Unlock(); handler = h }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handler
		mu.Unlock()
		h(w, r)
	}))
	defer server.Close()
	set(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			http.Error(w, "want gzip", http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, "p x:1")
		_ = z.Close()
	})
	src, err := sources.NewHTTP(sources.HTTPConfig{URL: server.URL, Period: 50 * time.Millisecond, Parse: parse, Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	out, stop := runReal(t, src)
	eventually(t, out, "p from gzip", func(s sources.Supply) bool { return pods(s) == "p=x:1 ("+server.Listener.Addr().String()+")" })

	set(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "q x:1")
	})
	eventually(t, out, "cut off", func(s sources.Supply) bool {
		return strings.Contains(s.Source.Problem, "unexpected EOF") && len(s.Pods) == 1
	})
	var bomb bytes.Buffer // 11 KB on the wire
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 11<<20))
	_ = z.Close()
	set(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	eventually(t, out, "too large", func(s sources.Supply) bool {
		return strings.Contains(s.Source.Problem, "limit of 10 MiB") && len(s.Pods) == 1
	})
	set(func(w http.ResponseWriter, r *http.Request) {
		for _, c := range []byte("q x:1 and so on without an end") {
			_, _ = w.Write([]byte{c})
			w.(http.Flusher).Flush()
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return
			}
		}
	})
	began := time.Now()
	eventually(t, out, "given up on", func(s sources.Supply) bool {
		return strings.Contains(s.Source.Problem, "within 10s") && len(s.Pods) == 1
	})
	if d := time.Since(began); d > 15*time.Second {
		t.Errorf("a drip was given up after %s, want about 10 s", d)
	}
	stop()
}

func TestHTTPLeaksNothing(t *testing.T) {
	// C130: a hundred polls, each another way to go wrong.
	polls := make(chan struct{})
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) % 4 {
		case 0:
			fmt.Fprint(w, "<html>")
		case 1:
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "x")
		case 2:
			http.Error(w, "no", http.StatusForbidden)
		case 3:
			fmt.Fprint(w, "p x:1")
		}
		polls <- struct{}{}
	}))
	defer server.Close()
	src, err := sources.NewHTTP(sources.HTTPConfig{URL: server.URL, Period: time.Millisecond, Parse: parse, Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	out, stop := runReal(t, src)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for range out {
		}
	}()
	for range 10 {
		<-polls
	}
	before := runtime.NumGoroutine()
	for range 100 {
		<-polls
	}
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Errorf("%d goroutines after 100 polls, %d before", after, before)
	}
	go func() {
		for range polls {
		}
	}()
	stop()
	close(out)
	<-drained
}

func TestImmutableObjectOfAURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &serve{handler: body(200, "sealed key=1\np x:1")}
		r := pages(t, s, nil, nil)
		r.stop()
		s.set(body(200, "sealed key=2\np x:2"))
		r = pages(t, s, r.store, nil)
		r.pass(period)
		r.want("key=1 (p), p=x:2 (p)", "present, spoken, p stale error")
		s.set(body(200, "p x:2"))
		r.pass(period)
		s.set(body(200, "sealed key=2\np x:2"))
		r.pass(period)
		r.want("key=2 (p), p=x:2 (p)", "present, spoken")
	})
}
