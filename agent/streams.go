package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/podkeeper/podkeeper/node/netns"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
	"github.com/podkeeper/podkeeper/server/stream"
)

// execStream answers /exec.
func (p *parts) execStream(w http.ResponseWriter, r *http.Request, t kubeletapi.Target) error {
	id, err := p.runningContainer(r.Context(), t)
	if err != nil {
		return err
	}
	return streamError(stream.Exec(w, r, p.streams(), func(ctx context.Context, command []string, s runtime.Streams) (int, error) {
		return p.runtime.ExecStream(ctx, id, command, s)
	}))
}

// attachStream answers /attach.
func (p *parts) attachStream(w http.ResponseWriter, r *http.Request, t kubeletapi.Target) error {
	id, err := p.runningContainer(r.Context(), t)
	if err != nil {
		return err
	}
	return streamError(stream.Attach(w, r, p.streams(), func(ctx context.Context, s runtime.Streams) error {
		return p.runtime.Attach(ctx, id, s)
	}))
}

// runInContainer answers /run.
func (p *parts) runInContainer(w http.ResponseWriter, r *http.Request, t kubeletapi.Target) error {
	id, err := p.runningContainer(r.Context(), t)
	if err != nil {
		return err
	}
	return streamError(stream.Run(w, r, func(ctx context.Context, command []string, most int) (runtime.ExecResult, error) {
		return p.runtime.Exec(ctx, id, command, most)
	}))
}

// portForward answers /portForward. Each connection finds the sandbox anew: it may
// have been made again since the one before.
func (p *parts) portForward(w http.ResponseWriter, r *http.Request, t kubeletapi.Target) error {
	sandbox, err := p.runningSandbox(r.Context(), t)
	if err != nil {
		return err
	}
	return streamError(stream.PortForward(w, r, p.streams(), func(ctx context.Context, port uint16) (net.Conn, error) {
		now, err := p.runtime.Inspect(ctx, sandbox.ID)
		if err != nil {
			return nil, err
		}
		return netns.Dial(ctx, now.PID, now.ID, port)
	}))
}

func (p *parts) streams() stream.Config { return stream.Config{Idle: p.cfg.API.StreamIdle} }

// runningContainer returns the id of the container that a request names.
func (p *parts) runningContainer(ctx context.Context, t kubeletapi.Target) (string, error) {
	f, err := p.find(ctx, t)
	if err != nil {
		return "", err
	}
	if c, ok := f.newest(); ok && c.State == runtime.Running {
		return c.ID, nil
	}
	return "", kubeletapi.Wrong(kubeletapi.ErrConflict, fmt.Sprintf("container %q of pod %q does not run", f.Name, f.Pod.Name))
}

// runningSandbox returns the sandbox of the pod that a request names.
func (p *parts) runningSandbox(ctx context.Context, t kubeletapi.Target) (runtime.Container, error) {
	f, err := p.findPod(ctx, t)
	if err != nil {
		return runtime.Container{}, err
	}
	for _, c := range f.Containers {
		if c.Name == runtime.SandboxName && c.State == runtime.Running {
			return c, nil
		}
	}
	return runtime.Container{}, kubeletapi.Wrong(kubeletapi.ErrConflict, fmt.Sprintf("pod %q does not run", f.Pod.Name))
}

// streamError gives an error of a stream that did not begin its class.
func streamError(err error) error {
	switch {
	case errors.Is(err, stream.ErrBadRequest):
		return kubeletapi.Wrong(kubeletapi.ErrBadRequest, err.Error())
	case errors.Is(err, stream.ErrForbidden):
		return kubeletapi.Wrong(kubeletapi.ErrForbidden, err.Error())
	case errors.Is(err, runtime.ErrNotFound):
		return kubeletapi.Wrong(kubeletapi.ErrConflict, err.Error())
	case errors.Is(err, runtime.ErrUnavailable):
		return kubeletapi.Wrong(kubeletapi.ErrUnavailable, err.Error())
	default:
		return err
	}
}
