package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/podkeeper/podkeeper/runtime"
)

// TalkHeader and ForwardHeader are what a request asks with whose answer is a
// connection for [Talk] or [Carry].
func TalkHeader() http.Header    { return upgradeTo(remotecommand.StreamProtocolV4Name) }
func ForwardHeader() http.Header { return upgradeTo(portforward.ProtocolV1Name) }

func upgradeTo(protocol string) http.Header {
	return http.Header{
		httpstream.HeaderConnection:      {httpstream.HeaderUpgrade},
		httpstream.HeaderUpgrade:         {spdy.HeaderSpdy31},
		httpstream.HeaderProtocolVersion: {protocol},
	}
}

// TalkQuery is what the query of a request says of the streams that [Talk] will
// carry. command is nil for attach.
func TalkQuery(command []string, s runtime.Streams) url.Values {
	query := url.Values{"command": command}
	for name, wanted := range map[string]bool{
		remotecommand.ExecStdinParam: s.Stdin != nil, remotecommand.ExecStdoutParam: true,
		remotecommand.ExecStderrParam: !s.TTY, remotecommand.ExecTTYParam: s.TTY,
	} {
		if wanted {
			query.Set(name, "1")
		}
	}
	return query
}

// errLost: the other side said no last word.
var errLost = errors.New("the connection to the agent was lost")

// Talk carries the streams of an exec or attach over a connection that was asked for
// with them, and closes it. exitCode counts where err is nil. When it returns, a Read of
// the input may be under way still.
func Talk(ctx context.Context, conn io.ReadWriteCloser, s runtime.Streams) (exitCode int, err error) {
	session, end, err := newSession(ctx, conn)
	if err != nil {
		return 0, err
	}
	defer end()
	open := func(kind string) (httpstream.Stream, error) {
		return session.CreateStream(http.Header{remotecommand.StreamType: {kind}})
	}
	verdict, err := open(remotecommand.StreamTypeError)
	if err != nil {
		return 0, lost(ctx, err)
	}
	if s.Stdin != nil {
		stdin, err := open(remotecommand.StreamTypeStdin)
		if err != nil {
			return 0, lost(ctx, err)
		}
		go func() {
			_, _ = io.Copy(stdin, s.Stdin)
			_ = stdin.Close()
		}()
	}
	var outputs sync.WaitGroup
	unwritten := make(chan error, 2)
	show := func(kind string, to io.Writer) error {
		from, err := open(kind)
		if err == nil {
			outputs.Go(func() {
				if _, err := io.Copy(to, from); err != nil {
					unwritten <- err
					conn.Close() // what is not taken would hold up all the rest
				}
			})
		}
		return err
	}
	err = show(remotecommand.StreamTypeStdout, s.Stdout)
	if err == nil && !s.TTY {
		err = show(remotecommand.StreamTypeStderr, s.Stderr)
	}
	if err == nil && s.TTY {
		var resize httpstream.Stream
		if resize, err = open(remotecommand.StreamTypeResize); err == nil {
			outputs.Go(func() { tellSizes(session, resize, s.Resize) })
		}
	}
	if err != nil {
		end()
		outputs.Wait()
		return 0, lost(ctx, err)
	}
	text, err := io.ReadAll(verdict)
	// What was written before the last word is all on its way, and ends.
	outputs.Wait()
	select {
	case err := <-unwritten:
		return 0, err
	default:
	}
	if err != nil || len(text) == 0 {
		return 0, lost(ctx, err)
	}
	return exitCodeOf(text)
}

func tellSizes(session httpstream.Connection, to io.Writer, sizes <-chan runtime.TerminalSize) {
	encoder := json.NewEncoder(to)
	for {
		select {
		case size, more := <-sizes:
			if !more || encoder.Encode(remotecommand.TerminalSize{Width: size.Width, Height: size.Height}) != nil {
				return
			}
		case <-session.CloseChan():
			return
		}
	}
}

func exitCodeOf(text []byte) (int, error) {
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err != nil {
		return 0, fmt.Errorf("the agent's last word: %w", err)
	}
	if status.Status == metav1.StatusSuccess {
		return 0, nil
	}
	if status.Reason == remotecommand.NonZeroExitCodeReason && status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Type == remotecommand.ExitCodeCauseType {
				return strconv.Atoi(cause.Message)
			}
		}
	}
	return 0, errors.New(status.Message)
}

// Carry connects local with a port of the pod over a connection that was asked for
// with [ForwardHeader], and closes both when the pod has said all, or ctx ends. An error
// of the pod's side, such as a port where nobody listens, is told in words.
func Carry(ctx context.Context, conn io.ReadWriteCloser, local net.Conn, port uint16) error {
	session, end, err := newSession(ctx, conn)
	if err != nil {
		return errors.Join(err, local.Close())
	}
	defer end()
	header := func(kind string) http.Header {
		return http.Header{portforward.StreamType: {kind}, portforward.PortHeader: {strconv.Itoa(int(port))}, portforward.PortForwardRequestIDHeader: {"0"}}
	}
	var copying sync.WaitGroup
	defer copying.Wait()
	defer local.Close()
	verdict, err := session.CreateStream(header(portforward.StreamTypeError))
	if err != nil {
		return lost(ctx, err)
	}
	data, err := session.CreateStream(header(portforward.StreamTypeData))
	if err != nil {
		return lost(ctx, err)
	}
	copying.Go(func() {
		_, _ = io.Copy(data, local)
		_ = data.Close()
	})
	_, copied := io.Copy(local, data)
	text, err := io.ReadAll(verdict)
	switch {
	case len(text) > 0:
		return errors.New(string(text))
	case copied != nil && ctx.Err() == nil:
		return nil // who connected here has gone
	case err != nil:
		return lost(ctx, err)
	}
	return nil
}

// newSession speaks SPDY on a connection. end may be called more than once.
func newSession(ctx context.Context, conn io.ReadWriteCloser) (httpstream.Connection, func(), error) {
	session, err := spdy.NewClientConnection(plainConn{conn})
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	return session, func() {
		stop()
		session.Close()
		conn.Close()
	}, nil
}

func lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: %w", errLost, err)
	default:
		return errLost
	}
}

// plainConn is as much of a net.Conn as SPDY asks for.
type plainConn struct{ io.ReadWriteCloser }

func (plainConn) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (plainConn) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (plainConn) SetDeadline(time.Time) error      { return nil }
func (plainConn) SetReadDeadline(time.Time) error  { return nil }
func (plainConn) SetWriteDeadline(time.Time) error { return nil }
