package docker

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/podkeeper/podkeeper/runtime"
)

// LogTail implements [runtime.Runtime].
func (r *Runtime) LogTail(ctx context.Context, id string, lines, bytes int) ([]byte, error) {
	text, err := r.logTail(ctx, id, lines, bytes)
	if err != nil {
		return nil, fmt.Errorf("read the log of container %s: %w", short(id), err)
	}
	return text, nil
}

func (r *Runtime) logTail(ctx context.Context, id string, lines, bytes int) ([]byte, error) {
	e, err := r.own(ctx, id)
	if err != nil {
		return nil, err
	}
	in, err := r.lookup(ctx, e, id)
	if err != nil {
		return nil, classify(err)
	}
	ctx, cancel := r.limit(ctx, listTimeout)
	defer cancel()
	end := &tail{most: bytes}
	err = copyLog(ctx, e, in, runtime.LogQuery{Tail: int64(lines), Stdout: true, Stderr: true}, end)
	return end.data, classify(err)
}

// Logs implements [runtime.Runtime].
func (r *Runtime) Logs(ctx context.Context, id string, q runtime.LogQuery, out io.Writer) error {
	if err := r.logs(ctx, id, q, out); err != nil {
		return fmt.Errorf("read the log of container %s: %w", short(id), err)
	}
	return nil
}

func (r *Runtime) logs(ctx context.Context, id string, q runtime.LogQuery, out io.Writer) error {
	e, err := r.own(ctx, id)
	if err != nil {
		return err
	}
	in, err := r.lookup(ctx, e, id)
	if err != nil {
		return classify(err)
	}
	to := &checked{to: out}
	err = copyLog(ctx, e, in, q, to)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case to.failed != nil:
		return to.failed
	case errdefs.IsNotImplemented(err):
		return class(runtime.ErrUnsupported, err)
	}
	return classify(err)
}

// copyLog writes both streams to one.
func copyLog(ctx context.Context, e *engine, in container.InspectResponse, q runtime.LogQuery, out io.Writer) error {
	o := container.LogsOptions{ShowStdout: q.Stdout, ShowStderr: q.Stderr, Follow: q.Follow, Timestamps: q.Timestamps, Tail: "all"}
	if q.Tail >= 0 {
		o.Tail = strconv.FormatInt(q.Tail, 10)
	}
	if !q.Since.IsZero() {
		o.Since = fmt.Sprintf("%d.%09d", q.Since.Unix(), q.Since.Nanosecond())
	}
	stream, err := e.ContainerLogs(ctx, in.ID, o)
	if err != nil {
		return err
	}
	defer stream.Close()
	if q.Follow {
		if _, err := out.Write(nil); err != nil {
			return err
		}
	}
	if in.Config != nil && in.Config.Tty { // one stream, which bears no headers
		_, err = io.Copy(out, stream)
	} else {
		_, err = stdcopy.StdCopy(out, out, stream)
	}
	return err
}

// checked remembers the error of a write, which is not the engine's.
type checked struct {
	to     io.Writer
	failed error
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.failed = err
	return n, err
}

// tail keeps the end of what is written to it.
type tail struct {
	data []byte
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p[max(len(p)-t.most, 0):]...)
	t.data = t.data[max(len(t.data)-t.most, 0):]
	return len(p), nil
}
