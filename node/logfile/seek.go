package logfile

import (
	"io"
	"time"
)

// place is where reading begins.
type place struct {
	// segments are the files from there on, the oldest first.
	segments []*segment
	// off is in the first of them.
	off int64
	// drop is how many lines that end from there on are not wanted.
	drop [streams]int64
}

func (p *place) close() {
	for _, s := range p.segments {
		s.close()
	}
}

// older puts the file before the first in front; false where there is none.
func (p *place) older(c chain) (bool, error) {
	s, err := c.older(p.segments[0])
	if s == nil || err != nil {
		return false, err
	}
	p.segments = append([]*segment{s}, p.segments...)
	return true, nil
}

// seek opens what has to be read. It is up to the caller to close the place, with
// an error too.
func (c chain) seek(o Options) (p place, err error) {
	newest, err := c.newest()
	if err != nil {
		return p, err
	}
	p.segments = []*segment{newest}
	switch {
	case o.Tail >= 0:
		err = c.seekTail(&p, o)
	case !o.Since.IsZero():
		err = c.seekTime(&p, o.Since)
	default:
		for more := true; more && err == nil; {
			more, err = p.older(c)
		}
	}
	return p, err
}

// lookBack is how far before the last lines is looked for the beginning of one of
// them, where nothing tells that there is one.
const lookBack = 256 << 10

// tailer finds the beginning of the last lines, told of entries from the last to the
// first.
type tailer struct {
	stream Stream
	left   int64 // lines yet to be found
	// seen: an entry of the stream is in the tail, and open: what came before it is
	// not known, so it may go on with a line.
	seen, open [streams]bool
	// crossed: all lines were found, and what comes now lies before them.
	crossed bool
	// segment counts the files from the newest one on. from is where reading has to
	// begin, in the file fromSegment.
	segment, fromSegment int
	from                 mark
	// drop is how many lines end between there and the tail, passed how many before it.
	drop, passed [streams]int64
}

// visit is told of one entry, and returns false where the beginning is known.
func (t *tailer) visit(m mark) bool {
	if t.stream != All && t.stream != m.stream {
		return true
	}
	last := m.ends || !t.seen[m.stream]
	switch {
	case t.crossed:
	case !last:
		t.begin(m)
		return true
	case t.left > 0:
		t.left--
		t.begin(m)
		return true
	default:
		t.crossed = true
		t.open = t.seen
	}
	if m.ends {
		t.open[m.stream] = false
		t.passed[m.stream]++
	} else if t.open[m.stream] {
		t.begin(m)
	}
	near := t.segment != t.fromSegment || t.from.off-m.off < lookBack
	return near && (t.open[Stdout] || t.open[Stderr])
}

// begin has reading begin with that entry.
func (t *tailer) begin(m mark) {
	t.from, t.fromSegment = m, t.segment
	t.seen[m.stream] = true
	for s := range t.passed {
		t.drop[s] += t.passed[s]
		t.passed[s] = 0
	}
}

// look is told of the entries of one more file. more is false where the beginning is
// known.
func (t *tailer) look(s *segment, more *bool) (err error) {
	if s.packed {
		*more, err = t.lookPacked(s)
		return err
	}
	return s.back(func(m mark) bool {
		*more = t.visit(m)
		return *more
	})
}

// lookPacked reads a file twice rather than to remember it: reading begins with its
// beginning anyway, so it is enough to count the lines that are not wanted.
func (t *tailer) lookPacked(s *segment) (more bool, err error) {
	var has, unfinished [streams]bool
	var lines int64
	wanted := func(m mark) bool { return t.stream == All || t.stream == m.stream }
	err = s.forward(func(m mark) bool {
		if wanted(m) {
			has[m.stream], unfinished[m.stream] = true, !m.ends
			if m.ends {
				lines++
			}
		}
		return true
	})
	if err != nil {
		return false, err
	}
	for stream := range unfinished {
		if unfinished[stream] && !t.seen[stream] {
			lines++ // the last one of its stream
		}
	}
	if !t.crossed && lines <= t.left {
		t.left -= lines
		t.begin(mark{})
		for stream := range has {
			t.seen[stream] = t.seen[stream] || has[stream]
		}
		return true, nil
	}
	t.begin(mark{})
	before := lines
	if !t.crossed {
		before -= t.left
	}
	t.crossed = true
	return false, s.forward(func(m mark) bool {
		if before > 0 && wanted(m) && m.ends {
			t.drop[m.stream]++
			before--
		}
		return before > 0
	})
}

func (c chain) seekTail(p *place, o Options) error {
	if o.Tail == 0 && !p.segments[0].packed {
		return p.segments[0].back(func(m mark) bool {
			p.off, p.drop[m.stream] = m.off, 1
			return false
		})
	}
	t := tailer{stream: o.Stream, left: o.Tail}
	for more := true; more; t.segment++ {
		if err := t.look(p.segments[0], &more); err != nil {
			return err
		}
		if !more {
			break
		}
		var err error
		if more, err = p.older(c); err != nil {
			return err
		}
	}
	// What lies before the file where it begins was looked at only.
	for len(p.segments) > t.fromSegment+1 {
		p.segments[0].close()
		p.segments = p.segments[1:]
	}
	p.off, p.drop = t.from.off, t.drop
	return nil
}

// slack is how much before a time reading begins: entries of both streams may lie a
// little out of order, and the first one may go on with a line.
const slack = time.Second

// seekTime finds a place before which everything is older.
func (c chain) seekTime(p *place, since time.Time) error {
	from := newStamp(since.Add(-slack))
	for {
		first := p.segments[0]
		if _, when, ok := first.firstFrom(0); ok && when.before(from) {
			if !first.packed {
				p.off = first.halve(from)
			}
			return nil
		}
		if more, err := p.older(c); !more || err != nil {
			return err
		}
	}
}

// firstFrom returns where the first whole entry behind an offset begins, and its
// time. Away from the beginning of the file, the line at the offset is taken for the
// rest of one.
func (s *segment) firstFrom(off int64) (at int64, when stamp, ok bool) {
	src, err := s.from(off)
	if err != nil {
		return 0, when, false
	}
	lines := scanner{src: io.LimitReader(src, 2*maxLine), off: off}
	for whole := off == 0; ; whole = true {
		line, at, err := lines.next()
		if err != nil {
			return 0, when, false
		}
		e, ok := parse(line)
		if !ok || !whole {
			continue
		}
		if when, ok = stampOf(e.time); ok {
			return at, when, true
		}
	}
}

// halve returns where an entry begins before which all are older than from, at most
// about a block too early.
func (s *segment) halve(from stamp) int64 {
	older, rest := int64(0), s.size
	for rest-older > block {
		mid := older + (rest-older)/2
		at, when, ok := s.firstFrom(mid)
		if ok && when.before(from) && at < rest {
			older = at
		} else {
			rest = mid
		}
	}
	return older
}
