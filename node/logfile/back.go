package logfile

import (
	"bytes"
	"errors"
	"io"
)

const (
	// block is how much is read at a time where it is not known how much is needed.
	block = 32 << 10
	// maxLine bounds one line of a file. The engine's entries are shorter by far.
	maxLine = 1 << 20
)

// mark is what is to be known of an entry to find where lines begin.
type mark struct {
	off    int64
	stream Stream
	ends   bool
}

// back calls visit with the entries of a segment, the last one first, until it
// returns false. A packed segment cannot be read so.
func (s *segment) back(visit func(mark) bool) error {
	var line []byte // what is known of the line that begins before off, at most maxLine
	buf := make([]byte, block)
	for off := s.size; off > 0; {
		part := buf[:min(off, block)]
		off -= int64(len(part))
		if _, err := s.file.ReadAt(part, off); errors.Is(err, io.EOF) {
			continue // it was made shorter
		} else if err != nil {
			return err
		}
		for {
			i := bytes.LastIndexByte(part, '\n')
			if i < 0 {
				break
			}
			line = prepend(part[i+1:], line)
			if !visitLine(line, off+int64(i)+1, visit) {
				return nil
			}
			line, part = line[:0], part[:i]
		}
		line = prepend(part, line)
	}
	visitLine(line, 0, visit)
	return nil
}

// prepend returns head and tail together in tail's memory, or the end of them.
func prepend(head, tail []byte) []byte {
	head = head[max(0, len(head)+len(tail)-maxLine):]
	n := len(tail)
	tail = append(tail, head...)
	copy(tail[len(head):], tail[:n])
	copy(tail, head)
	return tail
}

func visitLine(line []byte, off int64, visit func(mark) bool) bool {
	e, ok := parse(line)
	return !ok || visit(mark{off: off, stream: e.stream, ends: e.ends()})
}

// forward calls visit with the entries of a segment, the first one first, until it
// returns false. What cannot be read of the segment is not there.
func (s *segment) forward(visit func(mark) bool) error {
	src, err := s.from(0)
	if err != nil {
		return err
	}
	lines := scanner{src: src}
	for {
		line, off, err := lines.next()
		if err != nil || !visitLine(line, off, visit) {
			return nil
		}
	}
}
