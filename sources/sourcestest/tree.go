package sourcestest

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/podkeeper/podkeeper/sources"
)

// Tree is a file tree that implements sources.FS and sources.Watcher. Its
// methods may be called from several goroutines.
type Tree struct {
	now func() time.Time

	mu      sync.Mutex
	root    *node
	lastIno uint64
	before  func(op, name string)
	faults  map[string]error
	reads   map[string]int
	watches map[*watch]struct{}
	deaf    bool
	refusal error
}

var (
	_ sources.FS      = (*Tree)(nil)
	_ sources.Watcher = (*Tree)(nil)
)

type node struct {
	ino              uint64
	mode             fs.FileMode
	data             []byte
	target           string
	children         map[string]*node
	modified, change time.Time

	parent *node
	name   string
}

// New returns a tree with nothing but "/". now gives the times of files; nil is
// time.Now.
func New(now func() time.Time) *Tree {
	if now == nil {
		now = time.Now
	}
	t := &Tree{now: now, faults: map[string]error{}, reads: map[string]int{}, watches: map[*watch]struct{}{}}
	t.root = t.newNode(fs.ModeDir)
	return t
}

// Before has f called before each operation of sources.FS, with its name in
// lower case ("readdir", "stat", "open"). f may change the tree. nil: nobody.
func (t *Tree) Before(f func(op, name string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = f
}

// Fail has every operation of sources.FS on that very name fail; nil ends it.
func (t *Tree) Fail(name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.faults[name] = err; err == nil {
		delete(t.faults, name)
	}
}

// Deaf says whether hints get lost.
func (t *Tree) Deaf(deaf bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deaf = deaf
}

// RefuseWatch has Watch and Set fail, as where inotify is exhausted.
func (t *Tree) RefuseWatch(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refusal = err
}

// Reads returns how often a file was opened.
func (t *Tree) Reads(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reads[name]
}

// MkdirAll makes a folder and its parents.
func (t *Tree) MkdirAll(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := "/"
	for _, part := range strings.Split(strings.Trim(name, "/"), "/") {
		at = path.Join(at, part)
		if _, _, n, err := t.walk(at, true); err != nil || n == nil {
			t.put(at, t.newNode(fs.ModeDir))
		}
	}
}

// Write replaces the content of a file in place, links followed, or makes it.
func (t *Tree) Write(name, content string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(name, content)
}

func (t *Tree) write(name, content string) {
	_, _, n, _ := t.walk(name, true)
	if n == nil {
		n = t.newNode(0)
		t.put(name, n)
	}
	n.data = []byte(content)
	n.modified, n.change = t.now(), t.now()
	t.hint(n.parent, n.name, sources.Written)
}

// WriteAtomic makes a file elsewhere in the folder and renames it.
func (t *Tree) WriteAtomic(name, content string) {
	temp := path.Join(path.Dir(name), ".new-"+path.Base(name))
	t.Write(temp, content)
	t.Rename(temp, name)
}

// Special makes a pipe, socket or device.
func (t *Tree) Special(name string, mode fs.FileMode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(name, t.newNode(mode))
}

// Symlink makes a link, or replaces one at once.
func (t *Tree) Symlink(target, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.newNode(fs.ModeSymlink)
	n.target = target
	t.put(name, n)
}

// Rename moves a file, link or folder, over what is there.
func (t *Tree) Rename(from, to string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	parent, base, n, err := t.walk(from, false)
	if err != nil || n == nil {
		panic(fmt.Sprintf("rename %s: no such file", from))
	}
	delete(parent.children, base)
	parent.modified, parent.change = t.now(), t.now()
	t.hint(parent, base, sources.Changed)
	if n.mode.IsDir() {
		t.hintSelf(n)
	}
	n.change = t.now()
	t.put(to, n)
}

// Remove removes a file, or a folder with all in it.
func (t *Tree) Remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	parent, base, n, err := t.walk(name, false)
	if err != nil || n == nil {
		panic(fmt.Sprintf("remove %s: no such file", name))
	}
	if n.mode.IsDir() {
		t.hintSelf(n)
	}
	delete(parent.children, base)
	parent.modified, parent.change = t.now(), t.now()
	t.hint(parent, base, sources.Changed)
}

