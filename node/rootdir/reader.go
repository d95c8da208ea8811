package rootdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

const (
	lockName = "lock"
	tempDir  = ".tmp"
	podsDir  = "pods"
)

// Reader reads a root dir, whoever holds its lock. Its methods may be called
// from several goroutines.
type Reader struct {
	path string
	root *os.Root
}

// OpenReader opens a root dir for reading, without its lock and without
// changing anything. The error wraps fs.ErrNotExist where there is none.
func OpenReader(dir string) (*Reader, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open root dir %s: %w", dir, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open root dir %s: %w", abs, err)
	}
	return &Reader{path: abs, root: root}, nil
}

// Close ends the use of the root dir.
func (r *Reader) Close() error { return r.root.Close() }

// Path returns the root dir as an absolute, clean path. Symbolic links in it
// stay: the path is the owner label of the agent's containers, and moving the
// folder to another disk behind a link must not disown them.
func (r *Reader) Path() string { return r.path }

// PodDir returns the folder of a pod, <root>/pods/<uid>. It need not exist.
func (r *Reader) PodDir(uid types.UID) string {
	return filepath.Join(r.path, podsDir, string(uid))
}

// ReadFile returns the bytes of a file. The error wraps fs.ErrNotExist where
// it is missing.
func (r *Reader) ReadFile(name string) ([]byte, error) {
	clean, err := cleanName(name)
	if err != nil {
		return nil, err
	}
	data, err := r.root.ReadFile(clean)
	if err != nil {
		return nil, fmt.Errorf("read %s in root dir %s: %w", clean, r.path, err)
	}
	return data, nil
}

// Entries returns the base names of what lies in a folder, sorted; none where
// the folder is missing. "." is the root dir itself, without its lock and its
// temporary files.
func (r *Reader) Entries(dir string) ([]string, error) {
	clean := path.Clean(dir)
	if clean != "." {
		var err error
		if clean, err = cleanName(dir); err != nil {
			return nil, err
		}
	}
	entries, err := fs.ReadDir(r.root.FS(), clean)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s in root dir %s: %w", clean, r.path, err)
	}
	var names []string
	for _, e := range entries {
		if clean == "." && (e.Name() == lockName || e.Name() == tempDir) {
			continue
		}
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, nil
}

// cleanName returns the one spelling of a name, and refuses those that lead out
// of the root dir or to its own bookkeeping.
func cleanName(name string) (string, error) {
	clean := path.Clean(name)
	first := clean
	for dir := path.Dir(clean); dir != "." && dir != "/"; dir = path.Dir(dir) {
		first = dir
	}
	if !filepath.IsLocal(name) || clean == "." || first == lockName || first == tempDir {
		return "", fmt.Errorf("name %q in root dir: %w", name, fs.ErrInvalid)
	}
	return clean, nil
}
