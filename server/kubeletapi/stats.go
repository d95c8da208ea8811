package kubeletapi

import (
	"fmt"
	"net/http"
	"strconv"
)

// page answers with what writes all of its answer itself.
func page(h http.Handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

// summary answers /stats/summary.
func (a *Answers) summary(w http.ResponseWriter, r *http.Request) error {
	brief := false
	if text := r.FormValue("only_cpu_and_memory"); text != "" {
		var err error
		if brief, err = strconv.ParseBool(text); err != nil {
			return Wrong(ErrBadRequest, fmt.Sprintf("only_cpu_and_memory: %q is neither true nor false", text))
		}
	}
	s, err := a.Summary(r.Context(), brief)
	if err != nil {
		return err
	}
	return answer(w, s)
}
