package kubeletapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Who tells what a caller may do. Its error is of class
// [ErrUnauthenticated] or [ErrForbidden].
type Who func(r *http.Request) (Access, error)

// Everybody lets everybody do as much as that.
func Everybody(a Access) Who {
	return func(*http.Request) (Access, error) { return a, nil }
}

// AnybodyHere lets everybody do what is for the read-only port, unless the address they
// used is a name of somebody's choice: a web page that has one of its own mean the
// loopback device (DNS rebinding) must not read there.
func AnybodyHere(node string) Who {
	return func(r *http.Request) (Access, error) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		_, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err == nil || strings.EqualFold(host, "localhost") || strings.EqualFold(host, node) {
			return ReadOnlyPort, nil
		}
		return 0, Wrong(ErrForbidden, "Forbidden: ask for localhost or an address")
	}
}

// Streams is a cap on how many requests that hold their connection go on at once,
// over all handlers that share it.
type Streams chan struct{}

// NewStreams returns a cap of n.
func NewStreams(n int) Streams { return make(Streams, n) }

// Limits of one request.
const (
	// requestTime is how long one may take that is no stream, body and answer included.
	requestTime = time.Minute
	// lastWord is how much longer it may take to be told so.
	lastWord = 5 * time.Second
	// writeTime is how long a client may leave what a stream sent it unread.
	writeTime = time.Minute
	// maxBody is in bytes. What is sent over a connection that was taken over is no body;
	// that of a stream is read before it begins.
	maxBody = 64 << 10
)

// Handler serves the routes that there are answers for to whom they are for. First
// the caller has to be known (401), then the route be there (404, 405), then the
// caller be allowed to (403).
//
// A handler ends with the context of its request, which ends with the agent; one
// that takes over its connection closes it then. What it starts it waits for.
func Handler(a Answers, streams Streams, who Who, log *slog.Logger) http.Handler {
	return serve(routes(&a), streams, who, log)
}

// Healthz serves /healthz and what is below it, to everybody.
func Healthz(a Answers, log *slog.Logger) http.Handler {
	var list []route
	for _, rt := range routes(&a) {
		if strings.HasPrefix(rt.pattern, "/healthz") {
			list = append(list, rt)
		}
	}
	return serve(list, nil, Everybody(ReadOnlyPort), log)
}

func serve(list []route, streams Streams, who Who, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	for _, rt := range list {
		h := adapt(rt, streams, log)
		for _, method := range rt.methods {
			mux.Handle(method+" "+rt.pattern, h)
			if !strings.HasSuffix(rt.pattern, "...}") {
				mux.Handle(method+" "+rt.pattern+"/{$}", h)
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A client that sends or reads slowly holds nothing for longer. A server that
		// cannot do so, as in tests, needs none.
		deadline, answer := time.Now().Add(requestTime), http.NewResponseController(w)
		_, _ = answer.SetReadDeadline(deadline), answer.SetWriteDeadline(deadline.Add(lastWord))
		access, err := who(r)
		if err != nil {
			refuse(w, r, err, log)
			return
		}
		if foreign(r) {
			refuse(w, r, Wrong(ErrForbidden, "Forbidden: a page of another site asks for it"), log)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), accessKey{}, access))
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		mux.ServeHTTP(w, r)
	})
}

// foreign reports whether a browser sends this for a page of another site, with the
// certificate of its user: what acts, and what takes the connection over, as WebSockets
// do by GET.
func foreign(r *http.Request) bool {
	asked := &http.Request{Method: r.Method, Header: r.Header, Host: r.Host, URL: r.URL}
	if r.Header.Get("Upgrade") != "" {
		asked.Method = http.MethodPost
	}
	return new(http.CrossOriginProtection).Check(asked) != nil
}

type accessKey struct{}

// accessOf is what the caller of a request may do.
func accessOf(r *http.Request) Access {
	access, _ := r.Context().Value(accessKey{}).(Access)
	return access
}

func adapt(rt route, streams Streams, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if accessOf(r) < rt.access {
			refuse(w, r, forbidden(accessOf(r)), log)
			return
		}
		sent := &reply{ResponseWriter: w}
		if rt.stream {
			select {
			case streams <- struct{}{}:
				defer func() { <-streams }()
			default:
				refuse(w, r, Wrong(ErrTooMany, "too many streams at once; try again later"), log)
				return
			}
			// While it has a body it has a deadline.
			body, err := io.ReadAll(r.Body)
			if err != nil {
				refuse(w, r, unread(err), log)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			sent.hold = http.NewResponseController(w)
			_ = sent.hold.SetReadDeadline(time.Time{})
			sent.extend()
		}
		if err := rt.handle(sent, r); err != nil {
			if sent.began {
				log.Debug("answer cut short", "path", r.URL.Path, "err", err)
				return
			}
			refuse(w, r, err, log)
		}
	})
}

// unread says why the body of a request could not be read.
func unread(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Wrong(ErrTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody))
	}
	return Wrong(ErrBadRequest, "the body cannot be read")
}

// forbidden says what the caller lacks.
func forbidden(have Access) error {
	if have == ReadOnlyPort {
		return Wrong(ErrForbidden, "Forbidden: this takes credentials, at the secure port")
	}
	return Wrong(ErrForbidden, "Forbidden: this takes more than the read-only role")
}

// reply remembers whether an answer has begun. That of a stream gives the client
// writeTime to read from each write on.
type reply struct {
	http.ResponseWriter
	began    bool
	hold     *http.ResponseController // nil where it is no stream
	extended time.Time
}

func (s *reply) WriteHeader(code int) {
	s.began = true
	s.extend()
	s.ResponseWriter.WriteHeader(code)
}

func (s *reply) Write(b []byte) (int, error) {
	s.began = true
	s.extend()
	return s.ResponseWriter.Write(b)
}

func (s *reply) extend() {
	if now := time.Now(); s.hold != nil && now.Sub(s.extended) > time.Second {
		_ = s.hold.SetWriteDeadline(now.Add(writeTime))
		s.extended = now
	}
}

// Hijack takes the connection over, without any deadline.
func (s *reply) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	s.began = true
	return http.NewResponseController(s.ResponseWriter).Hijack()
}

// Flush is for those who ask for an http.Flusher.
func (s *reply) Flush() {
	s.began = true
	s.extend()
	_ = http.NewResponseController(s.ResponseWriter).Flush() // the next write tells what is wrong
}

// Unwrap is for http.ResponseController.
func (s *reply) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func refuse(w http.ResponseWriter, r *http.Request, err error, log *slog.Logger) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		err = Wrong(ErrUnavailable, "the agent is stopping") // or nobody reads it
	}
	code := status(err)
	switch code {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="podkeeper"`)
	case http.StatusInternalServerError:
		log.Warn("request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	http.Error(w, err.Error(), code)
}
