package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/nsenter"
)

// ExecHandler is what runs commands in containers.
type ExecHandler string

// The handlers, by the names that the kubelet had for them.
const (
	// NativeExec is the engine's own exec.
	NativeExec ExecHandler = "native"
	// NsenterExec is this program, which enters the container: see package nsenter.
	NsenterExec ExecHandler = "nsenter"
)

// CheckExecHandler says what is wrong with a handler for the engine at host, which is
// as [Config] has it.
func CheckExecHandler(h ExecHandler, host string) error {
	switch h {
	case "", NativeExec:
		return nil
	case NsenterExec:
	default:
		return fmt.Errorf("%q: want %s or %s", h, NativeExec, NsenterExec)
	}
	if host := cmp.Or(host, dockerHostFromEnv()); !strings.HasPrefix(host, "unix://") {
		return fmt.Errorf("%s needs an engine whose processes are this machine's, behind a unix:// socket; of %s that cannot be known", h, host)
	}
	return nil
}

// entering returns how to run a command without the engine, or nil where the engine has
// to.
func (r *Runtime) entering(ctx context.Context, e *engine, id string, args []string, tty bool) (*nsenter.Command, error) {
	if r.commands == nil {
		return nil, nil
	}
	in, err := r.lookup(ctx, e, id)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, classify(err)
	case in.State == nil || !in.State.Running || in.State.Paused || in.State.Pid == 0:
		return nil, fmt.Errorf("%w: it does not run", runtime.ErrNotFound)
	case !canEnter(in) || nsenter.OwnUsers(in.State.Pid):
		return nil, nil
	}
	return new(commandIn(in, args, tty)), nil
}

// canEnter leaves out what another runtime than the engine's usual one has made: it may
// be a machine of its own, of which the process that is seen is the outside.
func canEnter(in container.InspectResponse) bool {
	return in.HostConfig != nil && slices.Contains([]string{"", "runc", "io.containerd.runc.v2"}, in.HostConfig.Runtime)
}

// enginePath is the PATH that the engine gives where an image has none.
const enginePath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// commandIn is a command as the engine would run it in a container.
func commandIn(in container.InspectResponse, args []string, tty bool) nsenter.Command {
	env := []string{enginePath, "HOSTNAME=" + in.Config.Hostname}
	if tty {
		env = append(env, "TERM=xterm")
	}
	env = slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(in.Config.Env, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
	return nsenter.Command{
		PID: in.State.Pid, Container: in.ID,
		Args: args, Env: append(env, in.Config.Env...), Dir: in.Config.WorkingDir,
		User: in.Config.User, Groups: in.HostConfig.GroupAdd, TTY: tty,
	}
}

func (r *Runtime) execEntering(ctx context.Context, c nsenter.Command, most int) (runtime.ExecResult, error) {
	output := &head{most: most}
	c.OneOutput = true
	came, err := r.enter(ctx, c, runtime.Streams{Stdout: output})
	if came.Ended {
		err = nil
	}
	return runtime.ExecResult{Output: output.data, ExitCode: came.Code}, err
}

func (r *Runtime) streamEntering(ctx context.Context, c nsenter.Command, s runtime.Streams) (int, error) {
	came, err := r.enter(ctx, c, s)
	return came.Code, err
}

func (r *Runtime) enter(ctx context.Context, c nsenter.Command, s runtime.Streams) (nsenter.Result, error) {
	came, err := r.commands.Run(ctx, c, s)
	if errors.Is(err, nsenter.ErrGone) {
		err = class(runtime.ErrNotFound, err)
	}
	return came, err
}
