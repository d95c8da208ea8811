package fake

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// ExecStream implements runtime.Runtime. What the command is, Config.Exec says.
func (c *Client) ExecStream(ctx context.Context, id string, command []string, s runtime.Streams) (int, error) {
	if s.Stdin != nil {
		defer s.Stdin.Close()
	}
	code, err := c.exec(ctx, id, command, s)
	if err != nil {
		return 0, fmt.Errorf("exec in container %s: %w", id, err)
	}
	return code, nil
}

// Attach implements runtime.Runtime. What a container said before is past.
func (c *Client) Attach(ctx context.Context, id string, s runtime.Streams) error {
	if s.Stdin != nil {
		defer s.Stdin.Close()
	}
	name := c.name(id)
	var p Program
	var died, broken chan struct{}
	err := c.do(ctx, "attach", name, time.Millisecond, 10*time.Millisecond, func() error {
		found, err := c.running(id)
		if err != nil {
			return err
		}
		died, broken = found.done, c.engine.broken
		if spec := found.Spec; spec != nil { // a sandbox neither reads nor writes
			p = Program{Cat: found.program.Cat, Sizes: found.program.Sizes}
			s.TTY = spec.TTY
		}
		if s.Stdin != nil && (found.Spec == nil || !found.Spec.Stdin) {
			s.Stdin.Close()
			s.Stdin = nil
		}
		return nil
	})
	if err == nil {
		_, err = c.converse(ctx, name, p, s, nil, died, broken)
	}
	if err != nil {
		return fmt.Errorf("attach to container %s: %w", id, err)
	}
	return nil
}

// running returns a container of ours that runs.
func (c *Client) running(id string) (*container, error) {
	found, err := c.ours(id)
	if err == nil && found.State != runtime.Running {
		return nil, fmt.Errorf("container %s does not run: %w", found.Name, runtime.ErrNotFound)
	}
	return found, err
}

// converse is what a program and its user say until it ended, its container died,
// the engine broke, or ctx ended. ended is nil, or never closed, for one that goes on.
func (c *Client) converse(ctx context.Context, what string, p Program, s runtime.Streams, ended, died, broken chan struct{}) (int, error) {
	over, out, done := make(chan struct{}), &screen{Writer: s.Stdout}, make(chan struct{})
	var talk sync.WaitGroup
	talk.Go(func() {
		say(p, s, out, over)
		if out.failed != nil || p.Cat && ended != nil {
			close(done)
		}
	})
	select {
	case <-ended:
	case <-done:
	case <-died:
	case <-broken:
	case <-c.fence:
	case <-ctx.Done():
	}
	close(over)
	if s.Stdin != nil {
		s.Stdin.Close()
	}
	itself := closed(done) || ended != nil && closed(ended)
	talk.Wait()
	switch {
	case closed(c.fence):
		return 0, errFenced
	case closed(broken):
		return 0, c.engine.Fate.Do(ctx, Call{Verb: "exec-wait", Object: what, Max: 5 * time.Millisecond, Fence: c.fence}, func() error { return errBroken })
	case out.failed != nil:
		return 0, out.failed
	case itself:
		return p.Code, nil
	case closed(died):
		return 137, nil
	default:
		return 0, ctx.Err()
	}
}

// screen shows what a program writes to whoever looks on.
type screen struct {
	io.Writer // nil is nobody
	failed    error
}

func (s *screen) Write(b []byte) (int, error) {
	if s.Writer == nil || len(b) == 0 {
		return len(b), nil
	}
	n, err := s.Writer.Write(b)
	s.failed = err
	return n, err
}

// say writes what a program writes, until there is nothing more, it cannot be
// written, or over is closed.
func say(p Program, s runtime.Streams, out *screen, over chan struct{}) {
	_, err := io.WriteString(out, p.Say)
	if err == nil && p.Cat && s.Stdin != nil {
		_, err = io.Copy(out, s.Stdin)
	}
	for err == nil && p.Sizes && s.TTY {
		select {
		case size, more := <-s.Resize:
			if !more {
				s.Resize = nil
				continue
			}
			_, err = fmt.Fprintf(out, "%d %d\n", size.Height, size.Width)
		case <-over:
			return
		}
	}
}
