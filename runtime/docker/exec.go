package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/nsenter"
)

// maxExecStarts is how many commands are being started at a time: each start is
// a process of the engine's with a cost of its own. One that runs costs nothing.
const maxExecStarts = 16

// Exec implements [runtime.Runtime]. A command whose own process has ended when
// ctx does has ended, although something that it left behind holds its output open.
func (r *Runtime) Exec(ctx context.Context, id string, command []string, most int) (runtime.ExecResult, error) {
	e, err := r.own(ctx, id)
	var result runtime.ExecResult
	var into *nsenter.Command
	if err == nil {
		into, err = r.entering(ctx, e, id, command, false)
	}
	switch {
	case err != nil:
	case into != nil:
		result, err = r.execEntering(ctx, *into, most)
	default:
		result, err = r.exec(ctx, e, id, command, most)
	}
	if err != nil {
		return result, fmt.Errorf("exec in container %s: %w", short(id), err)
	}
	return result, nil
}

func (r *Runtime) exec(ctx context.Context, e *engine, id string, command []string, most int) (runtime.ExecResult, error) {
	r.leftBehind(ctx, e, id)
	exec, stream, err := r.startExec(ctx, e, id, command, runtime.Streams{})
	if exec == "" {
		return runtime.ExecResult{}, err
	}
	output := &head{most: most}
	if err == nil {
		// Closing it is what ends a read when ctx does.
		stop := context.AfterFunc(ctx, stream.Close)
		_, err = stdcopy.StdCopy(output, output, stream.Reader)
		if stop() {
			stream.Close()
		}
	}
	result := runtime.ExecResult{Output: output.data}
	if err == nil && ctx.Err() == nil {
		// It may close its output and go on.
		if result.ExitCode, err = r.awaitExec(ctx, e, exec); err == nil {
			return result, nil
		}
	}
	code, itself, failed := r.killExec(context.WithoutCancel(ctx), e, id, exec)
	switch {
	case failed != nil:
		return result, errors.Join(ctx.Err(), failed)
	case itself:
		result.ExitCode = code
		return result, nil
	case ctx.Err() != nil:
		return result, ctx.Err()
	default:
		return result, classify(err)
	}
}

// startExec starts the command. On an error the id is that of one that may run
// all the same, "" where none does.
func (r *Runtime) startExec(ctx context.Context, e *engine, id string, command []string, s runtime.Streams) (string, types.HijackedResponse, error) {
	var none types.HijackedResponse
	select {
	case r.execs <- struct{}{}:
		defer func() { <-r.execs }()
	case <-ctx.Done():
		return "", none, ctx.Err()
	}
	created, err := e.ContainerExecCreate(ctx, id, container.ExecOptions{
		AttachStdin: s.Stdin != nil, AttachStdout: true, AttachStderr: true, Tty: s.TTY, DetachKeys: execMark, Cmd: command,
	})
	switch {
	case ctx.Err() != nil:
		return "", none, ctx.Err()
	case errdefs.IsConflict(err): // it does not run
		return "", none, class(runtime.ErrNotFound, err)
	case err != nil:
		return "", none, classify(err)
	}
	stream, err := e.ContainerExecAttach(ctx, created.ID, container.ExecAttachOptions{Tty: s.TTY})
	if err != nil {
		return created.ID, none, err
	}
	return created.ID, stream, nil
}

// execPoll is how often a command is looked at of whose end no stream tells.
const execPoll = 50 * time.Millisecond

// awaitExec waits until a command whose output ended has ended itself.
func (r *Runtime) awaitExec(ctx context.Context, e *engine, exec string) (exitCode int, err error) {
	tick := time.NewTicker(execPoll)
	defer tick.Stop()
	for {
		in, err := e.ContainerExecInspect(ctx, exec)
		if err != nil || !in.Running {
			return in.ExitCode, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// killExec ends a command, with all that it started, and returns when the engine
// knows; itself says that it had ended before. The engine has no call for this,
// but it tells the process.
func (r *Runtime) killExec(ctx context.Context, e *engine, id, exec string) (exitCode int, itself bool, err error) {
	ctx, cancel := r.limit(ctx, inspectTimeout)
	defer cancel()
	tick := time.NewTicker(execPoll)
	defer tick.Stop()
	killed := false
	for unborn := 0; ; {
		in, err := e.ContainerExecInspect(ctx, exec)
		switch {
		case errdefs.IsNotFound(err): // it went with its container
			return 0, false, nil
		case err != nil:
			return 0, false, classify(err)
		case in.Pid > 0 && !in.Running:
			return in.ExitCode, !killed, nil
		case in.Pid > 0:
			alive, err := nsenter.KillTree(in.Pid, id)
			if err != nil {
				return 0, false, fmt.Errorf("kill the command: %w", err)
			}
			killed = killed || alive
		case !in.Running:
			// Not started; if the engine did not hear of the start, it never will be.
			if unborn++; unborn > 10 {
				return 0, false, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, false, fmt.Errorf("%w: a command that was killed does not end", runtime.ErrUnavailable)
		}
	}
}

// head keeps the beginning of what is written to it.
type head struct {
	data []byte
	most int
}

func (h *head) Write(p []byte) (int, error) {
	h.data = append(h.data, p[:min(len(p), max(h.most-len(h.data), 0))]...)
	return len(p), nil
}
