package dashboard

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Serve answers on l until ctx ends, and returns when no answer is under way any
// more.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	var calls sync.WaitGroup
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		defer calls.Done()
		h.ServeHTTP(w, r)
	})
	// Closing breaks the connections, so that no client can hold an answer.
	defer calls.Wait()
	srv := &http.Server{
		Handler: counted, ReadHeaderTimeout: readWithin, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- srv.Close() })
	err := srv.Serve(l)
	if stop() {
		return err
	}
	return <-stopped
}
