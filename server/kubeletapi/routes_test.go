package kubeletapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	summary "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

var quiet = slog.New(slog.DiscardHandler)

// everything are answers for every route.
func everything() kubeletapi.Answers {
	return kubeletapi.Answers{
		Metrics: map[string]http.Handler{"": blank, "/cadvisor": blank, "/resource": blank, "/probes": blank, "/slis": blank},
		Summary: func(context.Context, bool) (summary.Summary, error) {
			return summary.Summary{Node: summary.NodeStats{NodeName: "n"}}, nil
		},
		Pods: podsOf(examplePod()), RunningPods: podsOf(examplePod()),
		Logs:     logOf("hello\n"),
		SyncLoop: func(context.Context) error { return nil },
		Config:   map[string]any{"port": 10250}, About: kubeletapi.About{Version: "v1", Started: time.Now()},
		LogFolder: ".", Profiling: true,
		Exec: streamed, Attach: streamed, PortForward: streamed, Run: streamed,
	}
}

var blank = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// streamed answers with what it was asked about.
func streamed(w http.ResponseWriter, _ *http.Request, t kubeletapi.Target) error {
	_, err := fmt.Fprintf(w, "%+v", t)
	return err
}

func podsOf(pods ...*v1.Pod) func(context.Context) ([]*v1.Pod, error) {
	return func(context.Context) ([]*v1.Pod, error) { return pods, nil }
}

// rows are all routes: what the path of one request is, and who may make it at
// least. Whoever adds a route adds its row; a route without one fails the test.
var rows = map[string]struct {
	path   string // "" is that of the route
	access kubeletapi.Access
}{
	"GET /healthz":          {"", kubeletapi.ReadOnlyPort},
	"GET /healthz/ping":     {"", kubeletapi.ReadOnlyPort},
	"GET /healthz/log":      {"", kubeletapi.ReadOnlyPort},
	"GET /healthz/syncloop": {"", kubeletapi.ReadOnlyPort},
	"GET /stats/summary":    {"", kubeletapi.ReadOnlyPort},
	"GET /pods":             {"", kubeletapi.ReadOnlyPort},
	"GET /runningpods":      {"/runningpods/", kubeletapi.ReadOnly},
	"GET /containerLogs/{namespace}/{pod}/{container}": {"/containerLogs/default/web/app", kubeletapi.ReadOnly},

	"GET /configz":        {"", kubeletapi.Full},
	"GET /statusz":        {"", kubeletapi.Full},
	"GET /logs/{path...}": {"/logs/", kubeletapi.Full},

	"GET /exec/{namespace}/{pod}/{container}":          {"/exec/default/web/app", kubeletapi.Full},
	"GET /exec/{namespace}/{pod}/{uid}/{container}":    {"/exec/default/web/u1/app", kubeletapi.Full},
	"POST /exec/{namespace}/{pod}/{container}":         {"/exec/default/web/app", kubeletapi.Full},
	"POST /exec/{namespace}/{pod}/{uid}/{container}":   {"/exec/default/web/u1/app", kubeletapi.Full},
	"GET /attach/{namespace}/{pod}/{container}":        {"/attach/default/web/app", kubeletapi.Full},
	"GET /attach/{namespace}/{pod}/{uid}/{container}":  {"/attach/default/web/u1/app", kubeletapi.Full},
	"POST /attach/{namespace}/{pod}/{container}":       {"/attach/default/web/app", kubeletapi.Full},
	"POST /attach/{namespace}/{pod}/{uid}/{container}": {"/attach/default/web/u1/app", kubeletapi.Full},
	"GET /portForward/{namespace}/{pod}":               {"/portForward/default/web", kubeletapi.Full},
	"GET /portForward/{namespace}/{pod}/{uid}":         {"/portForward/default/web/u1", kubeletapi.Full},
	"POST /portForward/{namespace}/{pod}":              {"/portForward/default/web", kubeletapi.Full},
	"POST /portForward/{namespace}/{pod}/{uid}":        {"/portForward/default/web/u1", kubeletapi.Full},
	"POST /run/{namespace}/{pod}/{container}":          {"/run/default/web/app", kubeletapi.Full},
	"POST /run/{namespace}/{pod}/{uid}/{container}":    {"/run/default/web/u1/app", kubeletapi.Full},

	"GET /debug/pprof/{profile...}":  {"/debug/pprof/heap", kubeletapi.Full},
	"POST /debug/pprof/{profile...}": {"/debug/pprof/symbol", kubeletapi.Full},
	"GET /metrics":                   {"", kubeletapi.ReadOnlyPort},
	"GET /metrics/cadvisor":          {"", kubeletapi.ReadOnlyPort},
	"GET /metrics/resource":          {"", kubeletapi.ReadOnlyPort},
	"GET /metrics/slis":              {"", kubeletapi.ReadOnlyPort},
	"GET /metrics/probes":            {"", kubeletapi.ReadOnlyPort},
}

