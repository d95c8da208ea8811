package stream

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"slices"

	"golang.org/x/net/websocket"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// tunnelProtocol is SPDY, as bytes in the messages of a WebSocket.
const tunnelProtocol = spdy.HeaderSpdy31 + "+" + portforward.ProtocolV1Name

// serveTunnel answers with a WebSocket, and serves within it as if the client had
// asked for SPDY.
func serveTunnel(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request)) {
	websocket.Server{
		Handshake: func(c *websocket.Config, _ *http.Request) error {
			if !slices.Contains(c.Protocol, tunnelProtocol) {
				return errors.New("no such tunnel")
			}
			c.Protocol = []string{tunnelProtocol}
			return nil
		},
		Handler: func(ws *websocket.Conn) {
			ws.PayloadType = websocket.BinaryFrame
			within := r.Clone(r.Context())
			within.Header = http.Header{
				httpstream.HeaderConnection:      {httpstream.HeaderUpgrade},
				httpstream.HeaderUpgrade:         {spdy.HeaderSpdy31},
				httpstream.HeaderProtocolVersion: {portforward.ProtocolV1Name},
			}
			serve(&tunnelled{conn: ws, header: http.Header{}}, within)
		},
	}.ServeHTTP(w, r)
}

// tunnelled is a response whose connection has been taken over already: what is said
// before that is not sent.
type tunnelled struct {
	conn   net.Conn
	header http.Header
}

func (t *tunnelled) Header() http.Header         { return t.header }
func (t *tunnelled) WriteHeader(int)             {}
func (t *tunnelled) Write(b []byte) (int, error) { return len(b), nil }

// Hijack implements http.Hijacker.
func (t *tunnelled) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return t.conn, bufio.NewReadWriter(bufio.NewReader(t.conn), bufio.NewWriter(t.conn)), nil
}
