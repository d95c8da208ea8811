package probe_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podkeeper/podkeeper/reconcile/probe"
)

// get returns a check of a server's path.
func get(server *httptest.Server, path string, edits ...func(*v1.HTTPGetAction)) probe.Check {
	address := server.Listener.Addr().(*net.TCPAddr)
	action := &v1.HTTPGetAction{Path: path, Port: intstr.FromInt(address.Port), Scheme: v1.URISchemeHTTP}
	for _, edit := range edits {
		edit(action)
	}
	return probe.Check{Address: address.IP.String(), Handler: v1.ProbeHandler{HTTPGet: action}}
}

func TestHTTPStatus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscanf(r.URL.Path, "/%d", &code)
		w.WriteHeader(code)
		fmt.Fprint(w, "a password")
	}))
	defer server.Close()
	for _, code := range []int{200, 204, 299} {
		diff(t, fmt.Sprint(code), check(t, get(server, fmt.Sprintf("/%d", code))), probe.Result{Outcome: probe.Success})
	}
	for _, code := range []int{300, 304, 399} { // they lead nowhere
		diff(t, fmt.Sprint(code), check(t, get(server, fmt.Sprintf("/%d", code))), probe.Result{Outcome: probe.Success, Warning: true, Reason: "Probe terminated redirects"})
	}
	for _, code := range []int{400, 404, 500, 503} {
		want := probe.Result{Outcome: probe.Failure, Reason: fmt.Sprintf("HTTP probe failed with statuscode: %d", code)}
		diff(t, fmt.Sprint(code), check(t, get(server, fmt.Sprintf("/%d", code))), want)
	}
}

func TestHTTPRequest(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	defer server.Close()
	headers := func(list ...string) func(*v1.HTTPGetAction) {
		return func(a *v1.HTTPGetAction) {
			for i := 0; i < len(list); i += 2 {
				a.HTTPHeaders = append(a.HTTPHeaders, v1.HTTPHeader{Name: list[i], Value: list[i+1]})
			}
		}
	}
	tests := map[string]struct {
		path   string
		edit   func(*v1.HTTPGetAction)
		host   string
		uri    string
		header http.Header
	}{
		"as it is": {
			"/healthz", headers(), server.Listener.Addr().String(), "/healthz",
			http.Header{"User-Agent": {"kube-probe/1.37"}, "Accept": {"*/*"}, "Connection": {"close"}},
		},
		"a query": {
			"/a b?x=1&y=%20", headers(), server.Listener.Addr().String(), "/a%20b?x=1&y=%20",
			http.Header{"User-Agent": {"kube-probe/1.37"}, "Accept": {"*/*"}, "Connection": {"close"}},
		},
		"a path that would name a host": {
			"//elsewhere/x", headers(), server.Listener.Addr().String(), "/x",
			http.Header{"User-Agent": {"kube-probe/1.37"}, "Accept": {"*/*"}, "Connection": {"close"}},
		},
		"headers, some twice": {
			"/", headers("X-Token", "a", "x-token", "b", "User-Agent", "me", "Accept", "text/plain"), server.Listener.Addr().String(), "/",
			http.Header{"User-Agent": {"me"}, "Accept": {"text/plain"}, "X-Token": {"a", "b"}, "Connection": {"close"}},
		},
		"headers that are not to be sent": {
			"/", headers("User-Agent", "", "Accept", ""), server.Listener.Addr().String(), "/",
			http.Header{"Connection": {"close"}},
		},
		"the Host header": {
			"/", headers("Host", "example.com"), "example.com", "/",
			http.Header{"User-Agent": {"kube-probe/1.37"}, "Accept": {"*/*"}, "Connection": {"close"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			diff(t, "result", check(t, get(server, tt.path, tt.edit)), probe.Result{Outcome: probe.Success})
			diff(t, "method", got.Method, "GET")
			diff(t, "host", got.Host, tt.host)
			diff(t, "uri", got.RequestURI, tt.uri)
			diff(t, "header", got.Header, tt.header)
		})
	}
}

func TestHTTPNoProxyIsAsked(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	t.Setenv("HTTP_PROXY", server.URL)
	t.Setenv("http_proxy", server.URL)
	l, _ := listen(t)
	l.Close()
	c := get(server, "/")
	c.Address, c.Timeout = "192.0.2.1", 50*time.Millisecond // nobody's
	failedAs(t, check(t, c), `Get "http://192.0.2.1:`)
}

func TestHTTPRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was followed to another host") }))
	defer elsewhere.Close()
	away := strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	mux.Handle("/there", http.RedirectHandler("/ok", http.StatusFound))
	mux.HandleFunc("/ok", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/bad", http.RedirectHandler("/teapot", http.StatusMovedPermanently))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.Handle("/away", http.RedirectHandler(away, http.StatusFound))
	server := httptest.NewServer(mux)
	defer server.Close()
	diff(t, "to what is well", check(t, get(server, "/there")), probe.Result{Outcome: probe.Success})
	failedAs(t, check(t, get(server, "/bad")), "HTTP probe failed with statuscode: 418")
	failedAs(t, check(t, get(server, "/loop")), "stopped after 10 redirects")
	diff(t, "to another host", check(t, get(server, "/away")), probe.Result{Outcome: probe.Success, Warning: true, Reason: "Probe terminated redirects"})
}

func TestHTTPSIsNotVerified(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	secure := func(a *v1.HTTPGetAction) { a.Scheme = v1.URISchemeHTTPS }
	diff(t, "result", check(t, get(server, "/", secure)), probe.Result{Outcome: probe.Success})
	failedAs(t, check(t, get(server, "/")), "statuscode: 400") // as Go answers plain HTTP
}

func TestHTTP2InTheClear(t *testing.T) {
	proto := ""
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proto = r.Proto }))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	h2c := func(a *v1.HTTPGetAction) { p := v1.HTTPProtocolHTTP2; a.Protocol = &p }
	diff(t, "result", check(t, get(server, "/", h2c)), probe.Result{Outcome: probe.Success})
	diff(t, "protocol", proto, "HTTP/2.0")
	if got := check(t, get(server, "/")); got.Outcome != probe.Failure {
		t.Errorf("HTTP/1 to a server of HTTP/2: %+v", got)
	}
}

