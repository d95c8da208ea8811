package stream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/exec"

	"github.com/podkeeper/podkeeper/runtime"
)

// remote upgrades the connection and has act talk over it. On an error nothing was
// sent.
func remote(w http.ResponseWriter, r *http.Request, cfg Config, act func(context.Context, runtime.Streams) (int, error)) error {
	opts, err := optionsOf(r.URL.Query())
	if err != nil {
		return err
	}
	if err := checkUpgrade(r); err != nil {
		return err
	}
	u, r, end := newUpgrade(w, r)
	t := talk{ctx: u.ctx, gone: u.cancel, opts: opts, act: act}
	// The pumps end with the connection.
	defer t.pumps.Wait()
	defer end()
	cfg = cfg.complete()
	switch {
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(r):
		t.serveV5(u, r, cfg)
		return nil
	case !wsstream.IsWebSocketRequest(r):
		t.serveSPDY(u, r, cfg)
		return nil
	}
	remotecommand.ServeExec(u, r, &t, "", "", "", nil, &opts, cfg.Idle, cfg.Creation, remotecommand.SupportedStreamingProtocols)
	return nil
}

// talk is one exec or attach.
type talk struct {
	ctx   context.Context
	gone  context.CancelFunc // ends ctx
	opts  remotecommand.Options
	act   func(context.Context, runtime.Streams) (int, error)
	pumps sync.WaitGroup
}

// ExecInContainer implements remotecommand.Executor.
func (t *talk) ExecInContainer(_ context.Context, _, _, _ string, _ []string, in io.Reader, out, err io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	code, failed := t.converse(in, out, err, resize)
	if t.ctx.Err() != nil {
		return nil // nobody is there to be told, and nothing is wrong
	}
	if failed != nil {
		return failed
	}
	if code != 0 {
		return exec.CodeExitError{Err: fmt.Errorf("exit code %d", code), Code: code}
	}
	return nil
}

// converse has act talk over a client's streams. Of those that the client did not
// ask for there may be dummies.
func (t *talk) converse(in io.Reader, out, err io.Writer, resize <-chan remotecommand.TerminalSize) (int, error) {
	s := runtime.Streams{TTY: t.opts.TTY}
	if t.opts.Stdin {
		s.Stdin = t.pump(in)
	}
	if t.opts.Stdout {
		s.Stdout = out
	}
	if t.opts.Stderr {
		s.Stderr = err
	}
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	if resize != nil && t.opts.TTY {
		sizes := make(chan runtime.TerminalSize)
		s.Resize = sizes
		t.pumps.Go(func() { passOn(ctx, resize, sizes) })
	}
	return t.act(ctx, s)
}

// pump returns input that can be closed while it is read: a client's cannot, but
// with its connection.
func (t *talk) pump(in io.Reader) io.ReadCloser {
	out, to := io.Pipe()
	t.pumps.Go(func() {
		_, err := io.Copy(to, in)
		to.CloseWithError(err)
	})
	return out
}

// passOn gives on the sizes of a terminal until there are no more, or ctx ends.
func passOn(ctx context.Context, from <-chan remotecommand.TerminalSize, to chan<- runtime.TerminalSize) {
	defer close(to)
	for {
		select {
		case size, more := <-from:
			if !more {
				return
			}
			select {
			case to <- runtime.TerminalSize{Width: size.Width, Height: size.Height}:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
