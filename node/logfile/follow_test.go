package logfile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/node/logfile"
)

// follow starts a follower of a whole log. stop says that the container has ended, and
// returns what it got.
func follow(t *testing.T, e *engine, w *logfile.Watcher) (got *buffer, stop func() string) {
	t.Helper()
	ended, done := make(chan struct{}), make(chan error, 1)
	got = newBuffer()
	go func() { done <- logfile.Follow(t.Context(), e.path, logfile.Options{Tail: -1}, got, w, ended) }()
	return got, func() string {
		close(ended)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		all, _ := got.get()
		return all
	}
}

// C126: an engine with a tiny max-size rotates at each step of the reader's.
func TestNothingIsLostOverThousandsOfRotations(t *testing.T) {
	for _, compress := range []bool{false, true} {
		t.Run(fmt.Sprint("compressed: ", compress), func(t *testing.T) {
			e := newEngine(t)
			e.compress = compress
			e.maxFiles = 20
			got, stop := follow(t, e, new(logfile.Watcher))
			var want strings.Builder
			const rounds = 500
			for n := range rounds {
				text := fmt.Sprintf("line %d\n", n)
				want.WriteString(text)
				e.write(logfile.Stdout, text)
				e.rotate()
				if n%15 == 14 { // a reader that is slower than all files are written loses some
					await(t, got, want.String())
				}
			}
			if all := stop(); all != want.String() {
				i := 0
				for i < len(all) && i < want.Len() && all[i] == want.String()[i] {
					i++
				}
				t.Errorf("got %d bytes, want %d; behind %q comes %q", len(all), want.Len(), all[max(0, i-30):i], all[i:min(len(all), i+30)])
			}
		})
	}
}

// An engine with one file only truncates it.
func TestAFollowerNoticesThatTheFileWasEmptied(t *testing.T) {
	e := newEngine(t)
	e.maxFiles = 1
	got, stop := follow(t, e, new(logfile.Watcher))
	want := ""
	for n := range 200 {
		for range n % 4 { // it may be longer than before by when it is looked at
			text := fmt.Sprintf("line %d\n", len(want))
			e.write(logfile.Stdout, text)
			want += text
		}
		await(t, got, want)
		e.rotate()
	}
	if all := stop(); all != want {
		t.Errorf("got %q, want %q", all, want)
	}
}

func TestFollowersOfOneWatcherShareIt(t *testing.T) {
	before := descriptors(t)
	var w logfile.Watcher
	e := newEngine(t)
	other := newEngine(t)
	const followers = 50
	var stops []func() string
	for range followers {
		got, stop := follow(t, e, &w)
		stops = append(stops, stop)
		got2, stop := follow(t, other, &w)
		stops = append(stops, stop)
		e.write(logfile.Stdout, "x\n")
		other.write(logfile.Stderr, "y\n")
		await(t, got, e.want(logfile.Options{Tail: -1}))
		await(t, got2, other.want(logfile.Options{Tail: -1}))
	}
	// A log each, and an instance with its poller and wake-up.
	if open := descriptors(t) - before; open > 2*followers+10 {
		t.Errorf("%d descriptors for %d followers", open, 2*followers)
	}
	for _, stop := range stops {
		stop()
	}
	e.file.Close()
	other.file.Close()
	if left := descriptors(t) - before; left > 0 {
		t.Errorf("%d descriptors are left", left)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestAFollowerEndsWithItsReader(t *testing.T) {
	e := newEngine(t)
	e.write(logfile.Stdout, "x\n")
	gone := errors.New("gone")
	err := logfile.Follow(t.Context(), e.path, logfile.Options{Tail: -1}, failing{gone}, new(logfile.Watcher), nil)
	if !errors.Is(err, gone) {
		t.Errorf("got %v, want the error of the write", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := newBuffer()
	done := make(chan error, 1)
	go func() { done <- logfile.Follow(ctx, e.path, logfile.Options{Tail: -1}, got, new(logfile.Watcher), nil) }()
	await(t, got, "x\n")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that of the context", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Who asked over a network learns that the log was found, though it is silent.
func TestAFollowerOfASilentLogHearsAtOnce(t *testing.T) {
	e := newEngine(t)
	e.write(logfile.Stdout, "before\n")
	wrote := make(chan int, 10)
	ended, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- logfile.Follow(t.Context(), e.path, logfile.Options{Tail: 0}, writes(wrote), new(logfile.Watcher), ended)
	}()
	if n := <-wrote; n != 0 {
		t.Errorf("got a write of %d bytes, want one of none", n)
	}
	close(ended)
	if err := <-done; err != nil || len(wrote) > 0 {
		t.Errorf("got %v, and %d writes more", err, len(wrote))
	}
}

// writes tells how long each is.
type writes chan int

func (w writes) Write(b []byte) (int, error) {
	w <- len(b)
	return len(b), nil
}
