package stream

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// opened is a stream that the client opened; replied is closed when it may be written
// to.
type opened struct {
	httpstream.Stream
	replied <-chan struct{}
}

// ready reports, once it is so, that a stream can be written to. It is not where ctx or
// the session ended before: the library would wait for ever then.
func (o opened) ready(ctx context.Context, session httpstream.Connection) bool {
	select {
	case <-o.replied:
	case <-ctx.Done():
		return false
	}
	select {
	case <-session.CloseChan():
		return false
	default:
		return ctx.Err() == nil
	}
}

// upgradeSPDY answers with one of the protocols, the server's first choice first, and
// returns the connection and the streams that the client opens, until ctx ends: nobody
// waits for longer than that with one. conn is nil where the client was told why not.
// k8s.io/cri-streaming has such a receiver, too, which does not let go of streams that
// nobody takes.
func upgradeSPDY(ctx context.Context, w http.ResponseWriter, r *http.Request, protocols ...string) (conn httpstream.Connection, streams <-chan opened, protocol string) {
	protocol, err := httpstream.Handshake(r, w, protocols)
	if err != nil {
		return nil, nil, ""
	}
	incoming := make(chan opened)
	conn = spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
		select {
		case incoming <- opened{s, replied}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return conn, incoming, protocol
}

// serveSPDY is an exec or attach over SPDY.
func (t *talk) serveSPDY(w http.ResponseWriter, r *http.Request, cfg Config) {
	conn, incoming, protocol := upgradeSPDY(t.ctx, w, r,
		remotecommand.StreamProtocolV4Name, remotecommand.StreamProtocolV3Name, remotecommand.StreamProtocolV2Name)
	if conn == nil {
		return
	}
	defer conn.Close()
	conn.SetIdleTimeout(cfg.Idle)
	streams := t.gather(conn, incoming, protocol, cfg.Creation)
	if streams == nil {
		return
	}
	t.pumps.Go(func() { // what is opened besides is nobody's
		for {
			select {
			case one := <-incoming:
				_ = one.Reset()
			case <-conn.CloseChan(): // the client has said goodbye, if not gone
				t.gone()
				return
			case <-t.ctx.Done():
				return
			}
		}
	})
	var sizes chan remotecommand.TerminalSize
	if resize, ok := streams[remotecommand.StreamTypeResize]; ok {
		sizes = make(chan remotecommand.TerminalSize)
		t.pumps.Go(func() { t.readSizes(resize, sizes) })
	}
	code, failed := t.converse(streams[remotecommand.StreamTypeStdin], streams[remotecommand.StreamTypeStdout], streams[remotecommand.StreamTypeStderr], sizes)
	writeVerdict(streams[remotecommand.StreamTypeError], protocol, code, failed)
}

// gather waits for the streams that the request announced, each once; nil where they
// do not come.
func (t *talk) gather(conn httpstream.Connection, incoming <-chan opened, protocol string, within time.Duration) map[string]opened {
	wanted := map[string]bool{
		remotecommand.StreamTypeError: true, remotecommand.StreamTypeStdin: t.opts.Stdin,
		remotecommand.StreamTypeStdout: t.opts.Stdout, remotecommand.StreamTypeStderr: t.opts.Stderr,
		remotecommand.StreamTypeResize: t.opts.TTY && protocol != remotecommand.StreamProtocolV2Name,
	}
	missing := 0
	for _, is := range wanted {
		if is {
			missing++
		}
	}
	expired := time.NewTimer(within)
	defer expired.Stop()
	found := map[string]opened{}
	for missing > 0 {
		select {
		case one := <-incoming:
			kind := one.Headers().Get(remotecommand.StreamType)
			if _, twice := found[kind]; twice || !wanted[kind] {
				_ = one.Reset()
				continue
			}
			found[kind] = one
			missing--
		case <-expired.C:
			return nil
		case <-conn.CloseChan():
			return nil
		case <-t.ctx.Done():
			return nil
		}
	}
	for _, one := range found {
		if !one.ready(t.ctx, conn) {
			return nil
		}
	}
	return found
}

// writeVerdict tells the client how it ended: before v4 in words, and nothing where
// all is well.
func writeVerdict(to io.Writer, protocol string, code int, failed error) {
	status := statusOf(code, failed)
	text := []byte(status.Message)
	if protocol == remotecommand.StreamProtocolV4Name {
		var err error
		if text, err = json.Marshal(status); err != nil {
			return
		}
	}
	if len(text) > 0 {
		_, _ = to.Write(text)
	}
}
