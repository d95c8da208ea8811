package sources

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// OSWatcher watches folders of this machine. All its Watches share one inotify
// instance, which exists only while there is a Watch. The zero value is ready.
type OSWatcher struct {
	mu      sync.Mutex // guards what follows; never held while fsnotify is called
	notify  *fsnotify.Watcher
	ended   chan struct{} // closed when the dispatching goroutine has ended
	watches map[*osWatch]struct{}

	setMu sync.Mutex     // orders changes of what is watched
	added map[string]Dir // what notify was asked for
}

var _ Watcher = (*OSWatcher)(nil)

// maxHints bounds what an unread Watch remembers; more is "anything".
const maxHints = 1024

type osWatch struct {
	owner *OSWatcher
	ready chan struct{}

	// Guarded by owner.mu.
	dirs  []Dir
	ops   map[string]Op
	order []string
}

// Watch implements Watcher.
func (o *OSWatcher) Watch() (Watch, error) {
	o.setMu.Lock()
	defer o.setMu.Unlock()
	o.mu.Lock()
	running := o.notify != nil
	o.mu.Unlock()
	w := &osWatch{owner: o, ready: make(chan struct{}, 1), ops: map[string]Op{}}
	if running {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.watches[w] = struct{}{}
		return w, nil
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	o.added = map[string]Dir{}
	o.mu.Lock()
	o.notify, o.ended, o.watches = notify, make(chan struct{}), map[*osWatch]struct{}{w: {}}
	o.mu.Unlock()
	go o.dispatch(notify, o.ended)
	return w, nil
}

// dispatch ends when notify is closed, which the last Close does and waits for.
func (o *OSWatcher) dispatch(notify *fsnotify.Watcher, ended chan<- struct{}) {
	defer close(ended)
	events, errs := notify.Events, notify.Errors
	for events != nil || errs != nil {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			o.hint(Hint{Path: e.Name, Op: opOf(e.Op)})
		case _, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			// Mostly an overflow of the kernel's queue: anything may be lost.
			o.hint(Hint{Op: Changed})
		}
	}
}

func opOf(op fsnotify.Op) (out Op) {
	if op.Has(fsnotify.Create) || op.Has(fsnotify.Remove) || op.Has(fsnotify.Rename) {
		out |= Changed
	}
	if op.Has(fsnotify.Write) || op.Has(fsnotify.Chmod) {
		out |= Written
	}
	return out
}

func (o *OSWatcher) hint(h Hint) {
	o.mu.Lock()
	defer o.mu.Unlock()
	dir := filepath.Dir(h.Path)
	for w := range o.watches {
		if h.Path == "" || slices.ContainsFunc(w.dirs, func(d Dir) bool { return d.Path == dir || d.Path == h.Path }) {
			w.add(h)
		}
	}
}

// add is called with owner.mu held.
func (w *osWatch) add(h Hint) {
	if len(w.order) >= maxHints {
		w.ops, w.order, h = map[string]Op{}, nil, Hint{Op: Changed | Written}
	}
	if _, ok := w.ops[h.Path]; !ok {
		w.order = append(w.order, h.Path)
	}
	w.ops[h.Path] |= h.Op
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// Ready implements Watch.
func (w *osWatch) Ready() <-chan struct{} { return w.ready }

// Take implements Watch.
func (w *osWatch) Take() []Hint {
	w.owner.mu.Lock()
	defer w.owner.mu.Unlock()
	hints := make([]Hint, 0, len(w.order))
	for _, path := range w.order {
		hints = append(hints, Hint{Path: path, Op: w.ops[path]})
	}
	clear(w.ops)
	w.order = w.order[:0]
	return hints
}

// Set implements Watch.
func (w *osWatch) Set(dirs []Dir) error {
	o := w.owner
	o.setMu.Lock()
	defer o.setMu.Unlock()
	o.mu.Lock()
	w.dirs = slices.Clone(dirs)
	wanted := map[string]Dir{}
	for other := range o.watches {
		for _, d := range other.dirs {
			wanted[d.Path] = d
		}
	}
	for _, d := range dirs { // what this reader saw is the newest
		wanted[d.Path] = d
	}
	notify := o.notify
	o.mu.Unlock()
	return o.adjust(notify, wanted)
}

// adjust is called with setMu held.
func (o *OSWatcher) adjust(notify *fsnotify.Watcher, wanted map[string]Dir) error {
	alive := map[string]bool{}
	for _, path := range notify.WatchList() {
		alive[path] = true
	}
	for path, d := range o.added {
		if wanted[path] == d && alive[path] {
			continue
		}
		delete(o.added, path)
		if alive[path] {
			// The kernel may have dropped it by now: then it is gone already.
			_ = notify.Remove(path)
		}
	}
	var errs []error
	for path, d := range wanted {
		if _, ok := o.added[path]; ok {
			continue
		}
		if err := notify.Add(path); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", path, err))
			continue
		}
		o.added[path] = d
	}
	return errors.Join(errs...)
}

// Close implements Watch.
func (w *osWatch) Close() {
	o := w.owner
	o.setMu.Lock()
	defer o.setMu.Unlock()
	o.mu.Lock()
	delete(o.watches, w)
	last, notify, ended := len(o.watches) == 0, o.notify, o.ended
	if last {
		o.notify, o.added = nil, nil
	}
	o.mu.Unlock()
	if last {
		_ = notify.Close() // an inotify descriptor has nothing left to lose
		<-ended
	}
}
