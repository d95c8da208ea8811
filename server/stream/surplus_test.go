package stream_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/moby/spdystream/spdy"

	"github.com/podkeeper/podkeeper/server/stream"
)

// rawSPDY is a client that keeps to no rule but those of SPDY. leave hangs up.
func rawSPDY(t *testing.T, s *server, path, protocol string) (frames *spdy.Framer, leave func()) {
	t.Helper()
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": protocol} {
		req.Header.Set(name, value)
	}
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), req)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	if frames, err = spdy.NewFramer(conn, conn); err != nil {
		t.Fatal(err)
	}
	return frames, func() { conn.Close() }
}

// Whatever streams a client opens, and however it leaves, the server goes on, and
// keeps nothing of it (the server's cleanup looks).
func TestClientOfNoManners(t *testing.T) {
	const v4, forward = "v4.channel.k8s.io", "portforward.k8s.io"
	exec := func(kinds ...string) (list []http.Header) {
		for _, kind := range kinds {
			list = append(list, http.Header{"Streamtype": {kind}})
		}
		return list
	}
	var surplus, halves []http.Header
	for i := range 700 {
		halves = append(halves, http.Header{"Streamtype": {"data"}, "Port": {"80"}, "Requestid": {strconv.Itoa(i)}})
	}
	surplus = exec("error", "stdout")
	for range 60 {
		surplus = append(surplus, exec("stdout", "stdin", "none", "")...)
	}
	for name, test := range map[string]struct {
		path, protocol string
		streams        []http.Header
		wait           bool // for an answer to each, before it leaves
	}{
		"one kind thrice":       {"/exec?command=cat&input=1&output=1", v4, exec("error", "error", "error"), true},
		"too few":               {"/exec?command=cat&input=1&output=1", v4, exec("error"), true},
		"too many":              {"/exec?command=hang&output=1", v4, surplus, true},
		"too many, and away":    {"/exec?command=hang&output=1", v4, surplus, false},
		"half of a connection":  {"/portForward", forward, halves[:1], true},
		"many halves, and away": {"/portForward", forward, halves, false},
		"nonsense":              {"/portForward", forward, []http.Header{{"Port": {"0"}}, {"Port": {"x"}, "Streamtype": {"data"}}, {"Streamtype": {"error"}}}, true},
	} {
		for how, polite := range map[string]bool{"hangs up": false, "says goodbye": true} {
			t.Run(name+", then "+how, func(t *testing.T) {
				s := forwarding(t, echo(t))
				s.cfg = stream.Config{Creation: 300 * time.Millisecond}
				frames, leave := rawSPDY(t, s, test.path, test.protocol)
				defer leave()
				answers := 0
				for i, header := range test.streams {
					if frames.WriteFrame(&spdy.SynStreamFrame{StreamId: spdy.StreamId(2*i + 1), Headers: header}) != nil {
						break // it was thrown out
					}
				}
				for test.wait && answers < len(test.streams) {
					frame, err := frames.ReadFrame()
					if err != nil {
						break
					}
					switch frame.(type) {
					case *spdy.SynReplyFrame, *spdy.RstStreamFrame:
						answers++
					}
				}
				if polite {
					_ = frames.WriteFrame(&spdy.GoAwayFrame{})
				}
			})
		}
	}
}

// One session has so many connections at once. Who asks for one more is told, and has
// it once another has ended.
func TestTooManyConnections(t *testing.T) {
	s := newServer(t)
	dialled, hangUp := make(chan struct{}, stream.MaxForwarded+1), make(chan struct{})
	s.dial = func(ctx context.Context, _ uint16) (net.Conn, error) {
		dialled <- struct{}{}
		select {
		case <-hangUp:
		case <-ctx.Done():
		}
		return nil, errors.New("hung up")
	}
	frames, leave := rawSPDY(t, s, "/portForward", "portforward.k8s.io")
	defer leave()
	connect := func(i int) {
		for at, kind := range []string{"error", "data"} {
			header := http.Header{"Streamtype": {kind}, "Port": {"80"}, "Requestid": {strconv.Itoa(i)}}
			if err := frames.WriteFrame(&spdy.SynStreamFrame{StreamId: spdy.StreamId(4*i + 2*at + 1), Headers: header}); err != nil {
				t.Fatal(err)
			}
		}
	}
	verdict := func() string {
		for {
			frame, err := frames.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if said, ok := frame.(*spdy.DataFrame); ok && len(said.Data) > 0 {
				return string(said.Data)
			}
		}
	}
	for i := range stream.MaxForwarded + 1 {
		connect(i)
	}
	if got, want := verdict(), "error forwarding port 80: too many connections at once"; got != want {
		t.Errorf("one of them was told %q, want %q", got, want)
	}
	for range stream.MaxForwarded {
		<-dialled
	}
	hangUp <- struct{}{}
	if got, want := verdict(), "error forwarding port 80: hung up"; got != want {
		t.Errorf("one that hung up was told %q, want %q", got, want)
	}
	connect(stream.MaxForwarded + 1)
	select {
	case <-dialled:
	case <-time.After(10 * time.Second):
		t.Error("there is no room for another, though one has ended")
	}
}
