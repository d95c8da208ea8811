package logfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// chain is the files of a log, the newest at this path.
type chain string

// name returns the file that was rotated so often.
func (c chain) name(index int) string {
	if index == 0 {
		return string(c)
	}
	return string(c) + "." + strconv.Itoa(index)
}

// segment is one file of a log, held open.
type segment struct {
	file *os.File
	// packed files can only be read from their beginning.
	packed bool
	// size is what it had when it was opened; of a packed one it is not known.
	size int64
}

func (s *segment) close() { s.file.Close() }

// openSegment opens the file that was rotated so often; an error is fs.ErrNotExist
// where there is none. A file that is being compressed exists in both forms.
func (c chain) openSegment(index int) (*segment, error) {
	name, packed := c.name(index), false
	f, err := os.Open(name)
	if index > 0 && errors.Is(err, fs.ErrNotExist) {
		f, err = os.Open(name + ".gz")
		packed = true
		// It is complete when the other form is gone; that may have come meanwhile.
		if plain, missing := os.Open(name); missing == nil {
			if err == nil {
				f.Close()
			}
			f, err, packed = plain, nil, false
		}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &segment{file: f, packed: packed, size: info.Size()}, nil
}

// newest opens the file that is written to. In the midst of a rotation there is none:
// then it is the one that was.
func (c chain) newest() (*segment, error) {
	s, err := c.openSegment(0)
	if errors.Is(err, fs.ErrNotExist) {
		if was, found := c.openSegment(1); found == nil {
			return was, nil
		}
	}
	return s, err
}

// walk calls visit with each file, the newest first, until it returns false. Files
// only ever move to higher numbers, so one may be met twice, and none is missed but
// those that came since. The visitor closes what it does not keep.
func (c chain) walk(visit func(*segment) bool) error {
	// In the midst of a rotation one number is free.
	for index, free := 0, 0; free < 2; index++ {
		s, err := c.openSegment(index)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			free++
		case err != nil:
			return err
		case !visit(s):
			return nil
		default:
			free = 0
		}
	}
	return nil
}

// older opens the file that came before s; nil is none.
func (c chain) older(s *segment) (*segment, error) {
	for {
		found, err := c.behind(s)
		if found == nil || err != nil {
			return nil, err
		}
		// After two rotations in between, it is one that came later.
		next, err := c.newer(found)
		if next != nil {
			same := s.same(next)
			next.close()
			if same {
				return found, nil
			}
		}
		found.close()
		if err != nil {
			return nil, err
		}
	}
}

// behind opens what is met behind s.
func (c chain) behind(s *segment) (found *segment, err error) {
	met := false
	err = c.walk(func(other *segment) bool {
		switch {
		case s.same(other):
			met = true
		case met:
			found = other
			return false
		}
		other.close()
		return true
	})
	return found, err
}

// newer opens the file that came after s; nil is none. Where s is no longer in the
// chain, all that is there came after it. Until it is met, s lies ahead, and so does
// what comes after it: that is met right before.
func (c chain) newer(s *segment) (found *segment, err error) {
	err = c.walk(func(other *segment) bool {
		if s.same(other) {
			other.close()
			return false
		}
		if found != nil {
			found.close()
		}
		found = other
		return true
	})
	if err != nil && found != nil {
		found.close()
		found = nil
	}
	return found, err
}

// moved reports whether s is no longer the file that is written to, which is
// then another or about to be made.
func (c chain) moved(s *segment) bool {
	info, err := os.Stat(string(c))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	own, err := s.file.Stat()
	return err == nil && !os.SameFile(info, own)
}

// same reports whether both are the same part of the log, although one of them may
// be compressed.
func (s *segment) same(t *segment) bool {
	a, err := s.file.Stat()
	b, failed := t.file.Stat()
	if err != nil || failed != nil {
		return false
	}
	if os.SameFile(a, b) {
		return true
	}
	if s.packed == t.packed {
		return false
	}
	// The first entry has a time in nanoseconds.
	first := s.firstEntry()
	return first != nil && bytes.Equal(first, t.firstEntry())
}

// firstEntry returns the line of the first entry, nil where there is none yet.
func (s *segment) firstEntry() []byte {
	src, err := s.from(0)
	if err != nil {
		return nil
	}
	lines := scanner{src: io.LimitReader(src, 2*maxLine)}
	for {
		line, _, err := lines.next()
		if err != nil {
			return nil
		}
		if _, ok := parse(line); ok {
			return bytes.Clone(line)
		}
	}
}

// from reads from an offset on, to the end that the file has when it is reached. It
// is independent of all other readers of the segment.
func (s *segment) from(off int64) (io.Reader, error) {
	if !s.packed {
		return io.NewSectionReader(s.file, off, 1<<62), nil
	}
	z, err := gzip.NewReader(io.NewSectionReader(s.file, 0, 1<<62))
	if err == nil {
		_, err = io.CopyN(io.Discard, z, off)
	}
	if err != nil {
		return nil, fmt.Errorf("decompress %s: %w", s.file.Name(), err)
	}
	return z, nil
}
