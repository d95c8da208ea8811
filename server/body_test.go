package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// endless is a body that goes on until its reader is gone.
type endless struct {
	head io.Reader
	read *atomic.Int64
}

func (e endless) Read(b []byte) (int, error) {
	n, err := e.head.Read(b)
	if err != nil {
		n, err = copy(b, strings.Repeat("x", len(b))), nil
	}
	e.read.Add(int64(n))
	return n, err
}

// No route of the socket takes a body: what is asked for stands in the address alone, and
// one who sends on and on is answered and let go.
func TestBodies(t *testing.T) {
	asked := make(chan string, 100)
	note := func(what string) { asked <- what }
	path := filepath.Join(t.TempDir(), "s")
	l, err := server.Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, l, server.Handler(server.Answers{
			State: func(context.Context, uint64) (server.State, error) {
				note("state")
				return server.State{Revision: 1}, nil
			},
			Events:  func(context.Context, uint64) (server.Events, error) { note("events"); return server.Events{}, nil },
			Restart: func(_ context.Context, key pod.Key, container string) error { note("restart " + container); return nil },
			Stop:    func(_ context.Context, key pod.Key) error { note("stop"); return nil },
			Start:   func(_ context.Context, key pod.Key) error { note("start"); return nil },
			Inventory: server.Inventory{
				Objects: func(_ context.Context, kind pod.ObjectKind, _ bool) (server.Objects, error) {
					note("objects " + string(kind))
					return server.Objects{}, nil
				},
				Images: func(context.Context) (server.Images, error) { note("images"); return server.Images{}, nil },
				Node:   func(context.Context) (*v1.Node, error) { note("node"); return &v1.Node{}, nil },
				Collect: func(_ context.Context, what server.Collection) (server.Collected, error) {
					note(fmt.Sprintf("collect %+v", what))
					return server.Collected{}, nil
				},
				Pull: func(_ context.Context, image string, _ func(server.Progress)) (string, error) {
					note("pull " + image)
					return "id", nil
				},
			},
		}), quiet)
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for request, want := range map[string]string{
		"GET /v1/state": "state", "GET /events": "events", "GET /v1/objects?kind=Secret": "objects Secret",
		"GET /v1/images": "images", "GET /v1/node": "node", "POST /v1/gc?images=true": "collect {Containers:false Images:true All:false DryRun:false}", "POST /v1/images/pull?image=a:1": "pull a:1",
		"POST /v1/pods/n/p/restart?container=app": "restart app", "POST /v1/pods/n/p/stop": "stop", "POST /v1/pods/n/p/start": "start",
	} {
		for kind, head := range map[string]string{
			"application/x-www-form-urlencoded":                "container=other&kind=ConfigMap&image=b:1&containers=true&after=9&",
			"application/x-www-form-urlencoded; charset=short": "container=other&kind=ConfigMap&image=b:1&containers=true&after=9",
			"multipart/form-data; boundary=b":                  "--b\r\nContent-Disposition: form-data; name=\"container\"\r\n\r\n",
		} {
			var read atomic.Int64
			method, target, _ := strings.Cut(request, " ")
			body := io.Reader(endless{strings.NewReader(head), &read})
			if strings.HasSuffix(kind, "short") {
				body = strings.NewReader(head)
			}
			req, err := http.NewRequestWithContext(t.Context(), method, "http://agent"+target, body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", kind)
			// Who goes on sending may learn that nobody listens before what the answer was.
			if resp, err := overSocket(path).Do(req); err == nil {
				resp.Body.Close()
				if resp.StatusCode/100 != 2 {
					t.Errorf("%s with %s: %s", request, kind, resp.Status)
				}
			}
			if got := <-asked; got != want {
				t.Errorf("%s with %s asks for %q, want %q", request, kind, got, want)
			}
			if n := read.Load(); n > 4<<20 {
				t.Errorf("%s: it took %d bytes", request, n)
			}
		}
	}
	if len(asked) > 0 {
		t.Errorf("it was asked more often: %q", <-asked)
	}
}
