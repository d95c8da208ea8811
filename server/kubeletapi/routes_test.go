package kubeletapi_test

import (
	"context"
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
		Metrics: map[string]http.Handler{"": blank, "/cadvisor": blank, "/resource": blank, "/probes": blank},
		Summary: func(context.Context, bool) (summary.Summary, error) {
			return summary.Summary{Node: summary.NodeStats{NodeName: "n"}}, nil
		},
		Pods: podsOf(examplePod()), RunningPods: podsOf(examplePod()),
		SyncLoop: func(context.Context) error { return nil },
		Config:   map[string]any{"port": 10250}, About: kubeletapi.About{Version: "v1", Started: time.Now()},
		LogFolder: ".", Profiling: true,
	}
}

var blank = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

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
	"GET /configz":          {"", kubeletapi.Full},
	"GET /statusz":          {"", kubeletapi.Full},
	"GET /logs/{path...}":   {"/logs/", kubeletapi.ReadOnly},

	"GET /debug/pprof/{profile...}":  {"/debug/pprof/heap", kubeletapi.Full},
	"POST /debug/pprof/{profile...}": {"/debug/pprof/symbol", kubeletapi.Full},
	"GET /metrics":                   {"", kubeletapi.ReadOnlyPort},
	"GET /metrics/cadvisor":          {"", kubeletapi.ReadOnlyPort},
	"GET /metrics/resource":          {"", kubeletapi.ReadOnlyPort},
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
