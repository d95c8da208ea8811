package logfile

import (
	"bytes"
	"io"
)

// What a buffer has at first, and what it has where much is to be read.
const (
	small = 4 << 10
	bulk  = 128 << 10
)

// scanner takes a file apart into lines. Its buffer grows with what there is to
// read at a time.
type scanner struct {
	src io.Reader
	// off is where in the file buf[start] lies.
	off   int64
	buf   []byte
	start int
	// searched is how much of what lies at start has no newline.
	searched int
}

// next returns the next line, without its newline, and where it begins. The line is
// valid until the next call. At the end of the file it is io.EOF, and what lies
// behind the last newline stays for later: the file may grow.
func (s *scanner) next() (line []byte, off int64, err error) {
	for {
		if i := bytes.IndexByte(s.buf[s.start+s.searched:], '\n'); i >= 0 {
			line, off = s.buf[s.start:s.start+s.searched+i], s.off
			s.skip(len(line) + 1)
			return line, off, nil
		}
		s.searched = len(s.buf) - s.start
		if s.searched > maxLine {
			s.tooLong()
		}
		if err := s.fill(); err != nil {
			return nil, 0, err
		}
	}
}

// rest returns what lies behind the last newline.
func (s *scanner) rest() []byte { return s.buf[s.start:] }

// release gives memory back before a wait.
func (s *scanner) release() {
	if s.start == len(s.buf) && cap(s.buf) > small {
		s.buf, s.start = nil, 0
	}
}

func (s *scanner) skip(n int) {
	s.start, s.off, s.searched = s.start+n, s.off+int64(n), 0
}

// tooLong drops the beginning of a line that is no entry: zeros of a crash, mostly.
// What follows an entry that was cut off may be one.
func (s *scanner) tooLong() {
	rest := s.rest()
	n := len(rest) - len(bytes.TrimLeft(rest, "\x00"))
	if n == 0 {
		n = bytes.LastIndex(rest, begin)
	}
	if n <= 0 {
		n = len(rest)
	}
	s.skip(n)
}

func (s *scanner) fill() error {
	full := len(s.buf) == cap(s.buf) // so there may be much more
	if s.start > 0 {
		s.buf = s.buf[:copy(s.buf, s.buf[s.start:])]
		s.start = 0
	}
	if len(s.buf) == cap(s.buf) || full && cap(s.buf) < bulk {
		grown := make([]byte, len(s.buf), max(small, 4*cap(s.buf)))
		copy(grown, s.buf)
		s.buf = grown
	}
	n, err := s.src.Read(s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}
