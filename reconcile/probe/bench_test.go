package probe_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/reconcile/probe"
)

func BenchmarkHTTP(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	c := get(server, "/")
	c.Timeout = time.Second
	checker := probe.NewChecker(nil)
	b.ReportAllocs()
	for b.Loop() {
		if got := checker.Check(b.Context(), c); got.Outcome != probe.Success {
			b.Fatalf("%+v", got)
		}
	}
}
