package kubeletapi_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// pipes is a listener whose connections are pipes, so that time is the bubble's. At
// the end of a bubble nobody may be left who waits for anything (law 10).
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial() net.Conn {
	client, srv := net.Pipe()
	p.conns <- srv
	return client
}

// within serves answers in a bubble and lets f be a client.
func within(t *testing.T, a kubeletapi.Answers, streams int, f func(p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		h := kubeletapi.Handler(a, kubeletapi.NewStreams(streams), kubeletapi.Everybody(kubeletapi.Full), quiet)
		go func() { ended <- server.Serve(ctx, p, h, quiet) }()
		f(p)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// status reads the status of an answer, 0 where the connection was cut without one.
func status(t *testing.T, conn net.Conn) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

// sendForever sends the same again and again until the other side has enough, and
// returns how many bytes that took.
func sendForever(conn net.Conn, text string, pause time.Duration) (sent int) {
	for {
		n, err := io.WriteString(conn, text)
		sent += n
		if err != nil {
			return sent
		}
		time.Sleep(pause)
	}
}

func TestClientsThatSendWithoutEnd(t *testing.T) {
	for name, c := range map[string]struct {
		head, again string
		pause       time.Duration
		most        int // bytes
		within      time.Duration
		want        int // status; 0 is none
	}{
		"nothing at all":   {"", "", time.Second, 0, 11 * time.Second, 0},
		"a slow header":    {"GET /pods HTTP/1.1\r\nHost: x\r\nA: ", "a", time.Second, 100, 11 * time.Second, 0},
		"a huge header":    {"GET /pods HTTP/1.1\r\nHost: x\r\nA: ", strings.Repeat("a", 1<<10), 0, 64 << 10, time.Second, 431},
		"a huge path":      {"GET /", strings.Repeat("a", 1<<10), 0, 64 << 10, time.Second, 431},
		"an endless body":  {"POST /debug/pprof/symbol HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "400\r\n" + strings.Repeat("a", 1<<10) + "\r\n", 0, 1 << 20, 2 * time.Second, 413},
		"a slow body":      {"POST /debug/pprof/symbol HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", time.Second, 1 << 10, 62 * time.Second, 400},
		"an unread body":   {"GET /pods HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "400\r\n" + strings.Repeat("a", 1<<10) + "\r\n", 0, 1 << 20, 2 * time.Second, 200},
		"a slow one of it": {"GET /pods HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n", time.Second, 1 << 10, 62 * time.Second, 200},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, everything(), 1, func(p *pipes) {
				conn := p.dial()
				defer conn.Close()
				began := time.Now()
				got := make(chan int, 1)
				go func() { got <- status(t, conn) }()
				if c.head != "" {
					if _, err := io.WriteString(conn, c.head); err != nil {
						t.Error(err)
					}
				}
				var sent int
				if c.again != "" {
					sent = sendForever(conn, c.again, c.pause)
				}
				code := <-got
				took := time.Since(began)
				if sent > c.most || took > c.within || code != c.want {
					t.Errorf("status %d after %d bytes and %s, want %d after %d and %s", code, sent, took, c.want, c.most, c.within)
				}
			})
		})
	}
}

// bigFile are answers with a file that takes long to send, big in the log folder.
func bigFile(t *testing.T) kubeletapi.Answers {
	t.Helper()
	a := everything()
	a.LogFolder = t.TempDir()
	if err := os.Truncate(write(t, a.LogFolder, "big", nil), 1<<40); err != nil {
		t.Fatal(err)
	}
	return a
}

const getBig = "GET /logs/big HTTP/1.1\r\nHost: x\r\n\r\n"

// ask sends a request, and reads the first line of the answer.
func ask(t *testing.T, p *pipes, request string) (net.Conn, string) {
	t.Helper()
	conn := p.dial()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Error(err)
	}
	line := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, line); err != nil {
		t.Error(err)
	}
	return conn, string(line)
}

// A client that does not read what a stream sends holds it for a minute; one that
// reads slowly gets it all.
func TestClientsThatDoNotRead(t *testing.T) {
	within(t, bigFile(t), 1, func(p *pipes) {
		slow, line := ask(t, p, getBig)
		if line != "HTTP/1.1 200" {
			t.Fatal(line)
		}
		for range 10 { // minutes
			time.Sleep(50 * time.Second)
			if _, err := io.ReadFull(slow, make([]byte, 64<<10)); err != nil {
				t.Fatalf("a slow client is cut off: %v", err)
			}
		}
		time.Sleep(2 * time.Minute)
		if n, err := io.Copy(io.Discard, slow); n > 128<<10 || err != nil {
			t.Errorf("a client that read nothing for two minutes got %d bytes more, %v", n, err)
		}
		synctest.Wait()
		// Its place is free again.
		next, line := ask(t, p, getBig)
		if line != "HTTP/1.1 200" {
			t.Error(line)
		}
		next.Close()
	})
}

// There are as many streams as there may be; others are told at once, and what is no
// stream is answered.
func TestTooManyStreams(t *testing.T) {
	within(t, bigFile(t), 2, func(p *pipes) {
		first, _ := ask(t, p, getBig)
		second, _ := ask(t, p, getBig)
		third, line := ask(t, p, getBig)
		if line != "HTTP/1.1 429" {
			t.Errorf("the third: %s", line)
		}
		other, line := ask(t, p, "GET /pods HTTP/1.1\r\nHost: x\r\n\r\n")
		if line != "HTTP/1.1 200" {
			t.Errorf("no stream: %s", line)
		}
		first.Close() // vanishes
		synctest.Wait()
		fourth, line := ask(t, p, getBig)
		if line != "HTTP/1.1 200" {
			t.Errorf("after one is gone: %s", line)
		}
		for _, c := range []net.Conn{second, third, other, fourth} {
			c.Close()
		}
	})
}

// The end of the agent ends streams, whose clients go on reading.
func TestTheEndEndsStreams(t *testing.T) {
	var read int64
	var failed error
	within(t, bigFile(t), 1, func(p *pipes) {
		conn, _ := ask(t, p, getBig)
		go func() { read, failed = io.Copy(io.Discard, conn) }()
	})
	if failed != nil || read >= 1<<40 {
		t.Errorf("read %d bytes, %v", read, failed)
	}
}
