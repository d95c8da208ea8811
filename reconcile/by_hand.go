package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// What keeps something from being done to a pod by hand.
var (
	// ErrNoPod: nothing supplies it.
	ErrNoPod = errors.New("no such pod")
	// ErrNoContainer: the pod has none of that name.
	ErrNoContainer = errors.New("no such container")
	// ErrHeld: what runs of it could not be started again.
	ErrHeld = errors.New("not restarted")
	// ErrNotStopped: what runs of it is left as it is.
	ErrNotStopped = errors.New("not stopped")
)

// Restart has a pod ended in its order, and started anew as if its manifest had been
// removed and had come back: with volumes of its own that are empty, and also where it
// had come to its end or was evicted. It returns when that is decided, with an error
// that wraps ErrNoPod or ErrHeld where it cannot be, or that of ctx.
func (l *Loop) Restart(ctx context.Context, key pod.Key) error {
	return l.byHand(ctx, func(s *state, reply chan<- error) { reply <- s.restart(key) })
}

// RestartContainer has one container of a pod, no other, ended and followed by another
// attempt, as an edit of it would. One that had ended, or waits for its next try, runs at
// once. It returns as Restart does, or with an error that wraps ErrNoContainer; where it
// has not run yet and nothing of it could be hurried, that is ErrHeld.
func (l *Loop) RestartContainer(ctx context.Context, key pod.Key, container string) error {
	return l.byHand(ctx, func(s *state, reply chan<- error) { reply <- s.restartContainer(key, container) })
}

// Stop has a pod ended in its order and held until Start is called, whatever its
// manifest says meanwhile and over restarts of the agent. Its folder and its ended
// containers stay. It returns when that is written down; its error wraps ErrNoPod or
// ErrNotStopped, says why it was not written down, or is that of ctx.
func (l *Loop) Stop(ctx context.Context, key pod.Key) error {
	return l.byHand(ctx, func(s *state, reply chan<- error) { s.stopByHand(key, reply) })
}

// Start lets a pod that is held go on. It returns when that is written down, also
// where the pod is not held; its error wraps ErrNoPod, says why it was not written
// down, or is that of ctx.
func (l *Loop) Start(ctx context.Context, key pod.Key) error {
	return l.byHand(ctx, func(s *state, reply chan<- error) { s.startByHand(key, reply) })
}

// byHand has f decide, which replies once.
func (l *Loop) byHand(ctx context.Context, f func(*state, chan<- error)) error {
	reply := make(chan error, 1)
	l.report(ctx, func(s *state) { f(s, reply) })
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startable returns the pod that is to be restarted, or why it cannot be.
func (s *state) startable(key pod.Key) (*entry, error) {
	e := s.pods[key]
	switch {
	case e == nil || e.desired == nil:
		return nil, fmt.Errorf("%w: nothing supplies pod %s", ErrNoPod, key)
	case e.plan.Kept != "":
		return nil, fmt.Errorf("%w: pod %s is left as it is, since %s", ErrHeld, key, e.plan.Kept)
	case !s.held[key].IsZero():
		return nil, fmt.Errorf("%w: pod %s is stopped by hand until it is started by hand", ErrHeld, key)
	case e.refused != (Waiting{}) && slices.ContainsFunc(e.observed(), liveSandbox):
		return nil, fmt.Errorf("%w: pod %s runs as it was before an edit that waits (%s), and could not be started again", ErrHeld, key, e.refused)
	default:
		return e, nil
	}
}

func (s *state) restart(key pod.Key) error {
	e, err := s.startable(key)
	if err != nil {
		return err
	}
	clear(e.failures)
	e.again = e.plan.UID
	s.deps.Log.Info("pod is restarted by hand", "pod", key)
	s.deps.tell(handEvent(e, RestartedByHand, "", "Restarting the pod by hand"))
	s.mark(key)
	return nil
}

func (s *state) restartContainer(key pod.Key, name string) error {
	e, err := s.startable(key)
	if err != nil {
		return err
	}
	all := members(e.desired.Object)
	at := slices.IndexFunc(all, func(m member) bool { return m.Name == name })
	switch {
	case at < 0:
		return fmt.Errorf("%w: pod %s has no container %q", ErrNoContainer, key, name)
	case all[at].kind == initial:
		return fmt.Errorf("%w: %s is an init container of pod %s, which runs when the whole pod is restarted", ErrHeld, name, key)
	case e.plan.State.Evicted != nil || e.plan.State.End != (End{}):
		return fmt.Errorf("%w: pod %s is over: only the whole of it can be restarted", ErrHeld, key)
	}
	newest, ran := newestOf(ofUID(e.observed(), e.plan.UID), name)
	ran = ran && newest.State != runtime.Created
	_, failed := e.failures[name]
	if hurried := s.retryImages(e, all[at]); !ran && !failed && !hurried {
		return fmt.Errorf("%w: container %s of pod %s has not run yet", ErrHeld, name, key)
	}
	delete(e.failures, name)
	if ran {
		e.anew[name] = newest.ID
	}
	s.deps.Log.Info("container is restarted by hand", "pod", key, "container", name)
	s.deps.tell(handEvent(e, RestartedByHand, name, "Restarting container "+name+" by hand"))
	s.mark(key)
	return nil
}

// retryImages has the images of a container tried at once that could not be had, and
// reports whether there are any.
func (s *state) retryImages(e *entry, m member) (some bool) {
	for _, need := range neededBy(e.desired.Object, m.Container) {
		if i := s.images[imageKeyOf(e.desired, need.name)]; i != nil && i.op.Verb == "" && (i.Failed > 0 || i.Missed > 0) {
			i.forget()
			some = true
		}
	}
	return some
}

func (s *state) stopByHand(key pod.Key, reply chan<- error) {
	e := s.pods[key]
	switch {
	case e == nil || e.desired == nil && e.plan.Pod == nil:
		reply <- fmt.Errorf("%w: nothing supplies pod %s", ErrNoPod, key)
	case e.plan.Pod == nil && e.plan.Kept != "":
		reply <- fmt.Errorf("%w: pod %s is left as it is, since %s", ErrNotStopped, key, e.plan.Kept)
	case !s.held[key].IsZero():
		reply <- nil
	default:
		s.changeHold(holdChange{key, s.cfg.Wall(), reply})
	}
}

func (s *state) startByHand(key pod.Key, reply chan<- error) {
	switch e := s.pods[key]; {
	case !s.held[key].IsZero():
		s.changeHold(holdChange{key, time.Time{}, reply})
	case e == nil || e.desired == nil:
		reply <- fmt.Errorf("%w: nothing supplies pod %s", ErrNoPod, key)
	default:
		reply <- nil
	}
}

// restarted forgets that the pod was to be restarted once the end of what was there is
// written down, or nothing of it is left; and so of its containers.
func (e *entry) restarted() {
	rec, remembered := e.records[e.again]
	if rec.State.Leaving || !remembered && len(ofUID(e.observed(), e.again)) == 0 {
		e.again = ""
	}
	for name, id := range e.anew {
		stopped := e.records[e.plan.UID].State.container(name).Stopped
		if newest, ok := newestOf(ofUID(e.observed(), e.plan.UID), name); stopped.ByHand && stopped.ID == id || !ok || newest.ID != id {
			delete(e.anew, name)
		}
	}
}

// handEvent tells of what somebody did to a pod.
func handEvent(e *entry, reason Reason, container, message string) pod.Event {
	return pod.Event{Type: pod.EventNormal, Reason: string(reason), Pod: e.key, UID: e.plan.UID, Container: container, Message: message}
}
