package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podkeeper/podkeeper/pod"
)

// What keeps a pod from being restarted by hand.
var (
	// ErrNoPod: nothing supplies it.
	ErrNoPod = errors.New("no such pod")
	// ErrHeld: what runs of it could not be started again.
	ErrHeld = errors.New("not restarted")
)

// Restart has a pod ended in its order, and started anew as if its manifest had been
// removed and had come back: with volumes of its own that are empty, and also where it
// had come to its end or was evicted. It returns when that is decided, with an error
// that wraps ErrNoPod or ErrHeld where it cannot be, or that of ctx.
func (l *Loop) Restart(ctx context.Context, key pod.Key) error {
	reply := make(chan error, 1)
	l.report(ctx, func(s *state) { reply <- s.restart(key) })
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *state) restart(key pod.Key) error {
	e := s.pods[key]
	switch {
	case e == nil || e.desired == nil:
		return fmt.Errorf("%w: nothing supplies pod %s", ErrNoPod, key)
	case e.plan.Kept != "":
		return fmt.Errorf("%w: pod %s is left as it is, since %s", ErrHeld, key, e.plan.Kept)
	case e.refused != (Waiting{}) && slices.ContainsFunc(e.observed(), liveSandbox):
		return fmt.Errorf("%w: pod %s runs as it was before an edit that waits (%s), and could not be started again", ErrHeld, key, e.refused)
	}
	clear(e.failures)
	e.again = e.plan.UID
	s.deps.Log.Info("pod is restarted by hand", "pod", key)
	s.mark(key)
	return nil
}

// restarted forgets that the pod was to be restarted once the end of what was there is
// written down, or nothing of it is left.
func (e *entry) restarted() {
	rec, remembered := e.records[e.again]
	if rec.State.Leaving || !remembered && len(ofUID(e.observed(), e.again)) == 0 {
		e.again = ""
	}
}
