package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/server"
)

// inMemory is a listener whose connections are made by dial.
type inMemory struct {
	made   chan net.Conn
	closed chan struct{}
}

func (l *inMemory) Accept() (net.Conn, error) {
	select {
	case c := <-l.made:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *inMemory) Close() error   { close(l.closed); return nil }
func (l *inMemory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (l *inMemory) dial() net.Conn {
	ours, theirs := net.Pipe()
	l.made <- theirs
	return ours
}

// In the last month of its certificate the server shows a new one to whoever comes, which is
// good for a year; who is connected stays so.
func TestOwnCertificateIsRenewedWhileServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := shownFirst(t, newStore(), "n1")
		l := &inMemory{made: make(chan net.Conn), closed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		ended, release := make(chan error, 1), make(chan struct{})
		go func() {
			ended <- server.Serve(ctx, tls.NewListener(l, cfg), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/long" {
					<-release
				}
				io.WriteString(w, "served")
			}), quiet)
		}()
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		ask := func(path string) (answer func() string, shown *x509.Certificate) {
			conn := tls.Client(l.dial(), &tls.Config{InsecureSkipVerify: true}) // it is looked at below
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: n1\r\nConnection: close\r\n\r\n", path); err != nil {
				t.Fatal(err)
			}
			shown = conn.ConnectionState().PeerCertificates[0]
			pool := x509.NewCertPool()
			pool.AddCert(shown)
			if _, err := shown.Verify(x509.VerifyOptions{DNSName: "n1", Roots: pool, CurrentTime: time.Now()}); err != nil {
				t.Errorf("a client is shown one that does not hold: %v", err)
			}
			return func() string {
				defer conn.Close()
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					return err.Error()
				}
				defer resp.Body.Close()
				body, _ := io.ReadAll(resp.Body)
				return string(body)
			}, shown
		}
		long, first := ask("/long")
		var renewed *x509.Certificate
		for range 13 { // months
			time.Sleep(30 * 24 * time.Hour)
			answer, shown := ask("/")
			if got := answer(); got != "served" {
				t.Fatalf("after %s: %s", time.Until(first.NotAfter), got)
			}
			left := time.Until(shown.NotAfter)
			if left < 30*24*time.Hour {
				t.Errorf("%s before its end it is shown still", left)
			}
			if !shown.Equal(first) && renewed == nil {
				renewed = shown
				if left < 364*24*time.Hour {
					t.Errorf("the new one holds for %s", left)
				}
			}
		}
		if renewed == nil {
			t.Error("no other one was shown")
		}
		close(release)
		if got := long(); got != "served" {
			t.Errorf("who was connected all the time got %s", got)
		}
	})
}
