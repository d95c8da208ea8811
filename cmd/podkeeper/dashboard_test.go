package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// dashboardAgent answers as an agent does with one pod, and notes what it is asked.
func dashboardAgent(t *testing.T) (root string, asked chan string) {
	t.Helper()
	root, asked = t.TempDir(), make(chan string, 100)
	l, err := server.Listen(filepath.Join(root, "podkeeper.sock"), 0)
	if err != nil {
		t.Fatal(err)
	}
	web := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app"}}}}
	waits := func(ctx context.Context, after uint64) error {
		if after > 0 {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	note := func(verb string) func(context.Context, pod.Key) error {
		return func(_ context.Context, key pod.Key) error {
			asked <- verb + " " + key.String()
			return nil
		}
	}
	kubelet := http.NewServeMux()
	kubelet.HandleFunc("GET /stats/summary", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"node":{"nodeName":"n","memory":{"time":"2026-01-01T00:00:00Z","workingSetBytes":4242}},"pods":[]}`)
	})
	kubelet.HandleFunc("GET /containerLogs/", func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.URL.Query().Encode()
		fmt.Fprintln(w, "a line")
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, l, server.Handler(server.Answers{
			State: func(ctx context.Context, after uint64) (server.State, error) {
				return server.State{Revision: 1, NodeName: "n", Online: true, Ready: true, Pods: []server.Pod{{Pod: web}}}, waits(ctx, after)
			},
			Events: func(ctx context.Context, after uint64) (server.Events, error) {
				return server.Events{Revision: 1}, waits(ctx, after)
			},
			Restart: func(ctx context.Context, key pod.Key, _ string) error { return note("restart")(ctx, key) },
			Stop:    note("stop"), Start: note("start"), Kubelet: kubelet,
			Inventory: server.Inventory{Node: func(context.Context) (*v1.Node, error) {
				return &v1.Node{Status: v1.NodeStatus{NodeInfo: v1.NodeSystemInfo{OSImage: "an os"}}}, nil
			}},
		}), slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return root, asked
}

func TestDashboardAsksTheAgent(t *testing.T) {
	root, asked := dashboardAgent(t)
	ctx, cancel := context.WithCancel(context.Background())
	from, to := io.Pipe()
	c := &cli{in: strings.NewReader(""), out: &stream{w: to}, err: &stream{w: io.Discard}, now: time.Now}
	ended := make(chan error, 1)
	go func() {
		cmd := c.rootCommand()
		cmd.SetArgs([]string{"dashboard", "--root-dir", root, "--allow-actions"})
		ended <- cmd.ExecuteContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("dashboard: %v", err)
		}
	})
	link, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, token, _ := strings.Cut(strings.TrimSpace(link), "/#")
	if !strings.HasPrefix(address, "http://127.0.0.1:") {
		t.Errorf("link %q", link)
	}
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	resp, err := client.Post(address+"/login", "text/plain", strings.NewReader(token))
	if err != nil {
		t.Fatal(err)
	}
	key, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("login: %s %v", resp.Status, err)
	}
	ask := func(method, path string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(resp.Cookies()[0])
		req.Header.Set("X-Podkeeper-Key", string(key))
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	told := bufio.NewReader(ask("GET", "/live").Body)
	missing := []string{`"name":"web-n"`, `"memory":4242`, `"system":"an os"`}
	for len(missing) > 0 {
		line, err := told.ReadString('\n')
		if err != nil {
			t.Fatalf("%v; not told: %q", err, missing)
		}
		missing = slices.DeleteFunc(missing, func(part string) bool { return strings.Contains(line, part) })
	}
	for path, want := range map[string]string{
		"/pods/default/web-n/log/app":                               "/containerLogs/default/web-n/app follow=true&tailLines=500",
		"/pods/default/web-n/log/app?previous=true&timestamps=true": "/containerLogs/default/web-n/app previous=true&tailLines=500&timestamps=true",
	} {
		text, err := io.ReadAll(ask("GET", path).Body)
		if got := <-asked; got != want || err != nil || string(text) != "a line\n" {
			t.Errorf("%s asks %q, want %q: %q %v", path, got, want, text, err)
		}
	}
	for _, action := range []string{"restart", "stop", "start"} {
		resp := ask("POST", "/pods/default/web-n/"+action)
		if got := <-asked; resp.StatusCode != http.StatusNoContent || got != action+" default/web-n" {
			t.Errorf("%s: %s, the agent was told %q", action, resp.Status, got)
		}
	}
}

func TestDashboardIsOnlyOnLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0", "::", "192.0.2.1", "localhost", "", "127.0.0.1:80", "::ffff:192.0.2.1"} {
		c := &cli{in: strings.NewReader(""), out: &stream{w: io.Discard}, err: &stream{w: io.Discard}, now: time.Now}
		cmd := c.rootCommand()
		cmd.SetArgs([]string{"dashboard", "--address", address})
		var failed *failure
		if err := cmd.Execute(); !errors.As(err, &failed) || failed.code != exitUsage {
			t.Errorf("--address %q: %v", address, err)
		}
	}
}
