package kubeletapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// check is one that /healthz makes; nil is one that holds when it can be asked.
type check struct {
	name string
	make func(ctx context.Context) error
}

// checks are those that a kubelet has.
func (a *Answers) checks() []check {
	return []check{{"ping", nil}, {"log", nil}, {"syncloop", a.SyncLoop}}
}

// healthz makes checks and answers as Kubernetes' components do: ok, or with
// ?verbose or a failure a line each.
func healthz(checks ...check) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var lines strings.Builder
		code, verdict := http.StatusOK, "healthz check passed"
		for _, c := range checks {
			var err error
			if c.make != nil {
				err = c.make(r.Context())
			}
			if err != nil {
				code, verdict = http.StatusInternalServerError, "healthz check failed"
				fmt.Fprintf(&lines, "[-]%s failed: %v\n", c.name, err)
				continue
			}
			fmt.Fprintf(&lines, "[+]%s ok\n", c.name)
		}
		text := "ok"
		if _, verbose := r.URL.Query()["verbose"]; verbose || code != http.StatusOK {
			text = lines.String() + verdict + "\n"
		}
		plainText(w)
		w.WriteHeader(code)
		_, err := io.WriteString(w, text)
		return err
	}
}

// plainText says that an answer is text, whatever stands in it.
func plainText(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}