func (t *Tree) newNode(mode fs.FileMode) *node {
	t.lastIno++
	n := &node{ino: t.lastIno, mode: mode, modified: t.now(), change: t.now()}
	if mode.IsDir() {
		n.children = map[string]*node{}
	}
	return n
}

func (t *Tree) put(name string, n *node) {
	parent, base, _, err := t.walk(name, false)
	if err != nil {
		panic(fmt.Sprintf("make %s: %v", name, err))
	}
	parent.children[base] = n
	n.parent, n.name = parent, base
	parent.modified, parent.change = t.now(), t.now()
	t.hint(parent, base, sources.Changed)
}

// walk finds a name. n is nil where only the last part is missing.
func (t *Tree) walk(name string, follow bool) (parent *node, base string, n *node, err error) {
	parts := strings.Split(strings.Trim(path.Clean(name), "/"), "/")
	n = t.root
	if parts[0] == "" {
		return nil, "", n, nil
	}
	for links := 0; len(parts) > 0; {
		if n == nil {
			return nil, "", nil, fs.ErrNotExist
		}
		if !n.mode.IsDir() {
			return nil, "", nil, syscall.ENOTDIR
		}
		parent, base, parts = n, parts[0], parts[1:]
		n = parent.children[base]
		if n == nil || n.mode&fs.ModeSymlink == 0 || len(parts) == 0 && !follow {
			continue
		}
		if links++; links > 40 {
			return nil, "", nil, syscall.ELOOP
		}
		target := n.target
		if !path.IsAbs(target) {
			target = path.Join(parent.path(), target)
		}
		rest := strings.Split(strings.Trim(path.Clean(target), "/"), "/")
		parts, n = append(slices.Clone(rest), parts...), t.root
	}
	return parent, base, n, nil
}

func (n *node) path() string {
	if n.parent == nil {
		return "/"
	}
	return path.Join(n.parent.path(), n.name)
}

// enter runs the hooks of one operation.
func (t *Tree) enter(op, name string) (*node, error) {
	t.mu.Lock()
	before := t.before
	t.mu.Unlock()
	if before != nil {
		before(op, name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.faults[name]
	var n *node
	if err == nil {
		_, _, n, err = t.walk(name, true)
	}
	if err == nil && n == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

// ReadDir implements sources.FS.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.enter("readdir", name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !n.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	var entries []fs.DirEntry
	for base, child := range n.children {
		entries = append(entries, entry{base, child.mode})
	}
	return entries, nil
}

type entry struct {
	name string
	mode fs.FileMode
}

func (e entry) Name() string               { return e.name }
func (e entry) IsDir() bool                { return e.mode.IsDir() }
func (e entry) Type() fs.FileMode          { return e.mode.Type() }
func (e entry) Info() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// Stat implements sources.FS.
func (t *Tree) Stat(name string) (sources.Stat, error) {
	n, err := t.enter("stat", name)
	if err != nil {
		return sources.Stat{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return sources.Stat{
		Mode: n.mode.Type(), Size: int64(len(n.data)), Dev: 1, Ino: n.ino,
		Modified: n.modified.UnixNano(), Changed: n.change.UnixNano(),
	}, nil
}

// Open implements sources.FS.
func (t *Tree) Open(name string) (io.ReadCloser, error) {
	n, err := t.enter("open", name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.mode.Type() != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	t.reads[name]++
	return io.NopCloser(bytes.NewReader(bytes.Clone(n.data))), nil
}

// Resolve implements sources.FS.
func (t *Tree) Resolve(name string) (string, error) {
	n, err := t.enter("resolve", name)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return n.path(), nil
}
