// Package streamtest is what kubectl does to exec, attach and forward ports, by its own
// code, for tests of what answers it.
package streamtest

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Executors are the ways in which kubectl speaks to exec and attach.
func Executors(t *testing.T, cfg *rest.Config, path string, query url.Values) map[string]remotecommand.Executor {
	t.Helper()
	to := at(t, cfg, path)
	to.RawQuery = query.Encode()
	spdy, err := remotecommand.NewSPDYExecutor(cfg, http.MethodPost, to)
	if err != nil {
		t.Fatal(err)
	}
	websocket, err := remotecommand.NewWebSocketExecutor(cfg, http.MethodGet, to.String())
	if err != nil {
		t.Fatal(err)
	}
	return map[string]remotecommand.Executor{"SPDY": spdy, "WebSocket": websocket}
}

// Dialers are the ways in which it speaks to port-forward.
func Dialers(t *testing.T, cfg *rest.Config, path string) map[string]httpstream.Dialer {
	t.Helper()
	to := at(t, cfg, path)
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]httpstream.Dialer{
		"SPDY":   spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, to),
		"tunnel": tunnel,
	}
}

func at(t *testing.T, cfg *rest.Config, path string) *url.URL {
	t.Helper()
	to, err := url.Parse(cfg.Host + path)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// Forward forwards ports until stop is called, which may be lost before.
func Forward(t *testing.T, dialer httpstream.Dialer, ports ...string) (local []portforward.ForwardedPort, stop func()) {
	t.Helper()
	stopped, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, ports, stopped, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	if local, err = f.GetPorts(); err != nil {
		t.Fatal(err)
	}
	return local, func() {
		close(stopped)
		if err := <-ended; err != nil && !errors.Is(err, portforward.ErrLostConnectionToPod) {
			t.Error(err)
		}
	}
}
