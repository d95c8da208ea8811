package stream

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// serveV5 is v5.channel.k8s.io, which is v4 and a signal with which the client ends
// its input. Where it cannot, the client was told.
func (t *talk) serveV5(w http.ResponseWriter, r *http.Request, cfg Config) {
	kind := func(wanted bool, as wsstream.ChannelType) wsstream.ChannelType {
		if wanted {
			return as
		}
		return wsstream.IgnoreChannel
	}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		remotecommand.StreamProtocolV5Name: {Binary: true, Channels: []wsstream.ChannelType{
			remotecommand.StreamStdIn:  kind(t.opts.Stdin, wsstream.ReadChannel),
			remotecommand.StreamStdOut: kind(t.opts.Stdout, wsstream.WriteChannel),
			remotecommand.StreamStdErr: kind(t.opts.Stderr, wsstream.WriteChannel),
			remotecommand.StreamErr:    wsstream.WriteChannel,
			remotecommand.StreamResize: kind(t.opts.TTY, wsstream.ReadChannel),
		}},
	})
	conn.SetIdleTimeout(cfg.Idle)
	_, channels, err := conn.Open(w, r)
	if err != nil {
		return
	}
	defer conn.Close()
	// An empty message tells that all is set up.
	if _, err := channels[remotecommand.StreamErr].Write(nil); err != nil {
		return
	}
	var sizes chan remotecommand.TerminalSize
	if t.opts.TTY {
		sizes = make(chan remotecommand.TerminalSize)
		t.pumps.Go(func() { t.readSizes(channels[remotecommand.StreamResize], sizes) })
	}
	code, failed := t.converse(channels[remotecommand.StreamStdIn], channels[remotecommand.StreamStdOut], channels[remotecommand.StreamStdErr], sizes)
	status, err := json.Marshal(statusOf(code, failed))
	if err == nil {
		_, _ = channels[remotecommand.StreamErr].Write(status)
	}
}

// readSizes ends with the connection, or when there is nothing more to be understood.
func (t *talk) readSizes(from io.Reader, to chan<- remotecommand.TerminalSize) {
	defer close(to)
	decoder := json.NewDecoder(from)
	for {
		var size remotecommand.TerminalSize
		if decoder.Decode(&size) != nil {
			// What is not read would hold up what comes after it.
			_, _ = io.Copy(io.Discard, from)
			return
		}
		select {
		case to <- size:
		case <-t.ctx.Done():
			return
		}
	}
}

// statusOf is what the client is told at the end.
func statusOf(code int, err error) metav1.Status {
	switch {
	case err != nil:
		return metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error(), Code: http.StatusInternalServerError}
	case code != 0:
		return metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Message: "command terminated with exit code " + strconv.Itoa(code),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)}}},
		}
	default:
		return metav1.Status{Status: metav1.StatusSuccess}
	}
}
