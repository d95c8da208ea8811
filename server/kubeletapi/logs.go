package kubeletapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// LogQuery is what is asked of the log of a container.
type LogQuery struct {
	Target
	// Follow goes on until the container ends.
	Follow bool
	// Previous asks for the attempt before, the last one that ended.
	Previous bool
	// Tail is how many lines of the end; negative is all.
	Tail int64
	// Since leaves out what was written before; zero is nothing.
	Since time.Time
	// Timestamps puts the time of each line before it.
	Timestamps bool
	// Limit is how many bytes at most; 0 is no limit.
	Limit int64
	// Stream is "stdout" or "stderr"; "" is both.
	Stream string
}

// Log is a log that was found.
type Log struct {
	// ContainerID is whose it is, as a status spells it.
	ContainerID string
	// Copy writes it. Each Write is all that is known for now.
	Copy func(ctx context.Context, to io.Writer) error
}

// ContainerIDHeader tells whose log an answer is: another attempt of the container
// has another one.
const ContainerIDHeader = "Podkeeper-Container-Id"

func (a *Answers) containerLogs(w http.ResponseWriter, r *http.Request) error {
	q, err := logQuery(r.URL.Query(), time.Now())
	if err != nil {
		return err
	}
	q.Target = target(r)
	found, err := a.Logs(r.Context(), q)
	if err != nil {
		return err
	}
	plainText(w)
	w.Header().Set(ContainerIDHeader, found.ContainerID)
	if r.Method == http.MethodHead {
		return nil
	}
	to := &flushed{Writer: w, control: http.NewResponseController(w)}
	err = found.Copy(r.Context(), to)
	if err != nil && to.began {
		// An end like any other would tell the client that it has all.
		panic(http.ErrAbortHandler)
	}
	return err
}

// flushed lets the client have each write at once.
type flushed struct {
	io.Writer
	control *http.ResponseController
	began   bool
}

func (f *flushed) Write(b []byte) (int, error) {
	f.began = true
	n, err := f.Writer.Write(b)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}

// logQuery reads the query of /containerLogs, which is the kubelet's. Its errors name
// the parameter; they are of class [ErrBadRequest] or, like the kubelet's, [ErrInvalid]
// where a value has the right type.
func logQuery(values url.Values, now time.Time) (q LogQuery, err error) {
	p := params{values: values}
	q.Follow, q.Previous, q.Timestamps = p.flag("follow"), p.flag("previous"), p.flag("timestamps")
	q.Tail = -1
	switch tail := values.Get("tail"); {
	case tail == "all":
	case tail != "":
		q.Tail = p.number("tail", 0)
	case values.Get("tailLines") != "":
		q.Tail = p.number("tailLines", 0)
	}
	if values.Get("limitBytes") != "" {
		q.Limit = p.number("limitBytes", 1)
	}
	if values.Get("sinceSeconds") != "" {
		ago := min(p.number("sinceSeconds", 1), maxSeconds)
		q.Since = now.Add(-time.Duration(ago) * time.Second)
		if values.Get("sinceTime") != "" {
			p.wrong(ErrInvalid, "sinceTime", "cannot be given with sinceSeconds")
		}
	} else if text := values.Get("sinceTime"); text != "" {
		if q.Since, err = time.Parse(time.RFC3339, text); err != nil {
			p.wrong(ErrBadRequest, "sinceTime", fmt.Sprintf("want a time as in 2006-01-02T15:04:05Z, not %q", shorten(text)))
		}
	}
	switch stream := strings.ToLower(values.Get("stream")); stream {
	case "", "all":
	case "stdout", "stderr":
		q.Stream = stream
	default:
		p.wrong(ErrInvalid, "stream", fmt.Sprintf("want All, Stdout or Stderr, not %q", shorten(values.Get("stream"))))
	}
	return q, p.err
}

// maxSeconds keeps a duration within its type.
const maxSeconds = 100 * 365 * 24 * 60 * 60

// params reads parameters of a query, and keeps the first error.
type params struct {
	values url.Values
	err    error
}

func (p *params) wrong(class error, name, message string) {
	if p.err == nil {
		p.err = Wrong(class, name+": "+message)
	}
}

func (p *params) flag(name string) bool {
	if !p.values.Has(name) {
		return false
	}
	switch text := p.values.Get(name); strings.ToLower(text) {
	case "", "true", "1":
		return true
	case "false", "0":
	default:
		p.wrong(ErrBadRequest, name, fmt.Sprintf("want true or false, not %q", shorten(text)))
	}
	return false
}

func (p *params) number(name string, least int64) int64 {
	text := p.values.Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least {
		class := ErrInvalid
		if err != nil {
			class = ErrBadRequest
		}
		p.wrong(class, name, fmt.Sprintf("want a whole number from %d on, not %q", least, shorten(text)))
		return least
	}
	return n
}

// shorten keeps messages short.
func shorten(text string) string { return text[:min(len(text), 40)] }
