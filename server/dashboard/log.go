package dashboard

import (
	"io"
	"net/http"
	"strconv"
)

// How many lines of the end of a log a page may ask for.
const (
	usualTail = 500
	maxTail   = 10000
)

// log sends what a container wrote, and then what it writes, until one of the two
// ends.
func (p *page) log(w http.ResponseWriter, r *http.Request) error {
	how := LogOptions{
		Tail: usualTail, Previous: r.FormValue("previous") == "true", Timestamps: r.FormValue("timestamps") == "true",
	}
	if text := r.FormValue("tail"); text != "" {
		tail, err := strconv.Atoi(text)
		if err != nil || tail < 0 || tail > maxTail {
			return &refusal{http.StatusBadRequest, "tail: want 0 to " + strconv.Itoa(maxTail)}
		}
		how.Tail = tail
	}
	from, err := p.Log(r.Context(), keyIn(r), r.PathValue("container"), how)
	if err != nil {
		return err
	}
	defer from.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := newWriter(w)
	if _, err := out.Write(nil); err != nil { // the head, before the first line comes
		return nil
	}
	if _, err := io.Copy(out, from); err != nil {
		// A log that breaks off must not look like one that has ended.
		panic(http.ErrAbortHandler)
	}
	return nil
}
