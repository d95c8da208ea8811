package kubeletapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

func TestPathsAndMethods(t *testing.T) {
	for request, want := range map[string]int{
		"GET /pods":                              200,
		"HEAD /pods":                             200,
		"GET /pods/":                             200,
		"POST /pods":                             405,
		"DELETE /pods/":                          405,
		"BREW /pods":                             405,
		"OPTIONS /healthz":                       405,
		"PUT /logs/x":                            405,
		"GET /pods/x":                            404,
		"GET /Pods":                              404,
		"GET /":                                  404,
		"GET //pods":                             307,
		"GET /x/../pods":                         307,
		"GET /%70ods":                            200,
		"GET /pods%2f":                           404,
		"GET /pods?a=%zz&b;c":                    200,
		"GET /runningpods":                       200,
		"GET /debug/pprof/":                      200,
		"GET /debug/pprof":                       307,
		"GET /debug/pprof/zzz":                   404,
		"GET /debug/pprof/profile?seconds=301":   400,
		"GET /debug/pprof/profile?seconds=-1":    400,
		"GET /debug/pprof/trace?seconds=NaN":     400,
		"GET /debug/pprof/goroutine?seconds=1e9": 400,
	} {
		method, path, _ := strings.Cut(request, " ")
		code, body := call(t, kubeletapi.Full, everything(), method, path)
		if code != want || code >= 400 && (len(body) > 100 || body == "" && method != http.MethodHead) {
			t.Errorf("%s: %d %.200q, want %d", request, code, body, want)
		}
	}
}

// Each class of error is one status, however it is wrapped, and the text is the
// message.
func TestErrorsOfAnswers(t *testing.T) {
	for class, want := range map[error]int{
		kubeletapi.ErrNotFound: 404, kubeletapi.ErrBadRequest: 400, kubeletapi.ErrConflict: 409, kubeletapi.ErrTooMany: 429,
		kubeletapi.ErrTooLarge: 413, kubeletapi.ErrUnavailable: 503, kubeletapi.ErrUnauthenticated: 401, kubeletapi.ErrForbidden: 403,
		kubeletapi.ErrDisabled: 405, context.DeadlineExceeded: 503, context.Canceled: 503, &http.MaxBytesError{Limit: 1}: 413, errors.New("a bug"): 500,
	} {
		a := everything()
		a.Pods = func(context.Context) ([]*v1.Pod, error) { return nil, fmt.Errorf("list: %w", class) }
		if code, body := call(t, kubeletapi.Full, a, http.MethodGet, "/pods"); code != want || body != "list: "+class.Error()+"\n" {
			t.Errorf("%v: %d %q, want %d", class, code, body, want)
		}
	}
}

// What reads or acts in containers can be turned off; the rest stays.
func TestNoDebugging(t *testing.T) {
	a := everything()
	a.NoDebugging = true
	off := 0
	for _, pattern := range kubeletapi.Patterns(a) {
		method, path, _ := strings.Cut(pattern, " ")
		if row := rows[pattern]; row.path != "" {
			path = row.path
		}
		first := strings.Split(path, "/")[1]
		want := strings.Contains(" run exec attach portForward containerLogs runningpods logs debug ", " "+first+" ")
		code, body := call(t, kubeletapi.Full, a, method, path)
		if got := code == http.StatusMethodNotAllowed && body == "Debug endpoints are disabled.\n"; got != want {
			t.Errorf("%s: %d %q", pattern, code, body)
		}
		if want {
			off++
		}
	}
	if off < 3 {
		t.Errorf("%d routes are off", off)
	}
}

