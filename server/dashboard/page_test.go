package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/dashboard"
)

const here = "127.0.0.1:4321"

// visit is one page, and who comes to it.
type visit struct {
	h            http.Handler
	token        string
	cookie, key  string
	done         []string // what was done to pods
	cookieHeader string   // as it was set
}

func newVisit(t *testing.T, actions bool) *visit {
	t.Helper()
	v := &visit{}
	a := dashboard.Answers{
		State: func(context.Context, uint64) (server.State, error) {
			return server.State{Revision: 1, NodeName: "n"}, nil
		},
		Events: func(ctx context.Context, after uint64) (server.Events, error) {
			return server.Events{Revision: 1}, ctx.Err()
		},
		Log: func(context.Context, pod.Key, string, dashboard.LogOptions) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("a line\n")), nil
		},
		Line:    func(server.Pod) dashboard.Line { return dashboard.Line{} },
		Actions: []string{"restart", "stop"},
	}
	if actions {
		a.Act = func(_ context.Context, at pod.Key, action string) error {
			if at.Name == "none" {
				return fmt.Errorf("%w: none", server.ErrNoPod)
			}
			v.done = append(v.done, action+" "+at.String())
			return nil
		}
	}
	v.h, v.token = dashboard.New(netip.MustParseAddrPort(here), a)
	return v
}

