package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/nsenter"
)

// ExecStream implements [runtime.Runtime]. It waits for the end of the output, which
// something that the command left behind may hold open, as docker exec does.
func (r *Runtime) ExecStream(ctx context.Context, id string, command []string, s runtime.Streams) (int, error) {
	defer closeInput(s)
	e, err := r.own(ctx, id)
	var code int
	var into *nsenter.Command
	if err == nil {
		into, err = r.entering(ctx, e, id, command, s.TTY)
	}
	switch {
	case err != nil:
	case into != nil:
		code, err = r.streamEntering(ctx, *into, s)
	default:
		code, err = r.execStream(ctx, e, id, command, s)
	}
	if err != nil {
		return 0, fmt.Errorf("exec in container %s: %w", short(id), err)
	}
	return code, nil
}

func (r *Runtime) execStream(ctx context.Context, e *engine, id string, command []string, s runtime.Streams) (int, error) {
	r.leftBehind(ctx, e, id)
	exec, stream, err := r.startExec(ctx, e, id, command, s)
	if exec == "" {
		return 0, err
	}
	if err == nil {
		err = converse(ctx, stream, s, s.TTY, []byte{endOfTransmission}, func(ctx context.Context, size runtime.TerminalSize) error {
			return e.ContainerExecResize(ctx, exec, container.ResizeOptions{Width: uint(size.Width), Height: uint(size.Height)})
		})
	}
	if err == nil && ctx.Err() == nil {
		var code int
		if code, err = r.awaitExec(ctx, e, exec); err == nil {
			return code, nil
		}
	}
	_, _, failed := r.killExec(context.WithoutCancel(ctx), e, id, exec)
	return 0, errors.Join(cmp.Or(ctx.Err(), classify(err)), failed)
}

// Attach implements [runtime.Runtime]. The keys with which one leaves a terminal are
// the engine's own, ctrl-p ctrl-q.
func (r *Runtime) Attach(ctx context.Context, id string, s runtime.Streams) error {
	defer closeInput(s)
	e, err := r.own(ctx, id)
	if err == nil {
		err = r.attach(ctx, e, id, s)
	}
	if err != nil {
		return fmt.Errorf("attach to container %s: %w", short(id), err)
	}
	return nil
}

func (r *Runtime) attach(ctx context.Context, e *engine, id string, s runtime.Streams) error {
	in, err := r.lookup(ctx, e, id)
	switch {
	case err != nil:
		return classify(err)
	case in.State == nil || !in.State.Running:
		return fmt.Errorf("%w: it does not run", runtime.ErrNotFound)
	case !in.Config.OpenStdin:
		closeInput(s)
		s.Stdin = nil
	}
	stream, err := e.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: s.Stdin != nil, Stdout: true, Stderr: true})
	if err != nil {
		return classify(err)
	}
	// The process is not the client's to end: its terminal goes on.
	err = converse(ctx, stream, s, in.Config.Tty, nil, func(ctx context.Context, size runtime.TerminalSize) error {
		return e.ContainerResize(ctx, id, container.ResizeOptions{Width: uint(size.Width), Height: uint(size.Height)})
	})
	return cmp.Or(ctx.Err(), classify(err))
}

func closeInput(s runtime.Streams) {
	if s.Stdin != nil {
		s.Stdin.Close()
	}
}

// converse carries what is said between an engine's connection and its user until
// the output ends, or ctx, and closes both the connection and the input. end is what a
// terminal is told at the end of the input.
func converse(ctx context.Context, stream types.HijackedResponse, s runtime.Streams, tty bool, end []byte, resize func(context.Context, runtime.TerminalSize) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	// Closing it is what ends reads and writes when ctx does.
	stop := context.AfterFunc(ctx, stream.Close)
	if s.Stdin != nil {
		others.Go(func() { feed(ctx, stream, s.Stdin, tty, end) })
	}
	if s.Resize != nil && tty {
		others.Go(func() { follow(ctx, s.Resize, resize) })
	}
	stdout, stderr := cmp.Or[io.Writer](s.Stdout, io.Discard), cmp.Or[io.Writer](s.Stderr, io.Discard)
	var err error
	if tty {
		_, err = io.Copy(stdout, stream.Reader)
	} else {
		_, err = stdcopy.StdCopy(stdout, stderr, stream.Reader)
	}
	if stop() {
		stream.Close()
	}
	closeInput(s)
	cancel()
	others.Wait()
	return err
}

// feed gives the process its input. What cannot be written is what nobody reads any
// more; that its end is near, the output tells.
func feed(ctx context.Context, stream types.HijackedResponse, input io.Reader, tty bool, end []byte) {
	if _, err := io.Copy(stream.Conn, input); err != nil || ctx.Err() != nil {
		return
	}
	if tty {
		// The engine takes the end of a terminal's input for the end of its output.
		_, _ = stream.Conn.Write(end)
		return
	}
	_ = stream.CloseWrite()
}

const endOfTransmission = 4 // ctrl-d

// follow gives a terminal its sizes. The first may come before the process is there.
func follow(ctx context.Context, sizes <-chan runtime.TerminalSize, resize func(context.Context, runtime.TerminalSize) error) {
	var size runtime.TerminalSize
	retry := time.NewTimer(0)
	defer retry.Stop()
	<-retry.C
	for tries := 0; ; {
		select {
		case next, more := <-sizes:
			if !more {
				sizes = nil
				continue
			}
			size, tries = next, 0
		case <-retry.C:
		case <-ctx.Done():
			return
		}
		if size.Width == 0 || size.Height == 0 {
			continue
		}
		if err := resize(ctx, size); err != nil && !errdefs.IsNotFound(err) && tries < 20 {
			tries++
			retry.Reset(execPoll)
		}
	}
}
