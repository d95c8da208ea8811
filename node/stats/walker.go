package stats

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// forget is how long what is known of a folder is kept after it was last asked for.
const forget = 30 * time.Minute

// Walker knows what folders hold. It walks through those that somebody asks for, one
// at a time, none more than once a minute, and takes no more than a hundredth of a
// core. Nothing is walked while nobody asks.
type Walker struct {
	log *slog.Logger
	// counted says what the kernel counts for a folder, where it does.
	counted func(folder string) (Usage, bool)
	walk    func(context.Context, string) (Usage, error)
	wake    chan struct{} // has room for one

	mu      sync.Mutex
	known   map[string]*known
	wanted  map[string]bool
	unknown map[string]bool // folders of which it was said that they cannot be read
	// walked is closed when a walk has ended, and is another one then.
	walked chan struct{}
}

// known is what is known of a folder.
type known struct {
	usage  *Usage
	walked time.Time
	asked  time.Time
}

// NewWalker returns a walker that Run runs. counted spares the walk where a project
// quota counts what is in a folder; nil is nowhere.
func NewWalker(counted func(folder string) (Usage, bool), log *slog.Logger) *Walker {
	if counted == nil {
		counted = func(string) (Usage, bool) { return Usage{}, false }
	}
	return &Walker{
		log: log, counted: counted, walk: Walk, wake: make(chan struct{}, 1),
		known: make(map[string]*known), wanted: make(map[string]bool), unknown: make(map[string]bool),
		walked: make(chan struct{}),
	}
}

// Usage returns what is known of a folder now, nil where nobody has looked yet, and
// has it looked at again as soon as it may be.
func (w *Walker) Usage(folder string) *Usage {
	if folder == "" {
		return nil
	}
	if u, ok := w.counted(folder); ok {
		return &u
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.known[folder]
	if k == nil {
		k = new(known)
		w.known[folder] = k
	}
	k.asked = time.Now()
	w.wanted[folder] = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return k.usage
}

// Await returns when each of the folders was looked at, however long ago, or ctx
// ends. It asks for those that never were.
func (w *Walker) Await(ctx context.Context, folders []string) {
	for {
		w.mu.Lock()
		walked := w.walked
		w.mu.Unlock()
		if !w.Unseen(folders) {
			return
		}
		select {
		case <-walked:
		case <-ctx.Done():
			return
		}
	}
}

// Unseen reports whether there are folders among these that nobody has looked at
// yet, and asks for them.
func (w *Walker) Unseen(folders []string) bool {
	unseen := false
	for _, folder := range folders {
		unseen = w.missing(folder) || unseen
	}
	return unseen
}

// missing reports whether nobody has looked at a folder yet, and asks for it then.
func (w *Walker) missing(folder string) bool {
	if folder == "" || w.Usage(folder) != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[folder].walked.IsZero()
}

// Run walks until ctx ends.
func (w *Walker) Run(ctx context.Context) error {
	// The thread goes with this goroutine: it is never unlocked.
	runtime.LockOSThread()
	lowIOPriority()
	var free time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-timer.C:
		}
		folder, at, ok := w.next(free)
		if !ok {
			timer.Stop()
			continue
		}
		if wait := time.Until(at); wait > 0 {
			timer.Reset(wait)
			continue
		}
		began := time.Now()
		usage, err := w.walk(ctx, folder)
		if ctx.Err() != nil {
			return nil
		}
		free = freeAfter(began, time.Now())
		w.found(folder, usage, err)
		timer.Reset(0)
	}
}

func (w *Walker) next(free time.Time) (string, time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	walked := make(map[string]time.Time, len(w.wanted))
	for folder := range w.wanted {
		walked[folder] = w.known[folder].walked
	}
	return nextWalk(w.wanted, walked, free)
}

// found notes what a walk came to.
func (w *Walker) found(folder string, usage Usage, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	delete(w.wanted, folder)
	k := w.known[folder]
	k.walked, k.usage = now, &usage
	failed := err != nil && !errors.Is(err, os.ErrNotExist)
	if err != nil {
		k.usage = nil
	}
	if failed && !w.unknown[folder] {
		w.log.Warn("what a folder holds is not known", "path", folder, "err", err)
	}
	w.unknown[folder] = failed
	close(w.walked)
	w.walked = make(chan struct{})
	for name, k := range w.known {
		if now.Sub(k.asked) > forget {
			delete(w.known, name)
			delete(w.wanted, name)
			delete(w.unknown, name)
		}
	}
}

// lowIOPriority makes the thread the last whom the disk serves (ioprio_set(2)). It is
// not the idle class, which a disk that is never idle does not serve at all: that is
// when the answer is needed.
func lowIOPriority() {
	const (
		process    = 1
		bestEffort = 2 << 13
		lowest     = 7
	)
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, process, 0, bestEffort|lowest) // it may not be allowed
}
