package kubeletapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// logOf finds that text in every container.
func logOf(text string) func(context.Context, kubeletapi.LogQuery) (kubeletapi.Log, error) {
	return func(context.Context, kubeletapi.LogQuery) (kubeletapi.Log, error) {
		return kubeletapi.Log{ContainerID: "docker://abc", Copy: func(_ context.Context, to io.Writer) error {
			_, err := io.WriteString(to, text)
			return err
		}}, nil
	}
}

func TestQueriesOfLogs(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for query, want := range map[string]kubeletapi.LogQuery{
		"":                                      {Tail: -1},
		"follow=true&previous=1":                {Tail: -1, Follow: true, Previous: true},
		"follow&timestamps=":                    {Tail: -1, Follow: true, Timestamps: true},
		"follow=false&timestamps=0":             {Tail: -1},
		"tailLines=0":                           {Tail: 0},
		"tailLines=12":                          {Tail: 12},
		"tail=7":                                {Tail: 7},
		"tail=7&tailLines=8":                    {Tail: 7}, // an alias of before, which wins, as for the kubelet
		"tail=all&tailLines=8":                  {Tail: -1},
		"limitBytes=1":                          {Tail: -1, Limit: 1},
		"sinceSeconds=60":                       {Tail: -1, Since: at.Add(-time.Minute)},
		"sinceTime=2026-03-01T11:00:00%2B01:00": {Tail: -1, Since: at.Add(-2 * time.Hour)},
		"sinceTime=2026-03-01T11:00:00.5Z":      {Tail: -1, Since: at.Add(-time.Hour + 500*time.Millisecond)},
		"stream=All":                            {Tail: -1},
		"stream=Stdout":                         {Tail: -1, Stream: "stdout"},
		"stream=stderr&tailLines=5":             {Tail: 5, Stream: "stderr"},
		"container=x&unknown=y&pretty":          {Tail: -1},
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := kubeletapi.ParseLogQuery(values, at)
		if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", query, err, diff)
		}
	}
}

func TestQueriesOfLogsThatAreRefused(t *testing.T) {
	a := everything()
	for query, want := range map[string]string{
		"follow=maybe":                   `400 follow: want true or false, not "maybe"`,
		"tailLines=-1":                   `422 tailLines: want a whole number from 0 on, not "-1"`,
		"tail=x":                         `400 tail: want a whole number from 0 on, not "x"`,
		"tailLines=99999999999999999999": `400 tailLines: want a whole number from 0 on, not "99999999999999999999"`,
		"limitBytes=0":                   `422 limitBytes: want a whole number from 1 on, not "0"`,
		"sinceSeconds=0":                 `422 sinceSeconds: want a whole number from 1 on, not "0"`,
		"sinceTime=yesterday":            `400 sinceTime: want a time as in 2006-01-02T15:04:05Z, not "yesterday"`,
		"sinceSeconds=1&sinceTime=2026-03-01T11:00:00Z": `422 sinceTime: cannot be given with sinceSeconds`,
		"stream=both": `422 stream: want All, Stdout or Stderr, not "both"`,
	} {
		code, body := call(t, kubeletapi.ReadOnly, a, http.MethodGet, "/containerLogs/default/web/app?"+query)
		if got := fmt.Sprint(code, " ", strings.TrimSpace(body)); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestLogsAreTextThatComesAtOnce(t *testing.T) {
	a, asked := everything(), make(chan kubeletapi.LogQuery, 1)
	step := make(chan string)
	a.Logs = func(_ context.Context, q kubeletapi.LogQuery) (kubeletapi.Log, error) {
		asked <- q
		return kubeletapi.Log{ContainerID: "docker://abc", Copy: func(_ context.Context, to io.Writer) error {
			for text := range step {
				if _, err := io.WriteString(to, text); err != nil {
					return err
				}
			}
			return nil
		}}, nil
	}
	srv := httptest.NewServer(kubeletapi.Handler(a, kubeletapi.NewStreams(1), kubeletapi.Everybody(kubeletapi.ReadOnly), quiet))
	defer srv.Close()
	go func() { step <- "zero\n" }() // a log that is silent so far has no answer yet
	resp, err := http.Get(srv.URL + "/containerLogs/default/web/app?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, want := <-asked, (kubeletapi.Target{Namespace: "default", Pod: "web", Container: "app"}); got.Target != want {
		t.Errorf("asked for %+v, want %+v", got.Target, want)
	}
	if id := resp.Header.Get(kubeletapi.ContainerIDHeader); id != "docker://abc" {
		t.Errorf("container id %q", id)
	}
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain") {
		t.Errorf("content type %q", kind)
	}
	buf := make([]byte, 100)
	for i, text := range []string{"zero\n", "one\n", "two\n"} {
		if i > 0 {
			step <- text
		}
		n, err := io.ReadAtLeast(resp.Body, buf, len(text))
		if string(buf[:n]) != text || err != nil {
			t.Fatalf("got %q, %v, want %q", buf[:n], err, text)
		}
	}
	close(step)
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("at the end: %q, %v", rest, err)
	}
}