// ask sends a request as the browser of that visit does; change makes it another.
func (v *visit) ask(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	// What is answered for ever to whom it should not be ends, and has the wrong code.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = here
	if v.cookie != "" {
		r.AddCookie(&http.Cookie{Name: "podkeeper_4321", Value: v.cookie})
	}
	if v.key != "" {
		r.Header.Set("X-Podkeeper-Key", v.key)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Origin", "http://"+here)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	v.h.ServeHTTP(w, r)
	return w
}

func (v *visit) login(t *testing.T) {
	t.Helper()
	w := v.ask("POST", "/login", v.token)
	if w.Code != http.StatusOK {
		t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	v.cookieHeader = w.Header().Get("Set-Cookie")
	v.cookie, v.key = w.Result().Cookies()[0].Value, w.Body.String()
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

// Each request that a stranger may make, to what shows something or does something.
func TestWhoIsRefused(t *testing.T) {
	noKey := func(r *http.Request) { r.Header.Del("X-Podkeeper-Key") }
	noCookie := func(r *http.Request) { r.Header.Del("Cookie") }
	strangers := map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"nobody":                     {func(r *http.Request) { noKey(r); noCookie(r) }, 401},
		"the key without the cookie": {noCookie, 401},
		"the cookie without the key": {noKey, 403},
		"another key":                {header("X-Podkeeper-Key", "x"), 403},
		"another cookie":             {header("Cookie", "podkeeper_4321=x"), 401},
		"the cookie of another port": {func(r *http.Request) {
			r.Header.Set("Cookie", strings.ReplaceAll(r.Header.Get("Cookie"), "4321", "4322"))
		}, 401},
		"a name that was made to lead here": {host("evil.example:4321"), 421},
		"a name that ends like ours":        {host("evil.localhost:4321"), 421},
		"our address, another port":         {host("127.0.0.1:4322"), 421},
		"our address, no port":              {host("127.0.0.1"), 421},
		"no name at all":                    {host(""), 421},
		"a page of another site":            {header("Origin", "http://evil.example"), 403},
		"a page of another port":            {header("Origin", "http://127.0.0.1:4322"), 403},
		"a page that hides its origin":      {header("Origin", "null"), 403},
		"another scheme":                    {header("Origin", "https://"+here), 403},
		"an element of another site":        {header("Sec-Fetch-Site", "cross-site"), 403},
		"an element of another port":        {header("Sec-Fetch-Site", "same-site"), 403},
		"a link of another site": {func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Dest", "document")
		}, 403},
	}
	for name, s := range strangers {
		t.Run(name, func(t *testing.T) {
			v := newVisit(t, true)
			v.login(t)
			for _, to := range []string{"GET /live", "GET /pods/a/b/log/c", "POST /pods/a/b/restart"} {
				method, path, _ := strings.Cut(to, " ")
				w := v.ask(method, path, "", s.change)
				if w.Code != s.want {
					t.Errorf("%s: %d %s, want %d", to, w.Code, w.Body, s.want)
				}
			}
			if len(v.done) > 0 {
				t.Errorf("done: %q", v.done)
			}
		})
	}
}

// What has no data is not for everybody either.
func TestOnlyTheLoginPageIsForEverybody(t *testing.T) {
	paths := map[string]int{
		"GET /": 200, "GET /login.js": 200, "GET /key.js": 200, "GET /early.js": 200, "GET /look.css": 200, "GET /login.css": 200, "GET /icon.svg": 200,
		"GET /app.js": 401, "GET /app.css": 401, "GET /app.html": 401, "GET /login.html": 401, "GET /live": 401, "GET /nothing": 401,
		"GET /pods/a/b/log/c": 401, "POST /pods/a/b/restart": 401, "GET //": 401, "GET /../page.go": 401, "GET /assets/": 401,
		"POST /": 405, "GET /login": 404, "DELETE /live": 401, "POST /live": 401,
	}
	for to, want := range paths {
		t.Run(to, func(t *testing.T) {
			method, path, _ := strings.Cut(to, " ")
			w := newVisit(t, true).ask(method, path, "")
			if w.Code != want {
				t.Errorf("%d, want %d: %s", w.Code, want, w.Body)
			}
			if to == "GET /" && !strings.Contains(w.Body.String(), "login.js") {
				t.Errorf("that is not the login page: %s", w.Body)
			}
		})
	}
}

func TestWhoHasASession(t *testing.T) {
	v := newVisit(t, true)
	v.login(t)
	if want := "podkeeper_4321=" + v.cookie + "; Path=/; HttpOnly; SameSite=Strict"; v.cookieHeader != want {
		t.Errorf("cookie %q, want %q", v.cookieHeader, want)
	}
	paths := map[string]int{
		"GET /": 200, "GET /app.js": 200, "GET /app.html": 404, "GET /login.html": 404, "GET /nothing": 404, "GET /../page.go": 307,
		"GET /pods/a/b/log/c": 200, "GET /pods/a/b/log/c?tail=x": 400, "GET /pods/a/b/log/c?tail=10001": 400, "GET /pods/a/b/log/c?tail=-1": 400,
		"POST /pods/a/b/restart": 204, "POST /pods/a/none/restart": 404, "POST /pods/a/b/delete": 404, "GET /pods/a/b/restart": 404,
	}
	for to, want := range paths {
		method, path, _ := strings.Cut(to, " ")
		w := v.ask(method, path, "")
		if w.Code != want {
			t.Errorf("%s: %d, want %d: %s", to, w.Code, want, w.Body)
		}
		if to == "GET /" && !strings.Contains(w.Body.String(), "app.js") {
			t.Errorf("that is not the page: %s", w.Body)
		}
	}
	if len(v.done) != 1 || v.done[0] != "restart a/b" {
		t.Errorf("done: %q", v.done)
	}
	for _, name := range []string{"localhost:4321", "[::1]:4321"} {
		w := v.ask("POST", "/pods/a/b/stop", "", host(name), header("Origin", "http://"+name))
		if w.Code != 204 {
			t.Errorf("by the name %s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestTokenIsGoodOnce(t *testing.T) {
	v := newVisit(t, false)
	for _, wrong := range []string{"", "x", v.token[1:], v.token + "x", strings.ToLower(v.token)} {
		if w := v.ask("POST", "/login", wrong); w.Code != 403 || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("token %q: %d %s", wrong, w.Code, w.Header().Get("Set-Cookie"))
		}
	}
	if w := v.ask("POST", "/login", strings.Repeat("x", 300)); w.Code != 413 {
		t.Errorf("a long body: %d", w.Code)
	}
	if w := v.ask("POST", "/login", v.token, header("Origin", "http://evil.example")); w.Code != 403 {
		t.Errorf("from elsewhere: %d", w.Code)
	}
	// Of many at once one gets in.
	var wg sync.WaitGroup
	codes := make(chan int, 20)
	for range cap(codes) {
		wg.Go(func() { codes <- v.ask("POST", "/login", v.token).Code })
	}
	wg.Wait()
	close(codes)
	in := 0
	for code := range codes {
		if code == 200 {
			in++
		}
	}
	if in != 1 {
		t.Errorf("%d were let in", in)
	}
	if w := v.ask("POST", "/login", v.token); w.Code != 403 {
		t.Errorf("token once more: %d", w.Code)
	}
}

func TestTokensDiffer(t *testing.T) {
	a, b := newVisit(t, false), newVisit(t, false)
	a.login(t)
	b.login(t)
	seen := map[string]bool{}
	for _, s := range []string{a.token, a.cookie, a.key, b.token, b.cookie, b.key} {
		if len(s) < 26 || seen[s] {
			t.Errorf("secret %q", s)
		}
		seen[s] = true
	}
}

func TestWithoutActionsNothingIsDone(t *testing.T) {
	v := newVisit(t, false)
	v.login(t)
	if w := v.ask("POST", "/pods/a/b/restart", ""); w.Code != 403 || !strings.Contains(w.Body.String(), "--allow-actions") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A link may stand anywhere. It comes without the cookie, since that is strict.
func TestALinkLeadsToTheLoginPage(t *testing.T) {
	w := newVisit(t, false).ask("GET", "/", "", header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Dest", "document"))
	if w.Code != 200 {
		t.Errorf("a link: %d", w.Code)
	}
	w = newVisit(t, false).ask("GET", "/", "", header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Dest", "iframe"))
	if w.Code != 403 {
		t.Errorf("a frame: %d", w.Code)
	}
}

func TestEveryAnswerIsProtected(t *testing.T) {
	want := map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
	}
	v := newVisit(t, true)
	in := newVisit(t, true)
	in.login(t)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"login page": v.ask("GET", "/", ""), "a stranger": v.ask("GET", "/live", ""), "login": v.ask("POST", "/login", "x"),
		"page": in.ask("GET", "/", ""), "script": in.ask("GET", "/app.js", ""), "not found": in.ask("GET", "/x", ""),
		"wrong host": in.ask("GET", "/", "", host("evil.example")), "log": in.ask("GET", "/pods/a/b/log/c", ""),
	} {
		for key, value := range want {
			if got := w.Header().Get(key); got != value {
				t.Errorf("%s: %s is %q, want %q", name, key, got, value)
			}
		}
		policy := w.Header().Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy %q lacks %s", name, policy, part)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", name, policy)
		}
	}
}