// Each route is for whom its row says, and for nobody else.
func TestWhoMay(t *testing.T) {
	levels := map[string]kubeletapi.Access{
		"nobody": 0, "read-only port": kubeletapi.ReadOnlyPort, "read-only": kubeletapi.ReadOnly, "full": kubeletapi.Full,
	}
	for _, pattern := range kubeletapi.Patterns(everything()) {
		row, ok := rows[pattern]
		if !ok {
			t.Errorf("%s has no row here: say who may use it", pattern)
			continue
		}
		method, path, _ := strings.Cut(pattern, " ")
		if row.path != "" {
			path = row.path
		}
		for name, level := range levels {
			h := kubeletapi.Handler(everything(), kubeletapi.NewStreams(1), kubeletapi.Everybody(level), quiet)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			if refused := w.Code == http.StatusForbidden; refused != (level < row.access) || w.Code == http.StatusNotFound {
				t.Errorf("%s by %s: %d %s", pattern, name, w.Code, w.Body)
			}
		}
	}
}

func TestNobodyLearnsWhatThereIs(t *testing.T) {
	nobody := func(*http.Request) (kubeletapi.Access, error) {
		return 0, kubeletapi.Wrong(kubeletapi.ErrUnauthenticated, "Unauthorized")
	}
	h := kubeletapi.Handler(everything(), kubeletapi.NewStreams(1), nobody, quiet)
	for _, path := range []string{"/pods", "/nothing", "/", "/pods/../x"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d, headers %v", path, w.Code, w.Header())
		}
	}
}

func call(t *testing.T, access kubeletapi.Access, a kubeletapi.Answers, method, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h := kubeletapi.Handler(a, kubeletapi.NewStreams(1), kubeletapi.Everybody(access), quiet)
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

// Names in paths are read as they are, with a UID and without.
func TestStreamTargets(t *testing.T) {
	for path, want := range map[string]string{
		"/exec/default/web/app":                 "{Namespace:default Pod:web UID: Container:app}",
		"/exec/default/web/u1/app":              "{Namespace:default Pod:web UID:u1 Container:app}",
		"/exec/default/web/u1/app/":             "{Namespace:default Pod:web UID:u1 Container:app}",
		"/attach/default/web/app?tty=1":         "{Namespace:default Pod:web UID: Container:app}",
		"/portForward/default/web":              "{Namespace:default Pod:web UID: Container:}",
		"/portForward/default/web/u1":           "{Namespace:default Pod:web UID:u1 Container:}",
		"/run/default/web/app?cmd=ls":           "{Namespace:default Pod:web UID: Container:app}",
		"/exec/def%2Fault/web%20x/%7Buid%7D/ap": "{Namespace:def/ault Pod:web x UID:{uid} Container:ap}",
	} {
		if code, got := call(t, kubeletapi.Full, everything(), http.MethodPost, path); code != http.StatusOK || got != want {
			t.Errorf("%s: %d %s, want %s", path, code, got, want)
		}
	}
	for path, want := range map[string]int{
		"/exec/default/web": http.StatusNotFound, "/exec": http.StatusNotFound, "/portForward/default": http.StatusNotFound,
		"/exec/a/b/c/d/e": http.StatusNotFound,
	} {
		if code, got := call(t, kubeletapi.Full, everything(), http.MethodPost, path); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, got, want)
		}
	}
	if code, _ := call(t, kubeletapi.Full, everything(), http.MethodGet, "/run/default/web/app"); code != http.StatusMethodNotAllowed {
		t.Errorf("GET /run: %d", code)
	}
}
