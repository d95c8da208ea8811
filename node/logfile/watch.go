package logfile

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watcher tells followers when files in a folder change. All of them share one inotify
// instance, which exists only while there is a follower: a machine has few. The zero
// value is ready.
type Watcher struct {
	setMu  sync.Mutex // orders changes of what is watched
	notify *fsnotify.Watcher
	ended  chan struct{} // closed when the dispatching goroutine has ended
	all    int           // subscriptions

	mu   sync.Mutex // guards dirs; never held while fsnotify is called
	dirs map[string]map[chan struct{}]struct{}
}

// How often a follower looks by itself: where nobody tells it, as the kernel has no
// instance or watch left, and where only something lost would be found.
const (
	untold = 200 * time.Millisecond
	told   = 10 * time.Second
)

// subscribe returns what is sent to after changes in a folder, and after how long to
// look all the same. stop has to be called.
func (w *Watcher) subscribe(dir string) (changed <-chan struct{}, period time.Duration, stop func()) {
	w.setMu.Lock()
	defer w.setMu.Unlock()
	period = told
	if w.notify == nil {
		if err := w.start(); err != nil {
			return nil, untold, func() {}
		}
	}
	tell := make(chan struct{}, 1)
	w.mu.Lock()
	if w.dirs[dir] == nil {
		w.dirs[dir] = map[chan struct{}]struct{}{}
	}
	w.dirs[dir][tell] = struct{}{}
	w.mu.Unlock()
	w.all++
	// Adding again is nothing to the kernel; and after a failure it may work.
	if err := w.notify.Add(dir); err != nil {
		period = untold
	}
	return tell, period, func() { w.unsubscribe(dir, tell) }
}

// start is called with setMu held.
func (w *Watcher) start() error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	w.notify, w.ended = notify, make(chan struct{})
	w.dirs = map[string]map[chan struct{}]struct{}{}
	go w.dispatch(notify, w.ended)
	return nil
}

func (w *Watcher) unsubscribe(dir string, tell chan struct{}) {
	w.setMu.Lock()
	defer w.setMu.Unlock()
	w.mu.Lock()
	delete(w.dirs[dir], tell)
	last := len(w.dirs[dir]) == 0
	if last {
		delete(w.dirs, dir)
	}
	w.mu.Unlock()
	if w.all--; w.all == 0 {
		_ = w.notify.Close() // an inotify descriptor has nothing left to lose
		<-w.ended
		w.notify = nil
	} else if last {
		_ = w.notify.Remove(dir) // gone already, if the folder is
	}
}

// dispatch ends when notify is closed, which the last to unsubscribe does and waits
// for.
func (w *Watcher) dispatch(notify *fsnotify.Watcher, ended chan<- struct{}) {
	defer close(ended)
	events, errs := notify.Events, notify.Errors
	for events != nil || errs != nil {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			w.tell(e.Name)
		case _, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			// Mostly an overflow of the kernel's queue: anything may be lost.
			w.tell("")
		}
	}
}

// tell wakes those who follow a file; all, where no path is given.
func (w *Watcher) tell(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake := func(followers map[chan struct{}]struct{}) {
		for f := range followers {
			select {
			case f <- struct{}{}:
			default: // it was told already
			}
		}
	}
	if path != "" {
		wake(w.dirs[filepath.Dir(path)])
		return
	}
	for _, followers := range w.dirs {
		wake(followers)
	}
}
