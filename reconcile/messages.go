package reconcile

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/runtime"
)

// Messages keeps the files into which containers write why they end.
type Messages interface {
	// MakeMessage makes the file of an attempt, which everybody may write, and
	// returns its path on the host. One that is there stays.
	MakeMessage(uid types.UID, container string, attempt int) (path string, err error)
	// ReadMessage returns the end of it, at most so many bytes, nothing where there
	// is none.
	ReadMessage(uid types.UID, container string, attempt, most int) ([]byte, error)
}

// messageMount makes the file for what an attempt says of its end. None is mounted
// where the container mounts something itself.
func (j job) messageMount(s Step, c *v1.Container, others []runtime.Mount) ([]runtime.Mount, error) {
	if j.deps.Messages == nil || c.TerminationMessagePath == "" {
		return nil, nil
	}
	for _, m := range others {
		if m.ContainerPath == c.TerminationMessagePath {
			return nil, nil
		}
	}
	path, err := j.deps.Messages.MakeMessage(s.UID, s.Container, s.Attempt)
	if err != nil {
		return nil, err
	}
	return []runtime.Mount{{HostPath: path, ContainerPath: c.TerminationMessagePath}}, nil
}

// readMessage returns what a container said of its end: what it wrote for that,
// else, where it asks for it and has failed, the end of its log.
func (j job) readMessage(ctx context.Context, s Step) (string, error) {
	if j.deps.Messages == nil {
		return "", nil
	}
	said, err := j.deps.Messages.ReadMessage(s.UID, s.Container, s.Attempt, maxMessage)
	if err != nil {
		return "Error on reading termination log", nil
	}
	c := containerOf(j.pod.Object, s.Container)
	if len(said) > 0 || c == nil || c.TerminationMessagePolicy != v1.TerminationMessageFallbackToLogsOnError || !j.failed(s.ID) {
		return string(said), nil
	}
	said, err = j.deps.Runtime.LogTail(ctx, s.ID, maxMessageLines, maxLogMessage)
	if errors.Is(err, runtime.ErrNotFound) {
		return "", nil
	}
	return string(said), err
}

func (j job) failed(id string) bool {
	for _, c := range j.observed {
		if c.ID == id {
			return c.ExitCode != 0
		}
	}
	return false
}
