package fake

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// LogTail implements runtime.Runtime. A container that was started said what its
// program says, once for each start.
func (c *Client) LogTail(ctx context.Context, id string, lines, bytes int) ([]byte, error) {
	text := ""
	err := c.do(ctx, "logs", c.name(id), time.Millisecond, 10*time.Millisecond, func() error {
		found, err := c.ours(id)
		if err == nil {
			text = strings.Repeat(found.program.Say, found.run)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the log of container %s: %w", id, err)
	}
	all := slices.Collect(strings.Lines(text))
	text = strings.Join(all[max(len(all)-lines, 0):], "")
	return []byte(text[max(len(text)-bytes, 0):]), nil
}

// Logs implements runtime.Runtime. A container writes when it starts, to stdout, and
// nothing later.
func (c *Client) Logs(ctx context.Context, id string, q runtime.LogQuery, out io.Writer) error {
	var found *container
	var text string
	var started time.Time
	var done, broken chan struct{}
	err := c.do(ctx, "logs", c.name(id), time.Millisecond, 10*time.Millisecond, func() (err error) {
		if found, err = c.ours(id); err == nil {
			text, started, done, broken = strings.Repeat(found.program.Say, found.run), found.Started, found.done, c.engine.broken
		}
		return err
	})
	if err == nil && q.Follow {
		_, err = out.Write(nil)
	}
	if err == nil {
		err = writeLog(out, text, started, q)
	}
	if err != nil {
		return fmt.Errorf("read the log of container %s: %w", id, err)
	}
	if !q.Follow {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-broken:
		return fmt.Errorf("read the log of container %s: %w", id, errBroken)
	case <-c.fence:
		return errFenced
	case <-ctx.Done():
		return ctx.Err()
	}
}

func writeLog(out io.Writer, text string, at time.Time, q runtime.LogQuery) error {
	if !q.Stdout || at.Before(q.Since) {
		return nil
	}
	lines := slices.Collect(strings.Lines(text))
	if q.Tail >= 0 {
		lines = lines[max(0, len(lines)-int(q.Tail)):]
	}
	for _, line := range lines {
		if q.Timestamps {
			line = at.UTC().Format("2006-01-02T15:04:05.000000000Z07:00 ") + line
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
	}
	return nil
}
