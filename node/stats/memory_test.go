package stats_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/node/stats"
)

// told runs a watch while the cause is repeated, and returns whether it told
// something. A cause may come before the watch is ready for it.
func told(t *testing.T, watch func(context.Context, func()) error, cause func()) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	notice := make(chan struct{}, 100)
	var run sync.WaitGroup
	run.Go(func() {
		if err := watch(ctx, func() { notice <- struct{}{} }); err != nil {
			t.Error(err)
		}
	})
	defer run.Wait()
	defer cancel()
	for ctx.Err() == nil {
		cause()
		select {
		case <-notice:
			return true
		case <-time.After(10 * time.Millisecond):
		}
	}
	return false
}

// A cgroup of v1 of the test's own gets a process that takes memory. What is passed
// while nobody asks, since something was just told, is told, too.
func TestTheKernelTellsOfAThreshold(t *testing.T) {
	const root = "/sys/fs/cgroup/memory"
	if _, err := os.Stat(root + "/cgroup.event_control"); err != nil {
		t.Log("this machine has cgroup v2, where there are no thresholds: see the test of pressure")
		return
	}
	dir := filepath.Join(root, "podkeeper-test-"+strconv.Itoa(os.Getpid()))
	check(t, os.Mkdir(dir, 0o700))
	t.Cleanup(func() { check(t, os.Remove(dir)) })
	const eater = `echo $$ >"$0/cgroup.procs"; head -c 64m /dev/zero | tail -c 64m >/dev/null`
	eat := func() {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", eater, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if !told(t, func(ctx context.Context, notify func()) error {
		return stats.WatchUsage(ctx, dir, func() []int64 { return []int64{1 << 40, 32 << 20} }, notify)
	}, eat) {
		t.Error("64 MiB were taken, and nobody was told at 32")
	}
	if !told(t, func(ctx context.Context, notify func()) error {
		ahead, times := []int64{1 << 40, 32 << 20}, 0
		return stats.WatchUsage(ctx, dir, func() []int64 {
			defer func() { ahead = ahead[:1] }()
			return ahead
		}, func() {
			if times++; times == 2 {
				notify()
			}
		})
	}, eat) {
		t.Error("one was passed while nobody asked, and nobody was told")
	}
}

// The kernel's triggers tell by urgent data, as TCP has it.
func TestTheKernelTellsOfPressure(t *testing.T) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(t, err)
	defer listener.Close()
	ours, err := net.DialTCP("tcp4", nil, listener.Addr().(*net.TCPAddr))
	check(t, err)
	defer ours.Close()
	theirs, err := listener.AcceptTCP()
	check(t, err)
	defer theirs.Close()
	file, err := ours.File()
	check(t, err)
	defer file.Close()
	send, err := theirs.SyscallConn()
	check(t, err)
	if !told(t, func(ctx context.Context, notify func()) error {
		return stats.WatchUrgent(ctx, int(file.Fd()), notify)
	}, func() {
		check(t, send.Control(func(fd uintptr) { err = unix.Send(int(fd), []byte("!"), unix.MSG_OOB) }))
		check(t, err)
	}) {
		t.Error("nobody was told")
	}
}

func TestWatchMemoryEndsWithItsContext(t *testing.T) {
	r := stats.NewReader(slog.New(slog.DiscardHandler))
	for name, watch := range map[string]func(context.Context, func()) error{
		"this machine": func(ctx context.Context, notify func()) error { return r.WatchMemory(ctx, []int64{1 << 20}, notify) },
		"its pressure": func(ctx context.Context, notify func()) error {
			return stats.WatchPressure(ctx, "/proc/pressure/memory", notify)
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		ended := make(chan error)
		go func() { ended <- watch(ctx, func() {}) }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if ctx.Err() == nil {
				t.Errorf("%s: it ended before its context", name)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it goes on", name)
		}
		cancel()
	}
}

func TestAKernelThatTellsNothing(t *testing.T) {
	err := stats.WatchPressure(t.Context(), filepath.Join(t.TempDir(), "memory"), func() {})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
	err = stats.WatchUsage(t.Context(), t.TempDir(), func() []int64 { return nil }, func() {})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}
