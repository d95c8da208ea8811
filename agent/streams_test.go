package agent_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/stream/streamtest"
)

// secure has the world's agent serve its kubelet API over TLS, and returns what a
// client with full access is configured with.
func (w *world) secure() *rest.Config {
	w.t.Helper()
	const token = "a token of this test"
	tokens := w.path("tokens")
	writeFile(w.t, tokens, fmt.Sprintf("sha256:%x tester full\n", sha256.Sum256([]byte(token))))
	port, err := strconv.Atoi(freePort(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	w.cfg.API.Port, w.cfg.API.Callers.Tokens = port, tokens
	return &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", port), BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
}

// kubectl's own code drives exec, attach and port-forward on the secure port.
func TestStreams(t *testing.T) {
	w := newWorld(t)
	cfg := w.secure()
	w.write("web.yaml", manifest("{name: web}",
		`{name: app, image: "busybox:stable", command: ["sh", "-c", "cd /tmp && echo hello from the pod > index.html && exec httpd -f -p 127.0.0.1:8080"]}`,
		`{name: in, image: "busybox:stable", stdin: true, command: [cat]}`))
	w.start()
	s := w.await("it runs", runs0("web", "app"), runs0("web", "in"))
	uid := string(s.Pods[0].Pod.UID)
	much := make([]byte, 4<<20)
	if _, err := rand.Read(much); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path    string
		command []string
		stdin   []byte
		tty     bool
		out     string
		code    int
	}{
		"input that ends":     {"/exec/default/web/app", []string{"sh", "-c", "cat; echo done"}, []byte("hello\n"), false, "hello\ndone\n", 0},
		"an exit code":        {"/exec/default/web-" + w.cfg.NodeName + "/app", []string{"sh", "-c", "echo a; exit 3"}, nil, false, "a\n", 3},
		"much both ways":      {"/exec/default/web/" + uid + "/app", []string{"cat"}, much, false, string(much), 0},
		"no such command":     {"/exec/default/web/app", []string{"/no/such"}, nil, false, "", 126},
		"a terminal's input":  {"/exec/default/web/app", []string{"sh", "-c", "test -t 0 && read x && echo got $x; stty size; cat; exit 4"}, []byte("word\n"), true, "", 4},
		"a size for terminal": {"/exec/default/web/app", []string{"sh", "-c", "until [ \"$(stty size)\" = '40 100' ]; do sleep 0.05; done"}, nil, true, "", 0},
	} {
		query := url.Values{"command": test.command, "output": {"1"}}
		opts := remotecommand.StreamOptions{Tty: test.tty}
		if test.tty {
			query.Set("tty", "1")
		} else {
			query.Set("error", "1")
			opts.Stderr = io.Discard
		}
		for how := range streamtest.Executors(t, cfg, test.path, query) {
			var out bytes.Buffer
			opts.Stdout = &out
			if test.stdin != nil {
				query.Set("input", "1")
				opts.Stdin = bytes.NewReader(test.stdin)
			}
			if test.tty {
				opts.TerminalSizeQueue = &terminal{size: &remotecommand.TerminalSize{Width: 100, Height: 40}}
			}
			err := streamtest.Executors(t, cfg, test.path, query)[how].StreamWithContext(t.Context(), opts)
			var exit exec.ExitError
			if test.code == 0 && err != nil || test.code != 0 && (!errors.As(err, &exit) || exit.ExitStatus() != test.code) {
				t.Errorf("%s by %s: %v, want exit code %d", name, how, err, test.code)
			}
			switch {
			case test.tty && test.stdin != nil && !strings.Contains(out.String(), "got word"):
				t.Errorf("%s by %s: it said %q", name, how, out.String())
			case !test.tty && name != "no such command" && out.String() != test.out:
				t.Errorf("%s by %s: %d bytes came, want %d", name, how, out.Len(), len(test.out))
			}
		}
	}
	attachTo(t, cfg)
	forwardTo(t, cfg)
	for path, want := range map[string]string{
		"/exec/default/web/none?command=ls&output=1":                "404 container \"none\" not found",
		"/exec/default/none/app?command=ls&output=1":                "404 pod \"none\" not found",
		"/exec/default/web/u2/app?command=ls&output=1":              "404 pod \"web\" not found",
		"/exec/default/web/app?command=ls&output=1":                 "400 bad request: want an upgrade",
		"/run/default/web/app?cmd=cat+/tmp/index.html":              "200 hello from the pod\n",
		"/run/default/web/app?command=sh&command=-c&command=exit+3": "500 command terminated with exit code 3",
	} {
		if got := post(t, cfg, path); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	w.stop()
}

// terminal has one size, for one call.
type terminal struct{ size *remotecommand.TerminalSize }

func (s *terminal) Next() (next *remotecommand.TerminalSize) {
	next, s.size = s.size, nil
	return next
}

func post(t *testing.T, cfg *rest.Config, path string) string {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	resp, err := client.Post(cfg.Host+path, "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

func attachTo(t *testing.T, cfg *rest.Config) {
	for how, executor := range streamtest.Executors(t, cfg, "/attach/default/web/in", url.Values{"input": {"1"}, "output": {"1"}}) {
		input, keyboard := io.Pipe()
		screen, output := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stdout: output})
		}()
		if _, err := io.WriteString(keyboard, "by "+how); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len("by "+how))
		if _, err := io.ReadFull(screen, got); err != nil || string(got) != "by "+how {
			t.Errorf("attached by %s: %q, %v", how, got, err)
		}
		cancel()
		keyboard.Close()
		<-ended
	}
}

