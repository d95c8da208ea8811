package stream_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/podkeeper/podkeeper/server/stream"
	"github.com/podkeeper/podkeeper/server/stream/streamtest"
)

// echo answers what it was sent, once that has ended, on a listener of its own.
func echo(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return l
}

// forwarding serves port 80 as l, and refuses all others.
func forwarding(t *testing.T, l net.Listener) *server {
	s := newServer(t)
	s.dial = func(ctx context.Context, port uint16) (net.Conn, error) {
		if port != 80 {
			return nil, fmt.Errorf("port %d: connection refused", port)
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Addr().String())
	}
	return s
}

// exchange sends all, ends its half, and returns what comes back.
func exchange(port uint16, send []byte) ([]byte, error) {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	go func() {
		_, _ = conn.Write(send)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	got := make([]byte, len(send))
	n, err := io.ReadFull(conn, got)
	return got[:n], err
}

func TestPortForward(t *testing.T) {
	s := forwarding(t, echo(t))
	much := make([]byte, 2<<20)
	if _, err := rand.Read(much); err != nil {
		t.Fatal(err)
	}
	for how, dialer := range streamtest.Dialers(t, s.client(), "/portForward") {
		t.Run(how, func(t *testing.T) {
			ports, stop := streamtest.Forward(t, dialer, "0:80", "0:81")
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					if got, err := exchange(ports[0].Local, much); err != nil || !bytes.Equal(got, much) {
						t.Errorf("%d bytes came back, %v", len(got), err)
					}
				})
			}
			all.Wait()
			if got, err := exchange(ports[1].Local, []byte("x")); err == nil {
				t.Errorf("a port that refuses answers %q", got)
			}
			stop()
		})
	}
}

// A client that goes away ends the connections in the pod, however these behave.
func TestForwardingClientVanishes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := forwarding(t, l)
	for how, dialer := range streamtest.Dialers(t, s.client(), "/portForward") {
		ports, stop := streamtest.Forward(t, dialer, "0:80")
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
		if err != nil {
			t.Fatal(err)
		}
		inPod, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		stop()
		_ = inPod.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := inPod.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the connection in the pod: %v, want its end", how, err)
		}
		inPod.Close()
		conn.Close()
	}
}

// The older WebSocket protocol has two channels for each port of the query, of which
// each begins with the port.
func TestPortForwardV4(t *testing.T) {
	s := forwarding(t, echo(t))
	ws := dialWebSocket(t, s, "/portForward?port=80&port=81", "v4.channel.k8s.io")
	defer ws.Close()
	got := map[byte]string{}
	for !strings.HasPrefix(got[0], "P\x00hello") || !strings.Contains(got[3], "refused") {
		var frame []byte
		if err := websocket.Message.Receive(ws, &frame); err != nil {
			t.Fatalf("%v, after %q", err, got)
		}
		if got[frame[0]] == "" && frame[0] == 0 {
			if err := websocket.Message.Send(ws, []byte("\x00hello")); err != nil {
				t.Fatal(err)
			}
		}
		got[frame[0]] += string(frame[1:])
	}
}

func dialWebSocket(t *testing.T, s *server, path string, protocols ...string) *websocket.Conn {
	t.Helper()
	cfg, err := websocket.NewConfig("wss"+strings.TrimPrefix(s.URL, "https")+path, s.URL)
	if err != nil {
		t.Fatal(err)
	}
	cfg.TlsConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	cfg.Protocol = protocols
	ws, err := cfg.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

// What cannot become a stream is answered with its status, and never with what was
// in the request.
func TestBrokenUpgrades(t *testing.T) {
	s := forwarding(t, echo(t))
	spdy := map[string]string{"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
	web := map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
	and := func(m map[string]string, name, value string) map[string]string {
		all := map[string]string{name: value}
		for k, v := range m {
			all[k] = v
		}
		return all
	}
	for name, test := range map[string]struct {
		path    string
		headers map[string]string
		status  int
	}{
		"no upgrade":                {"/exec?command=cat&output=1", nil, 400},
		"another upgrade":           {"/exec?command=cat&output=1", map[string]string{"Connection": "Upgrade", "Upgrade": "h2c"}, 400},
		"no command":                {"/exec?output=1", spdy, 400},
		"no streams":                {"/exec?command=cat", spdy, 400},
		"streams that are 0":        {"/exec?command=cat&output=0", spdy, 400},
		"SPDY without a protocol":   {"/exec?command=cat&output=1", spdy, 400},
		"SPDY of another protocol":  {"/exec?command=cat&output=1", and(spdy, "X-Stream-Protocol-Version", "v9.channel.k8s.io"), 403},
		"forward by nothing":        {"/portForward", nil, 400},
		"forward by SPDY of nobody": {"/portForward", and(spdy, "X-Stream-Protocol-Version", "x"), 403},
		"WebSocket without ports":   {"/portForward", web, 400},
		"WebSocket and no port":     {"/portForward?port=0", web, 400},
		"WebSocket of another":      {"/exec?command=cat&output=1", and(web, "Sec-WebSocket-Protocol", "v9.channel.k8s.io"), 403},
		"WebSocket of a page":       {"/exec?command=cat&output=1", and(web, "Origin", "https://evil.example"), 400},
		"tunnel of another":         {"/portForward", and(web, "Sec-WebSocket-Protocol", "SPDY/3.1+other.k8s.io"), 403},
		"v5 and no key":             {"/exec?command=cat&output=1", map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Protocol": "v5.channel.k8s.io"}, 400},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer s3cr3t")
		for k, v := range test.headers {
			req.Header.Set(k, v)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != test.status || strings.Contains(string(body), "s3cr3t") {
			t.Errorf("%s: %d %s, want %d", name, resp.StatusCode, body, test.status)
		}
	}
}

func TestRun(t *testing.T) {
	s := newServer(t)
	for query, want := range map[string]struct {
		status int
		body   string
	}{
		"cmd=ls":                     {200, "ls\n"},
		"command=ls":                 {200, "ls\n"},
		"cmd=ls+-l%20%20/":           {500, "ls|-l|/\ncommand terminated with exit code 2\n"},
		"command=sh&command=-c+true": {500, "sh|-c true\ncommand terminated with exit code 1\n"},
		"cmd=":                       {400, "bad request: the parameter cmd is missing\n"},
		"":                           {400, "bad request: the parameter cmd is missing\n"},
	} {
		resp, err := s.Client().Post(s.URL+"/run?"+query, "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want.status || string(body) != want.body {
			t.Errorf("%s: %d %q, want %d %q", query, resp.StatusCode, body, want.status, want.body)
		}
	}
}

// A connection over which nothing goes ends.
func TestIdle(t *testing.T) {
	s := newServer(t)
	s.cfg = stream.Config{Idle: 200 * time.Millisecond, Creation: 200 * time.Millisecond}
	for how, executor := range s.executors(t, "/exec", ask("hang")) {
		_ = executor.StreamWithContext(t.Context(), streamOptions())
		if err := <-s.ended; err == nil {
			t.Errorf("%s: the command was not told", how)
		}
	}
}
