package sourcestest

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/podkeeper/podkeeper/sources"
)

// Store is a sources.Store in memory. The zero value is empty.
type Store struct {
	mu     sync.Mutex
	files  map[string][]byte
	writes int
	err    error
}

var _ sources.Store = (*Store)(nil)

// Writes returns how many files were written so far.
func (s *Store) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Fail has every write fail; nil ends it.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Files returns the names of all files, sorted.
func (s *Store) Files() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.files))
}

// WriteFile implements sources.Store.
func (s *Store) WriteFile(name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.files == nil {
		s.files = map[string][]byte{}
	}
	s.files[name] = bytes.Clone(data)
	s.writes++
	return nil
}

// ReadFile implements sources.Store.
func (s *Store) ReadFile(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return bytes.Clone(data), nil
}

// Remove implements sources.Store.
func (s *Store) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		delete(s.files, name)
	}
	return s.err
}

// Entries implements sources.Store.
func (s *Store) Entries(dir string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.files {
		if path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}