func forwardTo(t *testing.T, cfg *rest.Config) {
	for how, dialer := range streamtest.Dialers(t, cfg, "/portForward/default/web") {
		ports, stop := streamtest.Forward(t, dialer, "0:8080", "0:1")
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				got, err := page(t, ports[0].Local)
				if err != nil || got != "hello from the pod\n" {
					t.Errorf("forwarded by %s: %q, %v", how, got, err)
				}
			})
		}
		all.Wait()
		refused, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[1].Local))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := refused.Read(make([]byte, 1)); err == nil {
			t.Errorf("forwarded by %s: a port that nobody listens on answers %d bytes", how, n)
		}
		refused.Close()
		stop()
	}
}

// page asks a port of this machine as a browser would, on a connection of its own.
func page(t *testing.T, port uint16) (string, error) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// A client that goes away leaves no process in the container, and no descriptor in
// the agent.
func TestStreamClientVanishes(t *testing.T) {
	w := newWorld(t)
	cfg := w.secure()
	w.write("web.yaml", manifest("{name: web}", sleeping("app")))
	w.start()
	w.await("it runs", runs0("web", "app"))
	before := sockets(t)
	for how, executor := range streamtest.Executors(t, cfg, "/exec/default/web/app", url.Values{"command": {"sh", "-c", "echo up; sleep 4711; true"}, "output": {"1"}}) {
		ctx, cancel := context.WithCancel(t.Context())
		screen, output := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: output}) }()
		if _, err := io.ReadFull(screen, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-ended
		w.poll("the command "+how+" began has gone", func() bool { return !processRuns("sleep 4711") })
	}
	w.poll("no connection is left", func() bool { return sockets(t) <= before })
	w.stop()
}

func processRuns(command string) bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		data, _ := os.ReadFile(path)
		if strings.TrimRight(strings.ReplaceAll(string(data), "\x00", " "), " ") == command {
			return true
		}
	}
	return false
}

// sockets counts the connections of this process that are established on TCP.
func sockets(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/thread-self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]bool{}
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 9 && f[3] == "01" {
			inodes["socket:["+f[9]+"]"] = true
		}
	}
	n := 0
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && inodes[to] {
			n++
		}
	}
	return n
}

// Who holds all streams of the ports does not keep root from the socket.
func TestStreamsOfTheSocketAreItsOwn(t *testing.T) {
	w := newWorld(t)
	cfg := w.secure()
	w.cfg.API.Streams = 1
	w.write("web.yaml", manifest("{name: web}", shell("app", "echo hello; sleep 3600")))
	w.start()
	w.await("it runs", running("web"))
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	const path = "/containerLogs/default/web/app"
	ofPort := func() (io.ReadCloser, error) {
		resp, err := client.Get(cfg.Host + path + "?follow=true")
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusOK {
			resp.Body.Close()
			return nil, errors.New(resp.Status)
		}
		return resp.Body, nil
	}
	ofSocket := func() (io.ReadCloser, error) {
		return server.NewClient(w.cfg.Socket).Get(t.Context(), path, url.Values{"follow": {"true"}})
	}
	for what, follow := range map[string]func() (io.ReadCloser, error){"the port": ofPort, "the socket": ofSocket} {
		body, err := follow()
		if err != nil {
			t.Fatalf("the one stream of %s: %v", what, err)
		}
		defer body.Close()
		if _, err := io.ReadFull(body, make([]byte, len("hello\n"))); err != nil {
			t.Errorf("the one stream of %s: %v", what, err)
		}
		if more, err := follow(); err == nil {
			more.Close()
			t.Errorf("%s has more streams than one", what)
		} else if text := err.Error(); !strings.Contains(text, "429") && !strings.Contains(text, "too many streams") {
			t.Errorf("a second stream of %s: %v", what, err)
		}
	}
}
