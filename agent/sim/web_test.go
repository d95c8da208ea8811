package sim

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/runtime/fake"
)

// site is a web server with one page.
type site struct {
	fate *fake.Fate

	mu     sync.Mutex
	body   []byte
	etag   string
	status int // 0: the connection is refused
}

// serve changes what the page says from now on.
func (s *site) serve(status int, body, etag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.body, s.etag = status, []byte(body), etag
}

// browser is the site as one incarnation of the agent reaches it.
type browser struct {
	*site
	fence <-chan struct{}
}

var _ http.RoundTripper = browser{}

var errRefused = errors.New("connection refused")

// RoundTrip implements http.RoundTripper.
func (b browser) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	call := fake.Call{Verb: "GET", Object: req.URL.Path, Min: time.Millisecond, Max: 300 * time.Millisecond, Deadline: time.Minute, Fence: b.fence, Quiet: true}
	err = b.fate.Do(req.Context(), call, func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.status == 0 {
			return errRefused
		}
		status, body := b.status, b.body
		if b.etag != "" && req.Header.Get("If-None-Match") == b.etag {
			status, body = http.StatusNotModified, nil
		}
		resp = &http.Response{
			StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
		}
		if b.etag != "" {
			resp.Header.Set("Etag", b.etag)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}
