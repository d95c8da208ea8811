package logfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
)

// follow copies from a place on, and what comes, until wait says that nothing more
// will.
func follow(ctx context.Context, c chain, from *place, to *joiner, wait func() (more bool, err error)) error {
	// All but the last file are complete.
	last := len(from.segments) - 1
	if last > 0 {
		if err := copyAll(ctx, from.segments[:last], from.off, to); err != nil {
			return err
		}
		for _, s := range from.segments[:last] {
			s.close()
		}
		from.segments, from.off = from.segments[last:], 0
	}
	f := follower{chain: c, place: from, to: to}
	if err := f.open(from.off); err != nil {
		return err
	}
	for more, told := true, false; ; told = true {
		if err := f.catchUp(ctx); err != nil {
			return err
		}
		if !more {
			return addLine(f.lines.rest(), to)
		}
		err := to.flush()
		if err == nil && !told {
			_, err = to.to.Write(nil)
		}
		if err != nil {
			return err
		}
		f.lines.release()
		to.release()
		if more, err = wait(); err != nil {
			return err
		}
	}
}

// follower reads the newest file of a log.
type follower struct {
	chain chain
	place *place // has that file only
	file  *growing
	lines scanner
	to    *joiner
}

// open reads the file from an offset on.
func (f *follower) open(off int64) error {
	at := f.place.segments[0]
	f.file = &growing{file: at.file, off: off}
	f.lines = scanner{src: f.file, off: off}
	if !at.packed {
		return nil
	}
	src, err := at.from(off)
	f.file, f.lines.src = nil, src
	return err
}

// catchUp copies all that there is by now, file after file.
func (f *follower) catchUp(ctx context.Context) error {
	if f.file != nil && f.file.cut() {
		if err := f.open(0); err != nil {
			return err
		}
	}
	for {
		if err := drain(ctx, &f.lines, f.to); err != nil {
			return err
		}
		at := f.place.segments[0]
		if !f.chain.moved(at) {
			return nil
		}
		next, err := f.chain.newer(at)
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if next == nil { // removed, or the new one is about to be made
			return nil
		}
		// It is moved when nobody writes to it any more.
		err = drain(ctx, &f.lines, f.to)
		if err == nil {
			err = addLine(f.lines.rest(), f.to)
		}
		at.close()
		f.place.segments[0] = next
		if err == nil {
			err = f.open(0)
		}
		if err != nil {
			return err
		}
	}
}

// growing reads a file to the end that it has by then. It notices when somebody made
// the file shorter, as an engine does that keeps one file only.
type growing struct {
	file *os.File
	off  int64
	// read is what was read last: an entry ends with its time.
	read []byte
}

const remembered = 64

func (g *growing) Read(p []byte) (int, error) {
	n, err := g.file.ReadAt(p, g.off)
	if n == 0 {
		return 0, err
	}
	g.off += int64(n)
	g.read = append(g.read, p[max(0, n-remembered):n]...)
	g.read = append(g.read[:0], g.read[max(0, len(g.read)-remembered):]...)
	return n, nil
}

// cut reports whether what was read last is no longer where it was.
func (g *growing) cut() bool {
	var now [remembered]byte
	n, err := g.file.ReadAt(now[:len(g.read)], g.off-int64(len(g.read)))
	return (err == nil || err == io.EOF) && !bytes.Equal(now[:n], g.read)
}
