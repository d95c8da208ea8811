package stats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/node/stats"
)

func TestNextWalk(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	for name, c := range map[string]struct {
		wanted []string
		walked map[string]time.Time
		free   time.Time
		folder string
		at     time.Time
	}{
		"nobody asks":                          {nil, map[string]time.Time{"/a": at(1)}, at(5), "", at(5)},
		"the first is walked at once":          {[]string{"/a"}, nil, time.Time{}, "/a", time.Time{}},
		"never walked comes before walked":     {[]string{"/a", "/b"}, map[string]time.Time{"/a": at(1)}, at(5), "/b", at(5)},
		"the one that was not walked longest":  {[]string{"/a", "/b"}, map[string]time.Time{"/a": at(9), "/b": at(8)}, at(10), "/b", at(68)},
		"of two alike the first by name":       {[]string{"/b", "/a"}, map[string]time.Time{"/a": at(9), "/b": at(9)}, at(10), "/a", at(69)},
		"no folder twice in a minute":          {[]string{"/a"}, map[string]time.Time{"/a": at(100)}, at(101), "/a", at(160)},
		"a long walk holds up all of them":     {[]string{"/a"}, map[string]time.Time{"/a": at(100)}, at(1000), "/a", at(1000)},
		"and those that were never walked too": {[]string{"/new"}, nil, at(1000), "/new", at(1000)},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := make(map[string]bool)
			for _, folder := range c.wanted {
				wanted[folder] = true
			}
			folder, when, ok := stats.NextWalk(wanted, c.walked, c.free)
			if folder != c.folder || ok != (c.folder != "") || !when.Equal(c.at) {
				t.Errorf("got %q at %v (%t), want %q at %v", folder, when, ok, c.folder, c.at)
			}
		})
	}
	if got := stats.FreeAfter(at(100), at(103)); !got.Equal(at(400)) {
		t.Errorf("after a walk of 3 s from 100 the next one is free to begin at %d, want 400", got.Unix())
	}
}

// walked is one walk of a test.
type walked struct {
	Folder       string
	Began, Ended time.Duration
}

// scene is a walker whose walks take a given time.
type scene struct {
	*stats.Walker
	log   bytes.Buffer
	begin time.Time
	mu    sync.Mutex
	walks []walked
}

func play(t *testing.T, takes time.Duration, outcome func(folder string) error, f func(*scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{begin: time.Now()}
		s.Walker = stats.NewWalker(nil, slog.New(slog.NewTextHandler(&s.log, nil)))
		running := 0
		s.SetWalk(func(ctx context.Context, folder string) (stats.Usage, error) {
			s.mu.Lock()
			if running++; running > 1 {
				t.Error("two walks at a time")
			}
			s.mu.Unlock()
			began := time.Since(s.begin)
			select {
			case <-time.After(takes):
			case <-ctx.Done():
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			running--
			if ctx.Err() != nil {
				return stats.Usage{}, ctx.Err()
			}
			s.walks = append(s.walks, walked{folder, began, time.Since(s.begin)})
			return stats.Usage{Time: time.Now(), Bytes: int64(len(s.walks)), Inodes: 1}, outcome(folder)
		})
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		f(s)
		cancel()
		run.Wait()
	})
}

func well(string) error { return nil }

func TestNobodyAsksNobodyWalks(t *testing.T) {
	play(t, time.Millisecond, well, func(s *scene) {
		if got := s.Usage("/a"); got != nil {
			t.Errorf("known before anybody looked: %+v", got)
		}
		time.Sleep(time.Second)
		if got := s.Usage("/a"); got == nil || got.Bytes != 1 {
			t.Errorf("got %+v, want what the walk found", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff(2, len(s.walks)); diff != "" {
			t.Errorf("two asked (-want +got):\n%s%v", diff, s.walks)
		}
	})
}

// Somebody asks for three folders every ten seconds, as the evictor does.
func TestWalksAreRareAndCheap(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		most  int // walks in an hour
	}{
		"short walks, each folder once a minute": {time.Millisecond, 3 * 60},
		"long ones, a hundredth of the time":     {3 * time.Second, 12},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, c.takes, well, func(s *scene) {
				for range 360 {
					for _, folder := range []string{"/a", "/b", "/c"} {
						s.Usage(folder)
					}
					time.Sleep(10 * time.Second)
				}
				synctest.Wait()
				if len(s.walks) < c.most-3 || len(s.walks) > c.most {
					t.Errorf("%d walks in an hour, want %d", len(s.walks), c.most)
				}
				last := make(map[string]walked)
				for i, w := range s.walks {
					if was, ok := last[w.Folder]; ok && w.Began-was.Ended < time.Minute {
						t.Errorf("%s walked at %v and at %v", w.Folder, was.Ended, w.Began)
					}
					if i > 0 && w.Began-s.walks[i-1].Began < 100*c.takes {
						t.Errorf("a walk at %v after one of %v at %v", w.Began, c.takes, s.walks[i-1].Began)
					}
					last[w.Folder] = w
				}
				if len(last) != 3 {
					t.Errorf("only %v were walked", last)
				}
			})
		})
	}
}