func TestHTTPTimeout(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			fmt.Fprint(w, "begun")
			w.(http.Flusher).Flush()
		}
		<-release
	}))
	defer server.Close()
	defer close(release)
	for _, path := range []string{"/", "/body"} {
		c := get(server, path)
		c.Timeout = 50 * time.Millisecond
		failedAs(t, check(t, c), "Client.Timeout")
	}
}

// A body without end must not be read to its end.
func TestHTTPBodyIsReadUpToALimit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, strings.Repeat("x", 1<<10)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	diff(t, "result", check(t, get(server, "/")), probe.Result{Outcome: probe.Success})
}

func TestHTTPChecksLeaveNoDescriptor(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "well") })
	plain := httptest.NewServer(handler)
	defer plain.Close()
	clear := httptest.NewUnstartedServer(handler)
	clear.Config.Protocols = new(http.Protocols)
	clear.Config.Protocols.SetUnencryptedHTTP2(true)
	clear.Start()
	defer clear.Close()
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.TLS = &tls.Config{}
	secure.StartTLS()
	defer secure.Close()
	h2 := v1.HTTPProtocolHTTP2
	checks := map[string]probe.Check{
		"http":  get(plain, "/"),
		"h2c":   get(clear, "/", func(a *v1.HTTPGetAction) { a.Protocol = &h2 }),
		"https": get(secure, "/", func(a *v1.HTTPGetAction) { a.Scheme = v1.URISchemeHTTPS }),
	}
	checker := probe.NewChecker(nil)
	for name, c := range checks {
		t.Run(name, func(t *testing.T) {
			c.Timeout = 5 * time.Second
			fds, routines := descriptors(t), runtime.NumGoroutine()
			for range 50 {
				if got := checker.Check(context.Background(), c); got.Outcome != probe.Success {
					t.Fatalf("%+v", got)
				}
			}
			settles(t, "descriptors", func() bool { return descriptors(t) <= fds+2 })
			settles(t, "goroutines", func() bool { return runtime.NumGoroutine() <= routines+4 })
		})
	}
}

// settles waits for what the server's side does in its own time.
func settles(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !done(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s pile up", what)
		}
	}
}

// The request of a hook tells who asks, takes every answer, and goes without TLS
// to a server that has none.
func TestHookRequest(t *testing.T) {
	var agent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		w.WriteHeader(500)
	}))
	defer server.Close()
	for _, scheme := range []v1.URIScheme{v1.URISchemeHTTP, v1.URISchemeHTTPS} {
		agent = ""
		asked := get(server, "/hook", func(a *v1.HTTPGetAction) { a.Scheme = scheme })
		code, err := probe.NewChecker(nil).Get(context.Background(), asked)
		if code != 500 || err != nil || agent != "kube-lifecycle/1.37" {
			t.Errorf("%s: status %d, %v, agent %q", scheme, code, err, agent)
		}
	}
	server.Close()
	if _, err := probe.NewChecker(nil).Get(context.Background(), get(server, "/hook")); err == nil {
		t.Error("a server that is gone is no error")
	}
}
