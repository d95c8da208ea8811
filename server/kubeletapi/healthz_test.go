package kubeletapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

func get(t *testing.T, h http.Handler, path, part string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if part != "" {
		r.Header.Set("Range", part)
	}
	h.ServeHTTP(w, r)
	return w
}

func TestHealthz(t *testing.T) {
	well := everything()
	ill := everything()
	ill.SyncLoop = func(context.Context) error { return errors.New("it hangs") }
	for name, c := range map[string]struct {
		answers kubeletapi.Answers
		path    string
		code    int
		body    string
	}{
		"well":               {well, "/healthz", 200, "ok"},
		"well, in full":      {well, "/healthz?verbose", 200, "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n"},
		"well, one check":    {well, "/healthz/syncloop", 200, "ok"},
		"ill":                {ill, "/healthz", 500, "[+]ping ok\n[+]log ok\n[-]syncloop failed: it hangs\nhealthz check failed\n"},
		"ill, the check":     {ill, "/healthz/syncloop", 500, "[-]syncloop failed: it hangs\nhealthz check failed\n"},
		"ill, another check": {ill, "/healthz/ping", 200, "ok"},
		"no such check":      {well, "/healthz/x", 404, "404 page not found\n"},
		"nothing else":       {well, "/pods", 404, "404 page not found\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if w := get(t, kubeletapi.Healthz(c.answers, quiet), c.path, ""); w.Code != c.code || w.Body.String() != c.body {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.code, c.body)
			}
		})
	}
}
