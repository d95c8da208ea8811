package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// Dial connects to a port of the pod.
type Dial func(ctx context.Context, port uint16) (net.Conn, error)

// PortForward connects the client to ports of a pod, as many times as it asks for,
// until the client goes away. On an error nothing was sent.
func PortForward(w http.ResponseWriter, r *http.Request, cfg Config, dial Dial) error {
	if err := checkUpgrade(r); err != nil {
		return err
	}
	tunnel := wsstream.IsWebSocketRequestWithTunnelingProtocol(r)
	opts := &portforward.V4Options{}
	if !tunnel { // within a tunnel each stream says its port
		var err error
		if opts, err = portforward.NewV4Options(r); err != nil {
			return fmt.Errorf("%w: %w", ErrBadRequest, err)
		}
	}
	u, r, end := newUpgrade(w, r)
	f := forwarder{ctx: u.ctx, dial: dial, slots: make(chan struct{}, maxForwarded)}
	defer f.wait()
	defer end()
	cfg = cfg.complete()
	switch {
	case tunnel:
		serveTunnel(u, r, func(w http.ResponseWriter, r *http.Request) { f.serveSPDY(w, r, cfg) })
	case wsstream.IsWebSocketRequest(r):
		portforward.ServePortForward(u, r, &f, "", "", opts, cfg.Idle, cfg.Creation, []string{portforward.ProtocolV1Name})
	default:
		f.serveSPDY(u, r, cfg)
	}
	return nil
}

// forwarder is one port-forward of any number of connections.
type forwarder struct {
	ctx   context.Context
	dial  Dial
	slots chan struct{} // holds one for each connection

	conns sync.WaitGroup
	mu    sync.Mutex
	over  bool // no more begin: those that are called late find this
}

func (f *forwarder) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.conns.Add(1)
	}
	return !f.over
}

func (f *forwarder) wait() {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	f.conns.Wait()
}

// PortForward implements portforward.PortForwarder.
func (f *forwarder) PortForward(_ context.Context, _, _ string, port int32, client io.ReadWriteCloser) error {
	if !f.begin() {
		return net.ErrClosed
	}
	defer f.conns.Done()
	return f.connect(port, client)
}

// connect is one connection. It returns when the pod has said all, or ctx ends; the
// client's half may go on until its connection ends.
func (f *forwarder) connect(port int32, client io.ReadWriter) error {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		return errTooMany
	}
	conn, err := f.dial(f.ctx, uint16(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(f.ctx, func() { conn.Close() })()
	f.conns.Go(func() {
		// That it cannot be written, the other direction tells.
		if _, err := io.Copy(conn, client); err == nil {
			_ = closeWrite(conn)
		}
	})
	if _, err := io.Copy(client, conn); err != nil && f.ctx.Err() == nil {
		return fmt.Errorf("copy from the port: %w", err)
	}
	return nil
}

var errTooMany = errors.New("too many connections at once")
