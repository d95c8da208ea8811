package logfile

import (
	"errors"
	"io"
)

const (
	// maxHeld is how much of a line is held until it is complete. Of a longer one the
	// beginning is written before.
	maxHeld = 256 << 10
	// maxOut is about how much is written at a time.
	maxOut = 32 << 10
)

// errEnough says that as much was written as is wanted.
var errEnough = errors.New("enough")

// joiner puts entries together to lines and writes those that are wanted.
type joiner struct {
	Options
	since stamp
	drop  [streams]int64
	lines [streams]line
	// middle is the stream of which the beginning of a line was written last, 0 for
	// none.
	middle Stream
	latest stamp
	left   int64 // bytes that may yet be written, if there is a limit
	out    []byte
	to     io.Writer
}

// line is what is known of a line that is not complete.
type line struct {
	begun bool
	when  stamp
	// text is what of it was not written. written says that there was more.
	text    []byte
	written bool
}

func newJoiner(o Options, drop [streams]int64, to io.Writer) *joiner {
	j := &joiner{Options: o, drop: drop, left: o.Limit, to: to}
	if !o.Since.IsZero() {
		j.since = newStamp(o.Since)
	}
	return j
}

// add takes one entry. The error is errEnough, or that of a write.
func (j *joiner) add(e entry) error {
	if j.Stream != All && j.Stream != e.stream {
		return nil
	}
	l := &j.lines[e.stream]
	if !l.begun {
		// An entry without a time has that of the one before.
		if when, ok := stampOf(e.time); ok {
			j.latest = when
		}
		l.begun, l.when = true, j.latest
	}
	wanted := j.drop[e.stream] == 0 && !l.when.before(j.since)
	ends := e.ends()
	if wanted && ends && l.text == nil {
		j.begin(e.stream, l)
		j.out = appendText(j.out, e.text)
	} else if wanted {
		l.text = appendText(l.text, e.text)
		if ends || len(l.text) > maxHeld {
			j.begin(e.stream, l)
			j.out = append(j.out, l.text...)
			l.text = l.text[:0]
		}
	}
	if ends {
		j.drop[e.stream] = max(j.drop[e.stream]-1, 0)
		if j.middle == e.stream {
			j.middle = 0
		}
		*l = line{}
	}
	if len(j.out) < maxOut && (j.Limit == 0 || int64(len(j.out)) < j.left) {
		return nil
	}
	return j.flush()
}

// begin writes what comes before text of a line.
func (j *joiner) begin(s Stream, l *line) {
	if j.middle != 0 && j.middle != s {
		j.out = append(j.out, '\n')
	}
	if j.Timestamps && !l.written {
		j.out = append(append(j.out, l.when[:]...), ' ')
	}
	j.middle, l.written = s, true
}

// finish writes what is not complete and never will be.
func (j *joiner) finish() error {
	for s := range j.lines {
		if l := &j.lines[s]; len(l.text) > 0 {
			j.begin(Stream(s), l)
			j.out = append(j.out, l.text...)
		}
	}
	return j.flush()
}

// flush writes what is due.
func (j *joiner) flush() error {
	out := j.out
	if j.Limit > 0 {
		out = out[:min(int64(len(out)), j.left)]
		j.left -= int64(len(out))
	}
	if len(out) > 0 {
		if _, err := j.to.Write(out); err != nil {
			return err
		}
	}
	j.out = j.out[:0]
	if j.Limit > 0 && j.left == 0 {
		return errEnough
	}
	return nil
}

// release gives memory back before a wait.
func (j *joiner) release() {
	if cap(j.out) > small {
		j.out = nil
	}
}
