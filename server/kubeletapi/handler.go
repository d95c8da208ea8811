package kubeletapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
)

// Who tells what a caller may do. Its error is of class [ErrUnauthenticated].
type Who func(r *http.Request) (Access, error)

// Everybody lets everybody do as much as that.
func Everybody(a Access) Who {
	return func(*http.Request) (Access, error) { return a, nil }
}

// Streams is a cap on how many requests that hold their connection go on at once,
// over all handlers that share it.
type Streams chan struct{}

// NewStreams returns a cap of n.
func NewStreams(n int) Streams { return make(Streams, n) }

// Handler serves the routes that there are answers for to whom they are for. First
// the caller has to be known (401), then the route be there (404, 405), then the
// caller be allowed to (403).
//
// A handler ends with the context of its request, which ends with the agent; one
// that takes over its connection closes it then. What it starts it waits for.
func Handler(a Answers, streams Streams, who Who, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes(&a) {
		h := adapt(rt, streams, log)
		for _, method := range rt.methods {
			mux.Handle(method+" "+rt.pattern, h)
			mux.Handle(method+" "+rt.pattern+"/{$}", h)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		access, err := who(r)
		if err != nil {
			refuse(w, r, err, log)
			return
		}
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accessKey{}, access)))
	})
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
			refuse(w, r, Wrong(ErrForbidden, "forbidden: this needs more than read-only access"), log)
			return
		}
		if rt.stream {
			select {
			case streams <- struct{}{}:
				defer func() { <-streams }()
			default:
				refuse(w, r, Wrong(ErrTooMany, "too many streams at once; try again later"), log)
				return
			}
		}
		sent := &sentinel{ResponseWriter: w}
		if err := rt.handle(sent, r); err != nil {
			if sent.began {
				log.Debug("answer cut short", "path", r.URL.Path, "err", err)
				return
			}
			refuse(w, r, err, log)
		}
	})
}

// sentinel remembers whether an answer has begun.
type sentinel struct {
	http.ResponseWriter
	began bool
}

func (s *sentinel) WriteHeader(code int) {
	s.began = true
	s.ResponseWriter.WriteHeader(code)
}

func (s *sentinel) Write(b []byte) (int, error) {
	s.began = true
	return s.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (s *sentinel) Unwrap() http.ResponseWriter { return s.ResponseWriter }

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
