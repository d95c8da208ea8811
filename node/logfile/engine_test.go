package logfile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/node/logfile"
)

// engine writes a log as Docker does.
type engine struct {
	t        *testing.T
	path     string
	file     *os.File
	maxFiles int
	compress bool
	now      time.Time
	wrote    []wrote
}

// wrote is one entry.
type wrote struct {
	stream logfile.Stream
	text   string
	at     time.Time
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{t: t, path: filepath.Join(t.TempDir(), "abc-json.log"), maxFiles: 1000, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	e.open()
	t.Cleanup(func() { e.file.Close() })
	return e
}

func (e *engine) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *engine) open() {
	var err error
	e.file, err = os.OpenFile(e.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	e.must(err)
}

func (e *engine) write(s logfile.Stream, text string) {
	stream := map[logfile.Stream]string{logfile.Stdout: "stdout", logfile.Stderr: "stderr"}[s]
	var line bytes.Buffer
	entry := json.NewEncoder(&line)
	entry.SetEscapeHTML(false)
	e.must(entry.Encode(struct {
		Log    string    `json:"log"`
		Stream string    `json:"stream"`
		Time   time.Time `json:"time"`
	}{text, stream, e.now}))
	e.raw(line.String())
	e.wrote = append(e.wrote, wrote{s, text, e.now})
}

// unfinished returns the streams that are in the midst of a line.
func (e *engine) unfinished() (open []logfile.Stream) {
	for _, s := range []logfile.Stream{logfile.Stdout, logfile.Stderr} {
		for _, w := range slices.Backward(e.wrote) {
			if w.stream != s {
				continue
			}
			if !strings.HasSuffix(w.text, "\n") {
				open = append(open, s)
			}
			break
		}
	}
	return open
}

// raw writes what no engine would but for a crash.
func (e *engine) raw(s string) {
	_, err := e.file.WriteString(s)
	e.must(err)
}

// rotate is daemon/logger/loggerutils/logfile.go's rotate in short.
func (e *engine) rotate() {
	e.must(e.file.Close())
	if e.maxFiles > 1 {
		extension := ""
		if e.compress {
			extension = ".gz"
		}
		name := func(i int) string { return fmt.Sprintf("%s.%d%s", e.path, i, extension) }
		_ = os.Remove(name(e.maxFiles - 1)) // mostly not there
		top := 1
		for top < e.maxFiles-1 && exists(name(top)) {
			top++
		}
		for i := top; i > 1; i-- {
			_ = os.Rename(name(i-1), name(i)) // mostly not there
		}
		e.must(os.Rename(e.path, e.path+".1"))
	}
	e.open()
	if e.maxFiles > 1 && e.compress {
		data, err := os.ReadFile(e.path + ".1")
		e.must(err)
		packed, err := os.Create(e.path + ".1.gz")
		e.must(err)
		z := gzip.NewWriter(packed)
		_, err = z.Write(data)
		e.must(err)
		e.must(z.Close())
		e.must(packed.Close())
		e.must(os.Remove(e.path + ".1"))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// want is what a reader should get that comes now.
func (e *engine) want(o logfile.Options) string { return e.wantFrom(o, len(e.wrote)) }

// wantFrom is what a follower should have got that came after so many entries: the
// naive twin of all that the package does.
func (e *engine) wantFrom(o logfile.Options, came int) string {
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	open := map[logfile.Stream]*line{}
	tail := func() {
		if o.Tail >= 0 {
			lines = lines[max(0, len(lines)-int(o.Tail)):]
		}
	}
	for i, w := range e.wrote {
		if i == came {
			tail()
		}
		if o.Stream != logfile.All && o.Stream != w.stream {
			continue
		}
		if open[w.stream] == nil {
			open[w.stream] = &line{at: w.at}
		}
		open[w.stream].text += w.text
		if strings.HasSuffix(w.text, "\n") {
			lines = append(lines, *open[w.stream])
			delete(open, w.stream)
		}
	}
	for _, s := range []logfile.Stream{logfile.Stdout, logfile.Stderr} {
		if open[s] != nil {
			lines = append(lines, *open[s])
		}
	}
	if came == len(e.wrote) {
		tail()
	}
	var out strings.Builder
	for _, l := range lines {
		if l.at.Before(o.Since) {
			continue
		}
		if out.Len() > 0 && !strings.HasSuffix(out.String(), "\n") {
			out.WriteByte('\n')
		}
		if o.Timestamps {
			out.WriteString(l.at.Format("2006-01-02T15:04:05.000000000Z "))
		}
		out.WriteString(l.text)
	}
	if o.Limit > 0 {
		return out.String()[:min(out.Len(), int(o.Limit))]
	}
	return out.String()
}