// A page of another site gets a browser, which has its user's certificate, to do
// nothing; programs send neither of these headers.
func TestPagesOfOtherSites(t *testing.T) {
	h := kubeletapi.Handler(everything(), kubeletapi.NewStreams(1), kubeletapi.Everybody(kubeletapi.Full), quiet)
	for name, c := range map[string]struct {
		method  string
		headers map[string]string
		refused bool
	}{
		"a program":                      {http.MethodPost, nil, false},
		"a form of another site":         {http.MethodPost, map[string]string{"Sec-Fetch-Site": "cross-site"}, true},
		"one in an old browser":          {http.MethodPost, map[string]string{"Origin": "https://evil.example"}, true},
		"a page of this one":             {http.MethodPost, map[string]string{"Origin": "http://example.com", "Sec-Fetch-Site": "same-origin"}, false},
		"a link":                         {http.MethodGet, map[string]string{"Sec-Fetch-Site": "cross-site"}, false},
		"a WebSocket of another site":    {http.MethodGet, map[string]string{"Origin": "https://evil.example", "Upgrade": "websocket"}, true},
		"a WebSocket of a program":       {http.MethodGet, map[string]string{"Upgrade": "websocket"}, false},
		"a WebSocket of a page of these": {http.MethodGet, map[string]string{"Origin": "http://example.com", "Upgrade": "websocket"}, false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/debug/pprof/symbol", nil) // of example.com
		for k, v := range c.headers {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if (w.Code == http.StatusForbidden) != c.refused {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// The read-only port is for who asks this machine, not for a web page whose name means
// the loopback device.
func TestNamesOfTheReadOnlyPort(t *testing.T) {
	who := kubeletapi.AnybodyHere("n1")
	for host, in := range map[string]bool{
		"127.0.0.1:10255": true, "[::1]:10255": true, "127.0.0.1": true, "[::1]": true, "localhost:10255": true, "LOCALHOST": true, "n1:10255": true,
		"evil.example:10255": false, "evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/pods", nil)
		r.Host = host
		access, err := who(r)
		if in != (access == kubeletapi.ReadOnlyPort) || in != (err == nil) {
			t.Errorf("%q: %d, %v", host, access, err)
		}
	}
}

// Whatever is asked for, nobody gets more than an answer that it is not for them, a
// reader gets no further than a reader may, and no request is a bug of ours.
func FuzzRequests(f *testing.F) {
	for _, pattern := range kubeletapi.Patterns(everything()) {
		method, path, _ := strings.Cut(pattern, " ")
		f.Add(method, path, "a=b", "")
		f.Add(method, rows[pattern].path, "tailLines=-1&follow=true&sinceTime=x&seconds=1", "x")
	}
	f.Add("GET", "/logs/%2e%2e/%2e%2e/etc/passwd", "", "")
	f.Add("GET", "/containerLogs/default/web/web", "tailLines=10&limitBytes=5&previous=1&sinceSeconds=9", "")
	f.Add("POST", "/exec/default/web/web", "command=ls&command=-l&input=1&output=1&error=1&tty=1", "")
	f.Add("POST", "/portForward/default/web", "port=80&ports=1,2", "")
	f.Add("GET", "/logs/\x00/..//", "%zz", "\xff")
	f.Add("GET", "/pods", "a b", "")
	a := everything()
	a.LogFolder = f.TempDir()
	a.Profiling = false // it takes time
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		u := &url.URL{Scheme: "http", Host: "x", Path: "/" + strings.TrimPrefix(path, "/"), RawQuery: query}
		line := bufio.NewReader(strings.NewReader(method + " " + u.String() + " HTTP/1.0\r\n\r\n"))
		if _, err := http.ReadRequest(line); err != nil {
			return // the server itself answers it
		}
		ask := func(access kubeletapi.Access) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), method, u.String(), strings.NewReader(body))
			who := kubeletapi.Everybody(access)
			if access == 0 {
				who = func(*http.Request) (kubeletapi.Access, error) {
					return 0, kubeletapi.Wrong(kubeletapi.ErrUnauthenticated, "Unauthorized")
				}
			}
			w := httptest.NewRecorder()
			kubeletapi.Handler(a, kubeletapi.NewStreams(1), who, quiet).ServeHTTP(w, r)
			return w
		}
		if w := ask(0); w.Code != http.StatusUnauthorized {
			t.Errorf("nobody: %d %s", w.Code, w.Body)
		}
		full := ask(kubeletapi.Full)
		if full.Code >= 500 && full.Code != http.StatusServiceUnavailable {
			t.Errorf("a bug: %d %s", full.Code, full.Body)
		}
		reader := ask(kubeletapi.ReadOnlyPort)
		if reader.Code != full.Code && reader.Code != http.StatusForbidden {
			t.Errorf("a reader: %d, others %d", reader.Code, full.Code)
		}
	})
}
