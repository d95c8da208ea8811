package rootdir_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/node/rootdir"
)

// holdEnv makes the test binary an agent that holds a root dir until it is killed.
const holdEnv = "ROOTDIR_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		if _, err := rootdir.Open(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		select {}
	}
	os.Exit(m.Run())
}

func open(t *testing.T, path string) *rootdir.Dir {
	t.Helper()
	d, err := rootdir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestOpenMakesThePath(t *testing.T) {
	defer unix.Umask(unix.Umask(0o022))
	top := filepath.Join(t.TempDir(), "var")
	path := filepath.Join(top, "lib", "agent")
	d := open(t, path+"/")
	if d.Path() != path {
		t.Errorf("Path() = %s, want %s", d.Path(), path)
	}
	want := map[string]fs.FileMode{top: 0o755, filepath.Dir(path): 0o755, path: 0o700, filepath.Join(path, "lock"): 0o600}
	for p, m := range want {
		if got := mode(t, p); got != m {
			t.Errorf("mode of %s is %#o, want %#o", p, got, m)
		}
	}
}

func TestOpenOfAFolderThatIsThere(t *testing.T) {
	tests := map[string]struct {
		mode, want fs.FileMode
		holds      string
		refused    bool
	}{
		"an empty one becomes private":                      {mode: 0o755, want: 0o700},
		"a former root dir becomes private":                 {mode: 0o777, want: 0o700, holds: "lock"},
		"one with files of others keeps its mode":           {mode: 0o755, want: 0o755, holds: "x"},
		"one like /tmp is refused and left as it was":       {mode: 0o777, want: 0o777, holds: "x", refused: true},
		"one that a group can write to is refused likewise": {mode: 0o770, want: 0o770, holds: "x", refused: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			if tt.holds != "" {
				if err := os.WriteFile(filepath.Join(path, tt.holds), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			d, err := rootdir.Open(path)
			if err == nil {
				defer d.Close()
			}
			if refused := errors.Is(err, fs.ErrPermission); refused != tt.refused || (err != nil) != tt.refused {
				t.Errorf("Open: %v, want refused %v", err, tt.refused)
			}
			if got := mode(t, path); got != tt.want {
				t.Errorf("mode is %#o, want %#o", got, tt.want)
			}
		})
	}
}

func TestOneAgentOnly(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	_, err := rootdir.Open(path)
	if !errors.Is(err, rootdir.ErrLocked) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("second Open: %v, want ErrLocked naming process %d", err, os.Getpid())
	}
	// The refused one must not have taken the holder's temporary folder away.
	if err := first.WriteFile("a", []byte("1")); err != nil {
		t.Errorf("the holder after a refused Open: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := rootdir.Open(link); !errors.Is(err, rootdir.ErrLocked) {
		t.Errorf("Open by another name: %v, want ErrLocked", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, link)
}

// Law 3: a crash of the agent costs nothing but the step it was in.
func TestAKilledAgentLeavesNoLock(t *testing.T) {
	path := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "held\n" {
		t.Fatalf("helper said %q, %v", line, err)
	}
	_, err = rootdir.Open(path)
	if !errors.Is(err, rootdir.ErrLocked) || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("Open beside it: %v, want ErrLocked naming process %d", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // killed
	open(t, path)
}

func TestOpenRemovesHalfWrittenFiles(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	if err := d.WriteFile("pods/u/state.json", []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(path, ".tmp")
	if err := os.WriteFile(filepath.Join(temp, "7"), []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	d = open(t, path)
	left, err := os.ReadDir(temp)
	if err != nil || len(left) != 0 {
		t.Errorf("left in %s: %v, %v", temp, left, err)
	}
	if got, err := d.ReadFile("pods/u/state.json"); err != nil || string(got) != "whole" {
		t.Errorf("the file itself: %q, %v", got, err)
	}
}

// Law 5: what the root dir remembers is 0600, in folders that are 0700.
func TestWriteFile(t *testing.T) {
	defer unix.Umask(unix.Umask(0))
	path := t.TempDir()
	d := open(t, path)
	name := "pods/3f-x/pod.json"
	for _, data := range []string{"one", "", "three, and longer"} {
		if err := d.WriteFile(name, []byte(data)); err != nil {
			t.Fatal(err)
		}
		got, err := d.ReadFile(name)
		if err != nil || string(got) != data {
			t.Fatalf("read %q, %v, want %q", got, err, data)
		}
	}
	if got := mode(t, filepath.Join(path, name)); got != 0o600 {
		t.Errorf("mode of the file is %#o", got)
	}
	for _, dir := range []string{"pods", "pods/3f-x"} {
		if got := mode(t, filepath.Join(path, dir)); got != 0o700 {
			t.Errorf("mode of %s is %#o", dir, got)
		}
	}
	if left, err := os.ReadDir(filepath.Join(path, ".tmp")); err != nil || len(left) != 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

func TestWriteFileOfTheSameBytesWritesNothing(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	inode := func() uint64 {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(path, "a"), &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	// A link keeps the first inode in use, or the next file might get its number.
	if err := d.WriteFile("a", []byte("same")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(path, "a"), filepath.Join(path, "keep")); err != nil {
		t.Fatal(err)
	}
	first := inode()
	if err := d.WriteFile("a", []byte("same")); err != nil {
		t.Fatal(err)
	}
	if inode() != first {
		t.Error("the same bytes made a new file")
	}
	if err := d.WriteFile("a", []byte("else")); err != nil {
		t.Fatal(err)
	}
	if inode() == first {
		t.Error("other bytes were written into the old file, not beside it")
	}
}

func TestAFailedWriteLeavesNothing(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	if err := d.WriteFile("a", []byte("file")); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteFile("a/b", []byte("below a file")); err == nil {
		t.Error("a file below a file was written")
	}
	if left, err := os.ReadDir(filepath.Join(path, ".tmp")); err != nil || len(left) != 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

func TestWritersBesideEachOther(t *testing.T) {
	d := open(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if err := d.WriteFile(fmt.Sprintf("pods/%d/state.json", i%4), []byte(strconv.Itoa(i%4))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	names, err := d.Entries("pods")
	if diff := cmp.Diff([]string{"0", "1", "2", "3"}, names); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, n := range names {
		if got, err := d.ReadFile("pods/" + n + "/state.json"); err != nil || string(got) != n {
			t.Errorf("pod %s holds %q, %v", n, got, err)
		}
	}
}

func TestNamesCannotLeadOut(t *testing.T) {
	outside := t.TempDir()
	path := t.TempDir()
	d := open(t, path)
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(path, "out")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../x", "a/../../x", "/etc/x", "lock", "lock/x", ".tmp", ".tmp/1", "./lock", "out/secret"} {
		if err := d.WriteFile(name, []byte("x")); err == nil {
			t.Errorf("WriteFile(%q) is allowed", name)
		}
		if data, err := d.ReadFile(name); err == nil {
			t.Errorf("ReadFile(%q) is allowed: %q", name, data)
		}
		if err := d.Remove(name); err == nil {
			t.Errorf("Remove(%q) is allowed", name)
		}
		if name != "." {
			if got, err := d.Entries(name); err == nil && name != "" && len(got) > 0 {
				t.Errorf("Entries(%q) is allowed: %v", name, got)
			}
		}
	}
	if got, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(got) != "s" {
		t.Errorf("the file outside: %q, %v", got, err)
	}
}

// Law 4: already done is success.
func TestReadAndRemoveOfWhatIsMissing(t *testing.T) {
	d := open(t, t.TempDir())
	if _, err := d.ReadFile("pods/x/state.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile: %v, want fs.ErrNotExist", err)
	}
	if err := d.Remove("pods/x/state.json"); err != nil {
		t.Errorf("Remove: %v", err)
	}
	if names, err := d.Entries("pods"); err != nil || names != nil {
		t.Errorf("Entries: %v, %v", names, err)
	}
	if err := d.WriteFile("pods/x/state.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove("pods/x"); err == nil {
		t.Error("Remove of a folder is allowed")
	}
	if err := d.Remove("pods//x/./state.json"); err != nil {
		t.Errorf("Remove: %v", err)
	}
	if names, err := d.Entries("pods/x"); err != nil || len(names) != 0 {
		t.Errorf("left after Remove: %v, %v", names, err)
	}
}

func TestAReaderNeedsNoLockAndChangesNothing(t *testing.T) {
	path := t.TempDir()
	if _, err := rootdir.OpenReader(filepath.Join(path, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenReader of nothing: %v, want fs.ErrNotExist", err)
	}
	d := open(t, path)
	if err := d.WriteFile("pods/u/pod.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	r, err := rootdir.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := r.ReadFile("pods/u/pod.json"); err != nil || string(got) != "{}" {
		t.Errorf("read %q, %v", got, err)
	}
	names, err := r.Entries(".")
	if diff := cmp.Diff([]string{"pods"}, names); err != nil || diff != "" {
		t.Errorf("Entries of the root dir: %v %s", err, diff)
	}
	if got, want := r.PodDir("u"), filepath.Join(path, "pods/u"); got != want {
		t.Errorf("PodDir = %s, want %s", got, want)
	}
}

func BenchmarkWriteFile(b *testing.B) {
	d, err := rootdir.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for i := 0; b.Loop(); i++ {
		if err := d.WriteFile("pods/u/state.json", []byte(strings.Repeat("x", 4096)+strconv.Itoa(i))); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRemoveWithFolder(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	for _, name := range []string{"a/f", "b/f", "b/mine"} {
		if err := d.WriteFile(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a/f", "a/f", "b/f", "none/f"} { // law 4
		if err := d.RemoveWithFolder(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(path, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty folder is left: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(path, "b", "mine")); err != nil {
		t.Error(err)
	}
}
