package logfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// Copy writes what there is of the log at a path, and returns. Each Write is as much
// as is known for now. The error is fs.ErrNotExist where there is no log, that of a
// Write, or the context's.
func Copy(ctx context.Context, path string, o Options, to io.Writer) error {
	return read(ctx, path, o, to, func(from *place, lines *joiner) error {
		return copyAll(ctx, from.segments, from.off, lines)
	})
}

// Follow does as Copy, and goes on with what is written from then on, until ended is
// closed: then it writes the rest, and returns. Nothing may be written to the log
// after that. A Write of nothing says that all is there that was known at first.
func Follow(ctx context.Context, path string, o Options, to io.Writer, w *Watcher, ended <-chan struct{}) error {
	changed, period, stop := w.subscribe(filepath.Dir(path))
	defer stop()
	wait := func() (more bool, err error) {
		timer := time.NewTimer(period)
		defer timer.Stop()
		select {
		case <-changed:
			return true, nil
		case <-timer.C:
			return true, nil
		case <-ended:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return read(ctx, path, o, to, func(from *place, lines *joiner) error {
		return follow(ctx, chain(path), from, lines, wait)
	})
}

func read(ctx context.Context, path string, o Options, to io.Writer, do func(*place, *joiner) error) error {
	from, err := chain(path).seek(o)
	defer func() { from.close() }()
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	lines := newJoiner(o, from.drop, to)
	err = do(&from, lines)
	if err == nil {
		err = lines.finish()
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// copyAll copies files, from an offset in the first one on, as long as they were when
// they were opened: a log that grows faster than it is read would have no end.
func copyAll(ctx context.Context, files []*segment, off int64, to *joiner) error {
	for _, s := range files {
		src, err := s.from(off)
		if err != nil {
			return err
		}
		if !s.packed {
			src = io.LimitReader(src, max(s.size-off, 0))
		}
		lines := scanner{src: src}
		if err := drain(ctx, &lines, to); err != nil {
			return err
		}
		if err := addLine(lines.rest(), to); err != nil {
			return err
		}
		off = 0
	}
	return nil
}

// drain copies the lines that there are.
func drain(ctx context.Context, from *scanner, to *joiner) error {
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, _, err := from.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // or it is being compressed
			return nil
		case err != nil:
			return fmt.Errorf("read log: %w", err)
		}
		if err := addLine(line, to); err != nil {
			return err
		}
	}
}

func addLine(line []byte, to *joiner) error {
	if e, ok := parse(line); ok {
		return to.add(e)
	}
	return nil
}
