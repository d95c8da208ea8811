package server

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// watched is what stands in files, read anew when one of them has changed. Nothing
// runs meanwhile: they are looked at when somebody asks.
type watched[T any] struct {
	paths []string
	// parse makes the value of the content of each.
	parse func(contents [][]byte) (T, error)

	mu    sync.Mutex
	seen  []stamp
	young bool // one of them may have changed once more without a new stamp
	value T
	err   error
}

// stamp says which content of a file is meant; the zero one that it is not there.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
	mode     os.FileMode
}

// tick is how coarse times of files may be.
const tick = 2 * time.Second

// get returns the value, and whether the files are others than at the call before.
// The error is that of reading or of parse; a file that cannot be read has the zero
// value.
func (w *watched[T]) get() (value T, changed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stamps := make([]stamp, len(w.paths))
	young := false
	for i, path := range w.paths {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size(), info.Sys().(*syscall.Stat_t).Ino, info.Mode()}
			young = young || time.Since(info.ModTime()) < tick
		}
	}
	changed = w.seen == nil || !slices.Equal(w.seen, stamps)
	if !changed && !w.young {
		return w.value, false, w.err
	}
	w.seen, w.young = stamps, young
	w.value, w.err = w.read()
	return w.value, changed, w.err
}

func (w *watched[T]) read() (value T, err error) {
	contents := make([][]byte, len(w.paths))
	for i, path := range w.paths {
		if contents[i], err = os.ReadFile(path); err != nil {
			return value, err
		}
	}
	return w.parse(contents)
}
