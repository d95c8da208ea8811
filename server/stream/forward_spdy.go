package stream

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream"
)

// maxForwarded is how many connections one client may have at once in one session, and
// how many it may have begun to open.
const maxForwarded = 512

// pair are the streams of one connection, as far as they have come.
type pair struct{ data, verdict *opened }

// serveSPDY is a port-forward over SPDY: two streams for each connection, which bear
// its number and its port.
func (f *forwarder) serveSPDY(w http.ResponseWriter, r *http.Request, cfg Config) {
	conn, incoming, _ := upgradeSPDY(f.ctx, w, r, portforward.ProtocolV1Name)
	if conn == nil {
		return
	}
	defer conn.Close()
	conn.SetIdleTimeout(cfg.Idle)
	halves := map[string]*pair{}
	// Halves that stay alone go together: the first of them is that old, at most twice.
	expired := time.NewTicker(cfg.Creation)
	defer expired.Stop()
	old := map[string]*pair{}
	for {
		select {
		case one := <-incoming:
			f.take(conn, one, halves)
		case <-expired.C:
			for id, half := range old {
				if halves[id] == half {
					half.drop(conn)
					delete(halves, id)
				}
			}
			clear(old)
			for id, half := range halves {
				old[id] = half
			}
		case <-conn.CloseChan():
			return
		case <-f.ctx.Done():
			return
		}
	}
}

// take puts a stream to its other half, and begins what is whole.
func (f *forwarder) take(conn httpstream.Connection, one opened, halves map[string]*pair) {
	port, err := strconv.ParseUint(one.Headers().Get(portforward.PortHeader), 10, 16)
	kind := one.Headers().Get(portforward.StreamType)
	data := kind == portforward.StreamTypeData
	if err != nil || port == 0 || !data && kind != portforward.StreamTypeError {
		_ = one.Reset()
		return
	}
	id := requestID(one, data)
	p := halves[id]
	if p == nil {
		if len(halves) >= maxForwarded {
			_ = one.Reset()
			return
		}
		p = &pair{}
		halves[id] = p
	}
	mine := &p.verdict
	if data {
		mine = &p.data
	}
	if *mine != nil {
		_ = one.Reset()
		return
	}
	*mine = &one
	if p.data != nil && p.verdict != nil {
		delete(halves, id)
		f.conns.Go(func() { f.carry(conn, p, int32(port)) })
	}
}

// requestID is the number of a connection. Clients of old do not tell: theirs is that of
// the first of its two streams, which follow each other.
func requestID(one opened, data bool) string {
	if id := one.Headers().Get(portforward.PortForwardRequestIDHeader); id != "" {
		return id
	}
	if data {
		return "stream " + strconv.Itoa(int(one.Identifier())-2)
	}
	return "stream " + strconv.Itoa(int(one.Identifier()))
}

// carry is one connection, from its beginning to its end.
func (f *forwarder) carry(conn httpstream.Connection, p *pair, port int32) {
	defer conn.RemoveStreams(p.data.Stream, p.verdict.Stream)
	if !p.data.ready(f.ctx, conn) || !p.verdict.ready(f.ctx, conn) {
		return
	}
	if err := f.connect(port, p.data); err != nil {
		_, _ = fmt.Fprintf(p.verdict, "error forwarding port %d: %v", port, err)
		_ = p.data.Reset()
		_ = p.verdict.Reset()
		return
	}
	_ = p.data.Close()
	_ = p.verdict.Close()
}

// drop is the end of one whose other half never came.
func (p *pair) drop(conn httpstream.Connection) {
	for _, half := range []*opened{p.data, p.verdict} {
		if half != nil {
			_ = half.Reset()
			conn.RemoveStreams(half.Stream)
		}
	}
}
