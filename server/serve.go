package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

// Limits of what a client may have a server hold while no handler is asked.
const (
	headerTime = 10 * time.Second
	idleTime   = 90 * time.Second
	// maxHeader is in bytes; net/http adds 4096.
	maxHeader = 32 << 10
	// maxBody is that of a request of the command line, in bytes.
	maxBody = 64 << 10
)

// Serve serves h on l until ctx ends, and returns when no call is under way any
// more. A connection that a handler took over is its own to close when the context of
// its request ends, which is with ctx.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	var calls sync.WaitGroup
	var lock sync.Mutex
	over := false // from then on no call begins
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		if over {
			lock.Unlock()
			panic(http.ErrAbortHandler) // nobody would wait for it
		}
		calls.Add(1)
		lock.Unlock()
		defer calls.Done()
		defer func() {
			switch p := recover(); {
			case p == nil:
			case p != http.ErrAbortHandler:
				log.Error("a request met a bug", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			default:
				panic(p)
			}
		}()
		// The one that a request before it on this connection had is over.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		h.ServeHTTP(w, r)
	})
	srv := &http.Server{
		Handler: counted, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug), // clients that break off
	}
	// Closing breaks the connections, so that no client can hold a call.
	defer func() {
		lock.Lock()
		over = true
		lock.Unlock()
		calls.Wait()
	}()
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- srv.Close() })
	err := srv.Serve(l)
	if stop() {
		return errors.Join(err, srv.Close())
	}
	return <-stopped
}
