package kubeletapi

import (
	"io"
	"net/http"
)

// ok says that the agent answers.
func ok(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, err := io.WriteString(w, "ok")
	return err
}
