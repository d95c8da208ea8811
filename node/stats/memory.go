package stats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// rearm is how often thresholds follow what is available: the kernel compares
	// what is used, of which more may be given up than when it was told.
	rearm = 10 * time.Second
	// calm is how long nothing is told again.
	calm = time.Second
	// stalled asks to be told when some process waited for memory a tenth of a
	// second in two seconds, the window that needs no privilege.
	stalled = "some 100000 2000000"
	// pressureFile is where stalls are counted, since Linux 4.20.
	pressureFile = "/proc/pressure/memory"
)

// WatchMemory calls notify when the kernel tells that memory gets short, until ctx
// ends: with cgroup v1 when less than one of the amounts in below, in bytes, is
// available; with v2, which knows no thresholds of the machine, when processes wait
// for memory. It costs next to nothing until then. An error says that this kernel
// cannot tell.
func (r *Reader) WatchMemory(ctx context.Context, below []int64, notify func()) error {
	mounts, err := r.hierarchies()
	if err != nil {
		return err
	}
	dir, ok := mounts["memory"]
	if !ok {
		return watchPressure(ctx, pressureFile, notify)
	}
	err = watchUsage(ctx, dir, func() []int64 { return r.thresholds(below) }, notify)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, watchPressure(ctx, pressureFile, notify))
}

// thresholds returns at which use of memory so much is available as in below. What
// is not available already needs no notice.
func (r *Reader) thresholds(below []int64) []int64 {
	m, all := r.memory()
	if m.Available == nil || all.MemoryUsage == nil {
		return nil
	}
	var list []int64
	for _, least := range below {
		if left := *m.Available - least; left > 0 {
			list = append(list, *all.MemoryUsage+left)
		}
	}
	return list
}

// watchUsage calls notify when a cgroup of v1 uses more memory than a threshold, or one
// of them was passed while the kernel was not asked to tell.
func watchUsage(ctx context.Context, dir string, thresholds func() []int64, notify func()) error {
	before := 0
	for ctx.Err() == nil {
		ahead := thresholds()
		event, err := armUsage(dir, ahead)
		if err != nil {
			return err
		}
		if len(ahead) < before {
			notify()
		}
		before = len(ahead)
		err = await(ctx, event, rearm, func() error {
			_, err := event.Read(make([]byte, 8))
			return err
		})
		event.Close() // which ends the registration
		switch {
		case err == nil:
			notify()
			pause(ctx)
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("wait for memory thresholds: %w", err)
		}
	}
	return nil
}

// armUsage returns a file that can be read when a threshold was crossed
// (Documentation/admin-guide/cgroup-v1/memory.rst).
func armUsage(dir string, thresholds []int64) (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	event := os.NewFile(uintptr(fd), "memory threshold")
	usage, err := os.Open(filepath.Join(dir, "memory.usage_in_bytes"))
	if err != nil {
		event.Close()
		return nil, err
	}
	defer usage.Close()
	for _, at := range thresholds {
		line := fmt.Sprintf("%d %d %d", fd, usage.Fd(), at)
		if err := os.WriteFile(filepath.Join(dir, "cgroup.event_control"), []byte(line), 0); err != nil {
			event.Close()
			return nil, fmt.Errorf("set memory threshold: %w", err)
		}
	}
	return event, nil
}

// watchPressure calls notify when processes wait for memory (Documentation/accounting/psi.rst).
func watchPressure(ctx context.Context, file string, notify func()) error {
	trigger, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer trigger.Close()
	if _, err := trigger.WriteString(stalled + "\x00"); err != nil {
		return fmt.Errorf("ask for memory pressure: %w", err)
	}
	return watchUrgent(ctx, int(trigger.Fd()), notify)
}

// watchUrgent calls notify when the kernel has something urgent about a file.
func watchUrgent(ctx context.Context, fd int, notify func()) error {
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	// Go waits for a file that can be read or written. A set of files can be read
	// when one of them is urgent.
	_ = unix.SetNonblock(set, true)
	wait := os.NewFile(uintptr(set), "epoll")
	defer wait.Close()
	if err := unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLPRI}); err != nil {
		return fmt.Errorf("wait for memory pressure: %w", err)
	}
	raw, err := wait.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var events [1]unix.EpollEvent
		err := await(ctx, wait, 0, func() error {
			return raw.Read(func(set uintptr) bool {
				n, _ := unix.EpollWait(int(set), events[:], 0)
				return n > 0
			})
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("wait for memory pressure: %w", err)
		case events[0].Events&unix.EPOLLPRI == 0:
			return errors.New("wait for memory pressure: the kernel tells no more")
		}
		notify()
		pause(ctx)
	}
}

// await calls read, which waits for a file, and ends it with os.ErrDeadlineExceeded
// when ctx ends or, where most is not 0, after that long.
func await(ctx context.Context, file *os.File, most time.Duration, read func() error) error {
	var until time.Time
	if most > 0 {
		until = time.Now().Add(most)
	}
	if err := file.SetReadDeadline(until); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	return read()
}

// pause waits until something may be told again.
func pause(ctx context.Context) {
	select {
	case <-time.After(calm):
	case <-ctx.Done():
	}
}