// A log that breaks off is no whole one: the connection breaks, too.
func TestALogThatBreaksOff(t *testing.T) {
	a := everything()
	text := "one\n"
	a.Logs = func(context.Context, kubeletapi.LogQuery) (kubeletapi.Log, error) {
		return kubeletapi.Log{Copy: func(_ context.Context, to io.Writer) error {
			if text != "" {
				if _, err := io.WriteString(to, text); err != nil {
					return err
				}
			}
			return kubeletapi.Wrong(kubeletapi.ErrBadRequest, "the disk is gone")
		}}, nil
	}
	srv := httptest.NewServer(kubeletapi.Handler(a, kubeletapi.NewStreams(1), kubeletapi.Everybody(kubeletapi.ReadOnly), quiet))
	defer srv.Close()
	read := func() (int, string, error) {
		resp, err := http.Get(srv.URL + "/containerLogs/default/web/app")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
	if code, body, err := read(); code != http.StatusOK || body != "one\n" || err == nil {
		t.Errorf("%d %q, %v: want the beginning and an error", code, body, err)
	}
	if resp, err := http.Head(srv.URL + "/containerLogs/default/web/app"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("its head: %v, %v", resp, err)
	}
	text = ""
	if code, body, err := read(); code != http.StatusBadRequest || !strings.Contains(body, "the disk is gone") || err != nil {
		t.Errorf("before it began: %d %q, %v", code, body, err)
	}
}

// A client that does not read holds its own goroutine only, and not for ever.
func TestAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, ended := everything(), make(chan error, 1)
		a.Logs = func(context.Context, kubeletapi.LogQuery) (kubeletapi.Log, error) {
			return kubeletapi.Log{Copy: func(_ context.Context, to io.Writer) error {
				for {
					if _, err := io.WriteString(to, "line\n"); err != nil {
						ended <- err
						return err
					}
				}
			}}, nil
		}
		ours, theirs := net.Pipe()
		srv := &http.Server{Handler: kubeletapi.Handler(a, kubeletapi.NewStreams(1), kubeletapi.Everybody(kubeletapi.ReadOnly), quiet)}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(&oneConn{conn: ours}) }()
		if _, err := io.WriteString(theirs, "GET /containerLogs/default/web/app?follow=true HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want that the time for writing is over", err)
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it was held for %s", took)
		}
		theirs.Close()
		srv.Close()
		<-served
	})
}

// A log may be silent for longer than a client may leave it unread.
func TestALogThatIsSilentForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := everything()
		a.Logs = func(context.Context, kubeletapi.LogQuery) (kubeletapi.Log, error) {
			return kubeletapi.Log{Copy: func(_ context.Context, to io.Writer) error {
				for _, text := range []string{"one\n", "two\n"} {
					time.Sleep(time.Hour)
					if _, err := io.WriteString(to, text); err != nil {
						return err
					}
				}
				return nil
			}}, nil
		}
		ours, theirs := net.Pipe()
		srv := &http.Server{Handler: kubeletapi.Handler(a, kubeletapi.NewStreams(1), kubeletapi.Everybody(kubeletapi.ReadOnly), quiet)}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(&oneConn{conn: ours}) }()
		if _, err := io.WriteString(theirs, "GET /containerLogs/default/web/app?follow=true HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(theirs), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "one\ntwo\n" || err != nil {
			t.Errorf("got %q, %v", body, err)
		}
		theirs.Close()
		srv.Close()
		<-served
	})
}

// oneConn listens, and has one connection.
type oneConn struct {
	conn net.Conn
	once sync.Once
	done chan struct{}
}

func (o *oneConn) Accept() (net.Conn, error) {
	var conn net.Conn
	o.once.Do(func() { conn, o.done = o.conn, make(chan struct{}) })
	if conn != nil {
		return conn, nil
	}
	<-o.done
	return nil, net.ErrClosed
}

func (o *oneConn) Close() error   { close(o.done); return nil }
func (o *oneConn) Addr() net.Addr { return o.conn.LocalAddr() }