func TestFoldersThatCannotBeWalked(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int // warnings
	}{
		"one that is gone is no fault":     {fmt.Errorf("walk: %w", os.ErrNotExist), 0},
		"one that cannot be read, is once": {errors.New("input/output error"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, time.Millisecond, func(string) error { return c.err }, func(s *scene) {
				for range 60 {
					if got := s.Usage("/a"); got != nil {
						t.Errorf("got %+v of a walk that failed", got)
					}
					time.Sleep(time.Minute)
				}
				if got := strings.Count(s.log.String(), "level=WARN"); got != c.want {
					t.Errorf("%d warnings, want %d:\n%s", got, c.want, &s.log)
				}
			})
		})
	}
}

func TestAwaitTheFirstLook(t *testing.T) {
	fails := func(folder string) error {
		if folder == "/gone" {
			return os.ErrNotExist
		}
		return nil
	}
	play(t, 10*time.Millisecond, fails, func(s *scene) {
		folders := []string{"/a", "", "/b", "/gone"}
		s.Await(context.Background(), folders)
		if took := time.Since(s.begin); took != 2010*time.Millisecond {
			t.Errorf("it took %v, want three walks with a second from one to the next", took)
		}
		if a, b, gone := s.Usage("/a"), s.Usage("/b"), s.Usage("/gone"); a == nil || b == nil || gone != nil {
			t.Errorf("got %v, %v and %v", a, b, gone)
		}
		s.Await(context.Background(), folders) // which are known
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		s.Await(ctx, []string{"/c"})
		if took := time.Since(s.begin); took != 2011*time.Millisecond {
			t.Errorf("it went on until %v", took)
		}
	})
}

func TestTheWalkerForgets(t *testing.T) {
	play(t, time.Millisecond, well, func(s *scene) {
		for i := range 100 {
			s.Usage(fmt.Sprintf("/pod%d", i))
		}
		time.Sleep(stats.Forget)
		s.Usage("/other")
		time.Sleep(time.Minute)
		if got := s.Known(); got != 1 {
			t.Errorf("%d folders are still known, want 1", got)
		}
	})
}

func TestAWalkEndsWithTheAgent(t *testing.T) {
	play(t, time.Hour, well, func(s *scene) {
		s.Usage("/a")
		time.Sleep(time.Second)
	}) // which waits for Run
}

func TestAQuotaReplacesTheWalk(t *testing.T) {
	w := stats.NewWalker(func(folder string) (stats.Usage, bool) {
		return stats.Usage{Bytes: 7}, folder == "/counted"
	}, slog.New(slog.DiscardHandler))
	if got := w.Usage("/counted"); got == nil || got.Bytes != 7 {
		t.Errorf("got %+v, want what is counted", got)
	}
	if got := w.Known(); got != 0 {
		t.Error("it is to be walked all the same")
	}
}

// While others wait for the disk, a walk waits longer.
func TestAWalkIsServedLast(t *testing.T) {
	const process, bestEffort, lowest = 1, 2 << 13, 7
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var priority uintptr
	w := stats.NewWalker(nil, slog.New(slog.DiscardHandler))
	w.SetWalk(func(context.Context, string) (stats.Usage, error) {
		priority, _, _ = unix.Syscall(unix.SYS_IOPRIO_GET, process, 0, 0)
		cancel()
		return stats.Usage{}, nil
	})
	w.Usage("/a")
	if err := w.Run(ctx); err != nil || priority != bestEffort|lowest {
		t.Errorf("%v, with I/O priority %#x, want %#x", err, priority, bestEffort|lowest)
	}
}
