package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/runtime/fake"
	"github.com/podkeeper/podkeeper/sources"
)

// tree is the machine's file tree: folders, and files directly in them.
type tree struct {
	fate *fake.Fate
	wall func() time.Time
	// hints: false is a machine whose inotify is exhausted.
	hints bool

	mu      sync.Mutex
	inodes  uint64
	dirs    map[string]uint64 // inode by path
	files   map[string]file
	watches map[*watch]bool
}

type file struct {
	data     []byte
	inode    uint64
	modified int64
}

func newTree(fate *fake.Fate, wall func() time.Time, hints bool) *tree {
	return &tree{fate: fate, wall: wall, hints: hints, dirs: map[string]uint64{}, files: map[string]file{}, watches: map[*watch]bool{}}
}

// The driver's side. Each takes effect at once.

func (t *tree) makeDir(dir string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inodes++
	t.dirs[dir] = t.inodes
	t.hint(dir, sources.Changed)
}

// removeDir returns what was in it.
func (t *tree) removeDir(dir string) map[string]file {
	t.mu.Lock()
	defer t.mu.Unlock()
	lost := map[string]file{}
	for _, name := range t.in(dir) {
		lost[name] = t.files[name]
		delete(t.files, name)
		t.hint(name, sources.Changed)
	}
	delete(t.dirs, dir)
	t.hint(dir, sources.Changed)
	return lost
}

// write changes a file in place, or makes it.
func (t *tree) write(name, data string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, there := t.files[name]
	op := sources.Written
	if !there {
		t.inodes++
		f.inode = t.inodes
		op |= sources.Changed
	}
	f.data, f.modified = []byte(data), t.wall().UnixNano()
	t.files[name] = f
	t.hint(name, op)
}

// replace puts a whole new file in its place, as an editor that renames does.
func (t *tree) replace(name, data string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inodes++
	t.files[name] = file{data: []byte(data), inode: t.inodes, modified: t.wall().UnixNano()}
	t.hint(name, sources.Changed)
}

func (t *tree) rename(from, to string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files[to] = t.files[from]
	delete(t.files, from)
	t.hint(from, sources.Changed)
	t.hint(to, sources.Changed)
}

func (t *tree) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.files, name)
	t.hint(name, sources.Changed)
}

// in lists the files of a folder, sorted.
func (t *tree) in(dir string) []string {
	var names []string
	for name := range t.files {
		if path.Dir(name) == dir {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (t *tree) hint(name string, op sources.Op) {
	for w := range t.watches {
		if slices.ContainsFunc(w.dirs, func(d sources.Dir) bool {
			return d.Ino == t.dirs[d.Path] && (d.Path == path.Dir(name) || d.Path == name)
		}) {
			t.fate.Deliver("hint "+name, func() { w.add(sources.Hint{Path: name, Op: op}) })
		}
	}
}

// files is the tree as one incarnation of the agent sees it.
type files struct {
	*tree
	fence <-chan struct{}
}

var (
	_ sources.FS      = files{}
	_ sources.Watcher = files{}
)

// do parks a look at a name; looks are not traced.
func (f files) do(verb, name string, look func() error) error {
	call := fake.Call{Verb: verb, Object: name, Min: 5 * time.Microsecond, Max: 200 * time.Microsecond, Fence: f.fence, Rates: &fake.Rates{}, Quiet: true}
	return f.fate.Do(context.Background(), call, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		return look()
	})
}

func missing(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// ReadDir implements sources.FS.
func (f files) ReadDir(dir string) (entries []fs.DirEntry, err error) {
	err = f.do("readdir", dir, func() error {
		if f.dirs[dir] == 0 {
			return missing("open", dir)
		}
		for _, name := range f.in(dir) {
			entries = append(entries, entry(path.Base(name)))
		}
		return nil
	})
	return entries, err
}

// Stat implements sources.FS.
func (f files) Stat(name string) (st sources.Stat, err error) {
	err = f.do("stat", name, func() error {
		if inode := f.dirs[name]; inode != 0 {
			st = sources.Stat{Mode: fs.ModeDir, Dev: 1, Ino: inode}
			return nil
		}
		file, ok := f.files[name]
		if !ok {
			return missing("stat", name)
		}
		st = sources.Stat{Size: int64(len(file.data)), Modified: file.modified, Changed: file.modified, Dev: 1, Ino: file.inode}
		return nil
	})
	return st, err
}

// Open implements sources.FS.
func (f files) Open(name string) (r io.ReadCloser, err error) {
	err = f.do("open", name, func() error {
		file, ok := f.files[name]
		if !ok {
			return missing("open", name)
		}
		r = io.NopCloser(bytes.NewReader(file.data))
		return nil
	})
	return r, err
}

// Resolve implements sources.FS: there are no links.
func (f files) Resolve(name string) (string, error) {
	err := f.do("resolve", name, func() error {
		if _, ok := f.files[name]; !ok && f.dirs[name] == 0 {
			return missing("lstat", name)
		}
		return nil
	})
	return name, err
}

type entry string

func (e entry) Name() string               { return string(e) }
func (e entry) IsDir() bool                { return false }
func (e entry) Type() fs.FileMode          { return 0 }
func (e entry) Info() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// watch is one reader's hints.
type watch struct {
	tree  *tree
	ready chan struct{}
	dirs  []sources.Dir

	mu    sync.Mutex
	hints []sources.Hint
}

var errExhausted = errors.New("no space left on device: inotify")

// Watch implements sources.Watcher.
func (f files) Watch() (sources.Watch, error) {
	if !f.tree.hints {
		return nil, errExhausted
	}
	w := &watch{tree: f.tree, ready: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches[w] = true
	return w, nil
}

func (w *watch) add(h sources.Hint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hints = append(w.hints, h)
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// Ready implements sources.Watch.
func (w *watch) Ready() <-chan struct{} { return w.ready }

// Take implements sources.Watch.
func (w *watch) Take() []sources.Hint {
	w.mu.Lock()
	defer w.mu.Unlock()
	hints := w.hints
	w.hints = nil
	return hints
}

// Set implements sources.Watch.
func (w *watch) Set(dirs []sources.Dir) error {
	w.tree.mu.Lock()
	defer w.tree.mu.Unlock()
	w.dirs = nil
	var errs []error
	for _, d := range dirs {
		if d.Ino = w.tree.dirs[d.Path]; d.Ino == 0 {
			errs = append(errs, missing("watch", d.Path))
			continue
		}
		w.dirs = append(w.dirs, d)
	}
	return errors.Join(errs...)
}

// Close implements sources.Watch.
func (w *watch) Close() {
	w.tree.mu.Lock()
	defer w.tree.mu.Unlock()
	delete(w.tree.watches, w)
}
