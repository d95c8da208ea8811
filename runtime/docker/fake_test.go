package docker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

// script is an engine on a socket of its own, whose answers a test writes. It is
// for what a real engine cannot be made to do: lose answers, hang, be new.
type script struct {
	*httptest.Server
	Host string
	// API is the newest version that it knows.
	API string

	mu    sync.Mutex
	calls []string // "METHOD /path?query", without the version
	body  []byte   // of the last request that had one
	// answers by "METHOD /path"; the first is used up, the last one stays.
	answers map[string][]answer
}

// answer writes a response. One that panics with http.ErrAbortHandler loses it.
type answer func(http.ResponseWriter, *http.Request)

func newScript(t *testing.T, answers map[string][]answer) *script {
	t.Helper()
	s := &script{answers: answers, API: "1.41"}
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Server.Listener.Close()
	s.Server.Listener = listener
	s.Server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.Server.Start()
	t.Cleanup(s.Server.CloseClientConnections)
	t.Cleanup(s.Server.Close)
	s.Host = "unix://" + filepath.Join(dir, "s")
	return s
}

func (s *script) serve(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	path := req.URL.Path
	if strings.HasPrefix(path, "/v") && !strings.HasPrefix(path, "/version") {
		path = path[strings.IndexByte(path[1:], '/')+1:]
	}
	s.mu.Lock()
	w.Header().Set("Api-Version", s.API)
	key := req.Method + " " + path
	call := key
	if req.URL.RawQuery != "" {
		call += "?" + req.URL.RawQuery
	}
	s.calls = append(s.calls, call)
	if len(body) > 0 {
		s.body = body
	}
	var next answer
	if list := s.answers[key]; len(list) > 0 {
		next = list[0]
		if len(list) > 1 {
			s.answers[key] = list[1:]
		}
	}
	s.mu.Unlock()
	switch {
	case next != nil:
		next(w, req)
	case path == "/_ping":
	case path == "/version":
		fmt.Fprint(w, `{"Arch": "amd64"}`)
	default:
		status(http.StatusNotImplemented, "not in the script: "+key)(w, req)
	}
}

// Calls returns what was asked since the connection was made.
func (s *script) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(call string) bool {
		return call == "HEAD /_ping" || call == "GET /version"
	})
}

func (s *script) Body() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body
}

func (s *script) Runtime(t *testing.T, cfg docker.Config) *docker.Runtime {
	t.Helper()
	cfg.Host, cfg.RootDir = s.Host, "/r"
	r, err := docker.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func status(code int, message string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if code >= 300 && code != http.StatusNotModified {
			json.NewEncoder(w).Encode(map[string]string{"message": message})
		} else {
			io.WriteString(w, message)
		}
	}
}

// lose does not answer: the connection ends.
func lose(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// hang answers when nobody waits any more.
func hang(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }

// inspects answers with a container of ours as identified, edited by change.
func inspects(t *testing.T, id runtime.Identity, change string) answer {
	data, err := json.Marshal(inspected(t, id, change))
	if err != nil {
		t.Fatal(err)
	}
	return status(http.StatusOK, string(data))
}

func identity(name string) runtime.Identity {
	id := runtime.Identity{
		Key:     pod.Key{Namespace: "default", Name: "web-node"},
		UID:     types.UID("11111111-2222-5333-8444-555555555555"),
		Source:  pod.FileSource,
		Name:    name,
		Attempt: 3,
		PodHash: pod.Hash{Version: 1, Digest: "aaaa"},
		Grace:   30 * time.Second,
	}
	if name != runtime.SandboxName {
		id.ContainerHash = pod.Hash{Version: 1, Digest: "bbbb"}
		id.Sandbox = runtime.SandboxRef{ID: "5a", Start: "2026-01-01T00:00:00Z"}
	}
	return id
}
