package stats_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/node/stats"
)

// blocks is what one file takes, by another way than the walk's.
func blocks(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

func write(t *testing.T, path string, size int) string {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWalk(t *testing.T) {
	for name, c := range map[string]struct {
		// make makes files in dir and returns those to be counted besides dir.
		make func(t *testing.T, dir string) []string
	}{
		"nothing": {func(*testing.T, string) []string { return nil }},
		"files at several depths": {func(t *testing.T, dir string) []string {
			a, b := mkdir(t, dir+"/a"), mkdir(t, dir+"/a/b")
			return []string{a, b, write(t, dir+"/1", 10_000), write(t, b+"/2", 100_000)}
		}},
		"a file with two names counts once": {func(t *testing.T, dir string) []string {
			a := write(t, dir+"/a", 50_000)
			check(t, os.Link(a, dir+"/b"))
			sub := mkdir(t, dir+"/sub")
			check(t, os.Link(a, sub+"/c"))
			return []string{a, sub}
		}},
		"a sparse file by what it takes": {func(t *testing.T, dir string) []string {
			a := write(t, dir+"/a", 0)
			check(t, os.Truncate(a, 1<<40))
			return []string{a}
		}},
		"a link is not followed": {func(t *testing.T, dir string) []string {
			elsewhere := t.TempDir()
			write(t, elsewhere+"/big", 1_000_000)
			check(t, os.Symlink(elsewhere, dir+"/link"))
			return []string{dir + "/link"}
		}},
		"another filesystem is not entered": {func(t *testing.T, dir string) []string {
			at := mkdir(t, dir+"/tmp")
			check(t, unix.Mount("none", at, "tmpfs", 0, ""))
			t.Cleanup(func() { check(t, unix.Unmount(at, unix.MNT_DETACH)) })
			write(t, at+"/big", 1_000_000)
			return nil // nor is the folder below it seen
		}},
		"the same filesystem, mounted again, is not entered": {func(t *testing.T, dir string) []string {
			elsewhere, at := t.TempDir(), mkdir(t, dir+"/bound")
			write(t, elsewhere+"/big", 1_000_000)
			check(t, unix.Mount(elsewhere, at, "", unix.MS_BIND, ""))
			t.Cleanup(func() { check(t, unix.Unmount(at, unix.MNT_DETACH)) })
			file, over := write(t, elsewhere+"/other", 1_000_000), write(t, dir+"/file", 0)
			check(t, unix.Mount(file, over, "", unix.MS_BIND, ""))
			t.Cleanup(func() { check(t, unix.Unmount(over, unix.MNT_DETACH)) })
			return nil
		}},
		"a very deep tree down to where it is bearable": {func(t *testing.T, dir string) []string {
			root, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
			check(t, err)
			var list []string
			for at, path := root, dir; ; {
				check(t, unix.Mkdirat(at, "d", 0o700))
				below, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
				check(t, err)
				unix.Close(at)
				at, path = below, path+"/d"
				if list = append(list, path); len(list) == 1500 {
					unix.Close(at)
					return list[:1000]
				}
			}
		}},
		"names that are not text": {func(t *testing.T, dir string) []string {
			a := mkdir(t, dir+"/\xff\n")
			return []string{a, write(t, a+"/\x01", 5000)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			want := stats.Usage{Inodes: 1}
			counted := c.make(t, dir)
			for _, path := range append(counted, dir) {
				want.Bytes += blocks(t, path)
			}
			want.Inodes += int64(len(counted))
			got, err := stats.Walk(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if got.Bytes != want.Bytes || got.Inodes != want.Inodes {
				t.Errorf("got %d bytes in %d inodes, want %d in %d", got.Bytes, got.Inodes, want.Bytes, want.Inodes)
			}
			if got.Time.IsZero() {
				t.Error("it does not say when that was")
			}
		})
	}
}

func TestWalkWhereNothingIs(t *testing.T) {
	_, err := stats.Walk(t.Context(), filepath.Join(t.TempDir(), "gone"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestWalkEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stats.Walk(ctx, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Files and folders come, go and take each other's names while they are counted.
func TestWalkThroughWhatChanges(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/stays", 10_000)
	ctx, cancel := context.WithCancel(t.Context())
	var churn sync.WaitGroup
	churn.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			at := fmt.Sprintf("%s/%d", dir, n%7)
			_ = os.MkdirAll(at+"/deep/er", 0o700)
			_ = os.WriteFile(at+"/deep/er/file", []byte("x"), 0o600)
			_ = os.RemoveAll(at)
			_ = os.WriteFile(at, nil, 0o600)
			_ = os.Remove(at)
			_ = os.Symlink(dir, at)
			_ = os.Remove(at)
		}
	})
	defer churn.Wait()
	defer cancel()
	for range 2000 {
		got, err := stats.Walk(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		if got.Bytes < 10_000 || got.Inodes < 2 {
			t.Fatalf("what stays was not counted: %+v", got)
		}
	}
}
