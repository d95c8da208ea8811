package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/node/logfile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

// logs finds the log of a container: see kubeletapi.Answers.
func (p *parts) logs(ctx context.Context, q kubeletapi.LogQuery) (kubeletapi.Log, error) {
	found, err := p.find(ctx, q.Target)
	if err != nil {
		return kubeletapi.Log{}, err
	}
	c, err := found.logged(q.Previous)
	if err != nil {
		return kubeletapi.Log{}, err
	}
	return kubeletapi.Log{
		ContainerID: containerID(c),
		Copy:        func(ctx context.Context, to io.Writer) error { return p.copyLog(ctx, c, q, to) },
	}, nil
}

func containerID(c runtime.Container) string { return "docker://" + c.ID }

// logged returns the attempt whose log is asked for, as the kubelet chooses it: of a
// container that waits to be started again it is the last one. The error is of class
// [kubeletapi.ErrBadRequest].
func (f foundContainer) logged(previous bool) (runtime.Container, error) {
	status := f.status()
	last := status.LastTerminationState.Terminated
	if previous {
		if last == nil {
			return runtime.Container{}, kubeletapi.Wrong(kubeletapi.ErrBadRequest, fmt.Sprintf("previous terminated container %q in pod %q not found", f.Name, f.Pod.Name))
		}
		for _, c := range f.Attempts {
			if containerID(c) == last.ContainerID {
				return c, nil
			}
		}
		return runtime.Container{}, kubeletapi.Wrong(kubeletapi.ErrBadRequest, fmt.Sprintf("the log of the previous container %q in pod %q is gone with it", f.Name, f.Pod.Name))
	}
	if c, ok := f.newest(); ok {
		return c, nil
	}
	why := "no logs yet"
	if w := status.State.Waiting; w != nil {
		why = cmp.Or(w.Reason, why)
	}
	return runtime.Container{}, kubeletapi.Wrong(kubeletapi.ErrBadRequest, fmt.Sprintf("container %q in pod %q is waiting to start: %s", f.Name, f.Pod.Name, why))
}

// status is the container's own; zero where there is none yet.
func (f foundContainer) status() v1.ContainerStatus {
	s := f.Pod.Status
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses) {
		if c.Name == f.Name {
			return c
		}
	}
	return v1.ContainerStatus{}
}

// copyLog reads the engine's file where there is one, and asks the engine otherwise.
func (p *parts) copyLog(ctx context.Context, c runtime.Container, q kubeletapi.LogQuery, to io.Writer) error {
	if c.LogPath == "" {
		return p.copyEngineLog(ctx, c, q, to)
	}
	o := logfile.Options{Tail: q.Tail, Since: q.Since, Timestamps: q.Timestamps, Limit: q.Limit}
	switch q.Stream {
	case "stdout":
		o.Stream = logfile.Stdout
	case "stderr":
		o.Stream = logfile.Stderr
	}
	err := p.readLog(ctx, c, o, q.Follow, to)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return p.copyEngineLog(ctx, c, q, to) // the engine's files are not ours to see
	}
	return err
}

func (p *parts) readLog(ctx context.Context, c runtime.Container, o logfile.Options, follow bool, to io.Writer) error {
	if !follow || c.State != runtime.Running {
		return logfile.Copy(ctx, c.LogPath, o, to)
	}
	ended, stop, err := p.endings.of(ctx, c.ID)
	if err != nil {
		return err
	}
	defer stop()
	return logfile.Follow(ctx, c.LogPath, o, to, &p.logWatcher, ended)
}

// copyEngineLog is for log drivers that write no file that is known.
func (p *parts) copyEngineLog(ctx context.Context, c runtime.Container, q kubeletapi.LogQuery, to io.Writer) error {
	if c.FailedStart() {
		return nil // it never wrote anything
	}
	out := &beginning{to: to, left: q.Limit}
	err := p.runtime.Logs(ctx, c.ID, runtime.LogQuery{
		Follow: q.Follow, Tail: q.Tail, Since: q.Since, Timestamps: q.Timestamps,
		Stdout: q.Stream != "stderr", Stderr: q.Stream != "stdout",
	}, out)
	switch {
	case out.full:
		return nil
	case errors.Is(err, runtime.ErrUnsupported):
		return kubeletapi.Wrong(kubeletapi.ErrBadRequest, fmt.Sprintf("the log of container %q cannot be read: %v", c.Name, err))
	case errors.Is(err, runtime.ErrNotFound):
		return kubeletapi.Wrong(kubeletapi.ErrNotFound, fmt.Sprintf("the log of container %q is gone with it", c.Name))
	case errors.Is(err, runtime.ErrUnavailable):
		return kubeletapi.Wrong(kubeletapi.ErrUnavailable, err.Error())
	}
	return err
}

// beginning ends with an error when as many bytes were written as are wanted.
type beginning struct {
	to   io.Writer
	left int64 // 0 is no limit
	full bool
}

var errLimit = errors.New("limit reached")

func (l *beginning) Write(b []byte) (int, error) {
	if l.left == 0 {
		return l.to.Write(b)
	}
	part := b[:min(int64(len(b)), l.left)]
	if n, err := l.to.Write(part); err != nil {
		return n, err
	}
	if l.left -= int64(len(part)); l.left == 0 {
		l.full = true
		return len(part), errLimit
	}
	return len(b), nil
}
