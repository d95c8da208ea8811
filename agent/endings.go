package agent

import (
	"context"
	"sync"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// endings tells those who follow logs when the containers have ended. It looks at
// snapshots of the loop, once for all of them, while there is one.
type endings struct {
	snapshot func(ctx context.Context, after uint64) (reconcile.Snapshot, error)
	wake     chan struct{} // somebody waits

	mu      sync.Mutex // guards what follows
	waiting map[string]*ending
	// running are the containers of the latest snapshot that was looked at.
	running  map[string]bool
	revision uint64
}

// ending is that of one container.
type ending struct {
	ended     chan struct{}
	followers int
	// since is the revision from which on a snapshot that does not have the container
	// says that it ended; 0 is not known yet.
	since uint64
}

func newEndings(snapshot func(ctx context.Context, after uint64) (reconcile.Snapshot, error)) *endings {
	return &endings{snapshot: snapshot, wake: make(chan struct{}, 1), waiting: map[string]*ending{}}
}

// of returns what is closed when a container does not run any more. stop has to be
// called. The error is the context's.
func (e *endings) of(ctx context.Context, id string) (ended <-chan struct{}, stop func(), err error) {
	e.mu.Lock()
	w := e.waiting[id]
	if w == nil {
		w = &ending{ended: make(chan struct{})}
		e.waiting[id] = w
	}
	w.followers++
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default: // it was woken already
	}
	stop = func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.followers--; w.followers == 0 && e.waiting[id] == w {
			delete(e.waiting, id)
		}
	}
	// It may have ended before anybody waited.
	snap, err := e.snapshot(ctx, 0)
	if err != nil {
		stop()
		return nil, nil, err
	}
	e.mu.Lock()
	if w.since == 0 {
		w.since = snap.Revision
	}
	e.mu.Unlock()
	e.tell(snap)
	return w.ended, stop, nil
}

// run looks until ctx ends.
func (e *endings) run(ctx context.Context) error {
	for after := uint64(0); ; {
		select {
		case <-e.wake:
		case <-ctx.Done():
			return nil
		}
		for e.any() {
			snap, err := e.snapshot(ctx, after)
			if err != nil {
				return nil
			}
			after = snap.Revision
			e.tell(snap)
		}
	}
}

func (e *endings) any() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) > 0
}

// tell looks at a snapshot, which may be older than one before, and closes what belongs
// to containers that do not run. The next one who asks for such a container, started
// again by somebody, waits anew.
func (e *endings) tell(snap reconcile.Snapshot) {
	running := map[string]bool{}
	for _, v := range snap.Pods {
		for _, c := range v.Containers {
			running[c.ID] = c.State == runtime.Running
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if snap.Revision >= e.revision {
		e.running, e.revision = running, snap.Revision
	}
	for id, w := range e.waiting {
		if !e.running[id] && w.since > 0 && w.since <= e.revision {
			close(w.ended)
			delete(e.waiting, id)
		}
	}
}
