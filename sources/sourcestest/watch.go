package sourcestest

import (
	"path"
	"slices"

	"github.com/podkeeper/podkeeper/sources"
)

type watch struct {
	tree  *Tree
	ready chan struct{}

	// Guarded by tree.mu.
	dirs  []sources.Dir
	hints []sources.Hint
}

// Watch implements sources.Watcher.
func (t *Tree) Watch() (sources.Watch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refusal != nil {
		return nil, t.refusal
	}
	w := &watch{tree: t, ready: make(chan struct{}, 1)}
	t.watches[w] = struct{}{}
	return w, nil
}

// Watches returns how many are open.
func (t *Tree) Watches() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.watches)
}

// hint is called with mu held.
func (t *Tree) hint(dir *node, name string, op sources.Op) {
	t.deliver(dir, path.Join(dir.path(), name), op)
}

// hintSelf tells those that watch a folder that it goes, and ends their watch.
func (t *Tree) hintSelf(dir *node) {
	t.deliver(dir, dir.path(), sources.Changed)
	for w := range t.watches {
		w.dirs = slices.DeleteFunc(w.dirs, func(d sources.Dir) bool { return d.Ino == dir.ino })
	}
}

func (t *Tree) deliver(dir *node, name string, op sources.Op) {
	if t.deaf {
		return
	}
	for w := range t.watches {
		if slices.ContainsFunc(w.dirs, func(d sources.Dir) bool { return d.Ino == dir.ino }) {
			w.hints = append(w.hints, sources.Hint{Path: name, Op: op})
			select {
			case w.ready <- struct{}{}:
			default:
			}
		}
	}
}

func (w *watch) Ready() <-chan struct{} { return w.ready }

func (w *watch) Take() []sources.Hint {
	w.tree.mu.Lock()
	defer w.tree.mu.Unlock()
	hints := w.hints
	w.hints = nil
	return hints
}

func (w *watch) Set(dirs []sources.Dir) error {
	w.tree.mu.Lock()
	defer w.tree.mu.Unlock()
	w.dirs = slices.Clone(dirs)
	return w.tree.refusal
}

func (w *watch) Close() {
	w.tree.mu.Lock()
	defer w.tree.mu.Unlock()
	delete(w.tree.watches, w)
}
