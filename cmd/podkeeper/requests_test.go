package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podkeeper/podkeeper/server"
)

// A command asks the agent for each thing once. Those that follow or have somebody act
// ask for how that went.
func TestCommandsAskOnce(t *testing.T) {
	const state, events, objects, images, node = "GET /v1/state", "GET /events", "GET /v1/objects", "GET /v1/images", "GET /v1/node"
	for command, want := range map[string][]string{
		"get pods":                          {state},
		"get pods web api -o json":          {state},
		"get pods -l app=web -o wide":       {state},
		"get containers":                    {state},
		"get containers web/app":            {state},
		"get volumes":                       {state},
		"get sources":                       {state},
		"get configmaps":                    {objects},
		"get configmaps conf -o yaml":       {objects},
		"get secrets":                       {objects},
		"get pvc -o wide":                   {objects},
		"get images":                        {images},
		"get node":                          {node},
		"get events":                        {events},
		"get pods,cm":                       {state, objects},
		"events --for web":                  {events},
		"describe pod web":                  {state, events},
		"describe pod web api":              {state, events},
		"describe cm conf":                  {objects},
		"describe secret key":               {objects},
		"describe pvc data":                 {objects},
		"describe volume web/conf":          {state},
		"describe node":                     {node, state, events},
		"describe node/n1":                  {node, state, events},
		"top pods":                          {state, "GET /stats/summary"},
		"top node":                          {"GET /stats/summary", node},
		"logs web":                          {state, "GET /containerLogs/default/web-n1/app"},
		"plan":                              {state},
		"version":                           {state},
		"images ls":                         {images},
		"images pull busybox":               {"POST /v1/images/pull"},
		"images gc --dry-run":               {"POST /v1/gc"},
		"gc":                                {"POST /v1/gc"},
		"restart web":                       {state, "POST /v1/pods/default/web-n1/restart"},
		"start web":                         {state, "POST /v1/pods/default/web-n1/start"},
		"stop web --wait=false":             {state, "POST /v1/pods/default/web-n1/stop"},
		"wait pod web --for=jsonpath=.kind": {state},
		"validate none.yaml":                nil,
		"--help":                            nil,
		"__complete get pods ":              {state},
		"__complete describe secret ":       {objects},
	} {
		t.Run(command, func(t *testing.T) {
			asked, said := ask(t, strings.Split(command, " "))
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s\nit says: %s", diff, said)
			}
		})
	}
}

// ask runs a command against the agent of get_kinds.txtar, and returns its requests and
// what it said.
func ask(t *testing.T, args []string) (asked []string, said string) {
	t.Helper()
	var mu sync.Mutex
	path := serveStock(t, func(answers http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked = append(asked, r.Method+" "+r.URL.Path)
			mu.Unlock()
			answers.ServeHTTP(w, r)
		})
	})
	var out bytes.Buffer
	c := standing(false)
	c.out, c.err, c.in = &stream{w: &out}, &stream{w: &out}, strings.NewReader("")
	begin := 0
	if strings.HasPrefix(args[0], "__") {
		begin = 1 // the flags of what is completed
	}
	c.main(append(append(append([]string{}, args[:begin]...), "--socket", path), args[begin:]...))
	mu.Lock()
	defer mu.Unlock()
	return asked, out.String()
}

// An agent that ends while a log is followed ends that: what was written is there, and
// what to do next is said.
func TestLogThatBreaksOff(t *testing.T) {
	path := serveStock(t, func(answers http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/containerLogs/") {
				answers.ServeHTTP(w, r)
				return
			}
			io.WriteString(w, "one\n")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
	})
	for _, args := range [][]string{{"logs", "-f", "web"}, {"logs", "-f", "-l", "app=web"}} {
		var out, said bytes.Buffer
		c := standing(false)
		c.out, c.err, c.in = &stream{w: &out}, &stream{w: &said}, strings.NewReader("")
		code := c.main(append(args, "--socket", path))
		if code != exitNoAgent || !strings.HasPrefix(out.String(), "one\n") || !strings.Contains(said.String(), "broke off") || !strings.Contains(said.String(), "--since-time") {
			t.Errorf("%v: exit code %d, %q, %q", args, code, out.String(), said.String())
		}
	}
}

// serveStock serves the agent of get_kinds.txtar, as wrap has it, and returns its socket.
func serveStock(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	agent := &stateServer{changed: make(chan struct{}), parked: make(chan struct{}, 100), pages: map[string]page{
		"/stats/summary": {text: `{"node": {"nodeName": "n1"}, "pods": []}`}, "/containerLogs/default/web-n1/app": {text: "line\n"},
	}}
	archive, err := txtar.ParseFile("testdata/get_kinds.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		into := map[string]any{"state.json": &agent.state, "events.json": &agent.events, "stock.json": &agent.stock}[f.Name]
		if into == nil {
			continue
		}
		if err := json.Unmarshal(f.Data, into); err != nil {
			t.Fatal(err)
		}
	}
	agent.state.Revision = 1
	path := filepath.Join(t.TempDir(), "s")
	listener, err := server.Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		_ = server.Serve(t.Context(), listener, wrap(agent.handler()), slog.New(slog.DiscardHandler))
	})
	t.Cleanup(served.Wait)
	return path
}
