package volume_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/node/volume"
)

func subPath(podDir string, v v1.Volume, path string) (string, error) {
	return hostOf(podDir).SubPath(request(podDir, v), volume.Part{Container: "app", Path: path})
}

// read returns what a file holds, or the error's text.
func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestSubPath(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "f"), "outside")
	tests := map[string]struct {
		path string
		file string // to read below what was mounted; "" is the mounted itself
		want string
		err  error
	}{
		"a directory":                           {path: "dir", file: "f", want: "in dir"},
		"one that is deeper":                    {path: "dir/sub", file: "f", want: "in sub"},
		"a file":                                {path: "dir/f", want: "in dir"},
		"the volume":                            {path: ".", file: "dir/f", want: "in dir"},
		"a link that stays inside":              {path: "link", file: "f", want: "in sub"},
		"a path over one":                       {path: "link/f", want: "in sub"},
		"a link that climbs and stays inside":   {path: "dir/up/sub", file: "f", want: "in sub"},
		"a way up that stays inside":            {path: "dir/../dir/f", want: "in dir"},
		"a way out":                             {path: "..", err: volume.ErrOutside},
		"a longer way out":                      {path: "dir/../../d/dir", err: volume.ErrOutside},
		"a link out":                            {path: "out", err: volume.ErrOutside},
		"a path over a link out":                {path: "out/f", err: volume.ErrOutside},
		"a link to the root":                    {path: "root/etc", err: volume.ErrOutside},
		"a link that climbs out":                {path: "climb", err: volume.ErrOutside},
		"links without end":                     {path: "loop", err: unix.ELOOP},
		"an absolute path":                      {path: "/dir", err: volume.ErrOutside},
		"a path through a file":                 {path: "dir/f/x", err: unix.ENOTDIR},
		"a link to what is missing, not made":   {path: "dangling/x", file: "", err: nil},
		"a link of the kernel's own, as a path": {path: "proc/self/root", err: volume.ErrOutside},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			podDir := podFolder(t)
			dir := ensure(t, podDir, emptyDir("d"))
			mkdir(t, filepath.Join(dir, "dir/sub"))
			write(t, filepath.Join(dir, "dir/f"), "in dir")
			write(t, filepath.Join(dir, "dir/sub/f"), "in sub")
			symlink(t, "dir/sub", filepath.Join(dir, "link"))
			symlink(t, "../dir", filepath.Join(dir, "dir/up"))
			symlink(t, outside, filepath.Join(dir, "out"))
			symlink(t, "/", filepath.Join(dir, "root"))
			symlink(t, "../../../../..", filepath.Join(dir, "climb"))
			symlink(t, "loop", filepath.Join(dir, "loop"))
			symlink(t, "nowhere", filepath.Join(dir, "dangling"))
			mount(t, "proc", filepath.Join(dir, "proc"), "proc", 0)

			got, err := subPath(podDir, emptyDir("d"), tt.path)
			if !errors.Is(err, tt.err) {
				t.Fatalf("%s, %v, want %v", got, err, tt.err)
			}
			if err != nil {
				if strings.Contains(err.Error(), outside) || strings.Contains(err.Error(), tt.path) && len(tt.path) > 4 {
					t.Errorf("%v tells of the host, or repeats the path", err)
				}
				return
			}
			if want := filepath.Join(podDir, "volume-subpaths/d/app/0"); got != want {
				t.Errorf("mounted on %s, want %s", got, want)
			}
			if tt.want != "" && read(filepath.Join(got, tt.file)) != tt.want {
				t.Errorf("reads %q, want %q", read(filepath.Join(got, tt.file)), tt.want)
			}
		})
	}
}

// What is missing is made, as a directory, with the mode of the volume.
func TestSubPathMakesDirectories(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	podDir := podFolder(t)
	group := int64(2000)
	r := request(podDir, emptyDir("d"))
	r.FSGroup = &group
	if err := hostOf(podDir).Ensure(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	got, err := hostOf(podDir).SubPath(r, volume.Part{Container: "app", Index: 1, Path: "a/b/c"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(got, "f"), "x")
	dir := pathOf(podDir, emptyDir("d"))
	if text := read(filepath.Join(dir, "a/b/c/f")); text != "x" {
		t.Errorf("in the volume: %q", text)
	}
	for _, path := range []string{"a", "a/b", "a/b/c"} {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, path), &st); err != nil || st.Mode&0o7777 != 0o2777 || st.Gid != 2000 {
			t.Errorf("%s: mode %#o, group %d, %v", path, st.Mode&0o7777, st.Gid, err)
		}
	}
}

// Nothing is made in a volume whose content is given: a directory in the place of
// a key would be there for good.
func TestSubPathOfAMissingKeyIsNotMade(t *testing.T) {
	podDir := podFolder(t)
	dir := fill(t, podDir, configMap(), files(map[string]string{"a": "1"}))
	if got, err := subPath(podDir, configMap(), "b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s, %v, want fs.ErrNotExist", got, err)
	}
	gone(t, filepath.Join(dir, "b"))
}

// C066: a subPath mount does not follow an update, and the next one has it.
func TestSubPathOfAFileThatIsUpdatedC066(t *testing.T) {
	podDir := podFolder(t)
	fill(t, podDir, configMap(), files(map[string]string{"app.conf": "v1"}))
	got, err := subPath(podDir, configMap(), "app.conf")
	if err != nil || read(got) != "v1" {
		t.Fatalf("%q, %v", read(got), err)
	}
	fill(t, podDir, configMap(), files(map[string]string{"app.conf": "v2"}))
	if text := read(got); text != "v1" {
		t.Errorf("the mount that is there reads %q", text)
	}
	for range 2 {
		if again, err := subPath(podDir, configMap(), "app.conf"); err != nil || again != got || read(got) != "v2" {
			t.Errorf("the next: %q, %v", read(again), err)
		}
	}
	if n := len(mounts(t, podDir)); n != 1 {
		t.Errorf("%d mounts, want one", n)
	}
	// It may be something else the next time.
	fill(t, podDir, configMap(), files(map[string]string{"app.conf/x": "v3"}))
	if _, err := subPath(podDir, configMap(), "app.conf"); err != nil || read(filepath.Join(got, "x")) != "v3" {
		t.Errorf("a folder in the place of the file: %q, %v", read(filepath.Join(got, "x")), err)
	}
	if err := removeVolumes(podDir); err != nil {
		t.Fatal(err)
	}
	gone(t, got)
}

// What is a socket, a pipe or a device is mounted without being opened.
func TestSubPathOfWhatIsNotToBeOpened(t *testing.T) {
	dir := kinds(t)
	for _, name := range []string{"sock", "fifo", "char", "block", "tosock"} {
		podDir := podFolder(t)
		got, err := subPath(podDir, hostPath(dir, v1.HostPathDirectory), name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(got); err != nil || !os.SameFile(info, want) {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
		if err := removeVolumes(podDir); err != nil {
			t.Error(err)
		}
		mode(t, filepath.Join(dir, name))
	}
}

// A pod swaps a directory for a link to the root of the machine, and moves another
// one about, as fast as it can, while its subPath is looked for: what is mounted is
// inside, or nothing is.
func TestSubPathWinsEveryRace(t *testing.T) {
	podDir := podFolder(t)
	dir := ensure(t, podDir, emptyDir("d"))
	mkdir(t, filepath.Join(dir, "x/etc"))
	mkdir(t, filepath.Join(dir, "high/m/n"))
	mkdir(t, filepath.Join(dir, "deep/er/down/m/n"))
	symlink(t, "/", filepath.Join(dir, "evil"))
	at := func(rel string) string { return filepath.Join(dir, rel) }
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			for _, pair := range [][2]string{{"x", "evil"}, {"high/m", "deep/er/down/m"}} {
				if err := unix.Renameat2(unix.AT_FDCWD, at(pair[0]), unix.AT_FDCWD, at(pair[1]), unix.RENAME_EXCHANGE); err != nil {
					ended <- err
					return
				}
			}
		}
	}()
	outside := make(map[string]os.FileInfo)
	for _, path := range []string{"/", "/etc", podDir, filepath.Join(podDir, "volumes"), filepath.Dir(dir)} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		outside[path] = info
	}
	inside, refused := 0, 0
	for i := range 2000 {
		path := []string{"x/etc", "x/new", "deep/er/down/m/n/../../../../../x", "high/m/n/../../../high"}[i%4]
		got, err := subPath(podDir, emptyDir("d"), path)
		if err != nil {
			refused++
			continue
		}
		inside++
		info, err := os.Stat(got)
		if err != nil {
			t.Fatal(err)
		}
		for name, o := range outside {
			if os.SameFile(info, o) {
				t.Fatalf("%s: %s is mounted", path, name)
			}
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	gone(t, "/new")
	if inside < 100 || refused < 100 {
		t.Errorf("no race: %d mounted, %d refused", inside, refused)
	}
}

// Once mounted, nothing that the pod renames changes what is mounted.
func TestSubPathHoldsWhatItFound(t *testing.T) {
	podDir := podFolder(t)
	dir := ensure(t, podDir, emptyDir("d"))
	mkdir(t, filepath.Join(dir, "a"))
	write(t, filepath.Join(dir, "a/f"), "inside")
	got, err := subPath(podDir, emptyDir("d"), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	symlink(t, "/", filepath.Join(dir, "a"))
	if text := read(filepath.Join(got, "f")); text != "inside" {
		t.Errorf("reads %q", text)
	}
}

func TestReadFile(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "f"), "outside")
	podDir := podFolder(t)
	dir := ensure(t, podDir, emptyDir("d"))
	mkdir(t, filepath.Join(dir, "conf"))
	write(t, filepath.Join(dir, "conf/env"), "0123456789")
	symlink(t, "conf/env", filepath.Join(dir, "link"))
	symlink(t, filepath.Join(outside, "f"), filepath.Join(dir, "out"))
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		limit int64
		want  string
		err   error
	}{
		"conf/env":     {limit: 10, want: "0123456789"},
		"link":         {limit: 100, want: "0123456789"},
		"./conf//env":  {limit: 100, want: "0123456789"},
		"conf/../link": {limit: 9, err: volume.ErrTooLong},
		"out":          {limit: 100, err: volume.ErrOutside},
		"../d/link":    {limit: 100, err: volume.ErrOutside},
		"conf":         {limit: 100, err: volume.ErrNotRegular},
		"fifo":         {limit: 100, err: volume.ErrNotRegular},
		"none":         {limit: 100, err: fs.ErrNotExist},
	}
	for path, tt := range tests {
		t.Run(path, func(t *testing.T) {
			got, err := hostOf(podDir).ReadFile(request(podDir, emptyDir("d")), path, tt.limit)
			if !errors.Is(err, tt.err) || err == nil && string(got) != tt.want {
				t.Errorf("%q, %v, want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
	gone(t, filepath.Join(dir, "none"))
}

// flags returns what a mount is restricted by.
func flags(t *testing.T, path string) (list []string) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		name string
		bit  int64
	}{{"ro", unix.ST_RDONLY}, {"nosuid", unix.ST_NOSUID}, {"nodev", unix.ST_NODEV}, {"noexec", unix.ST_NOEXEC}} {
		if st.Flags&f.bit != 0 {
			list = append(list, f.name)
		}
	}
	return list
}

func TestSubPathWithMountOptions(t *testing.T) {
	podDir, host := podFolder(t), t.TempDir()
	dir := ensure(t, podDir, emptyDir("d"))
	mount(t, "tmpfs", host, "tmpfs", unix.MS_NODEV)
	t.Cleanup(func() { unix.Unmount(host, unix.MNT_DETACH) })
	write(t, filepath.Join(host, "f"), "x")
	for i, c := range []struct {
		v       v1.Volume
		path    string
		options []string
		want    []string
	}{
		{emptyDir("d"), "", []string{"noexec"}, []string{"noexec"}},
		{emptyDir("d"), "sub", []string{"ro", "nosuid", "nodev", "noexec"}, []string{"ro", "nosuid", "nodev", "noexec"}},
		{emptyDir("d"), "sub", nil, nil},
		{hostPath(host, v1.HostPathDirectory), "", []string{"noexec"}, []string{"nodev", "noexec"}},
		{hostPath(filepath.Join(host, "f"), v1.HostPathFile), "", []string{"ro"}, []string{"ro", "nodev"}},
	} {
		part := volume.Part{Container: "app", Index: i, Path: c.path, Options: c.options}
		got, err := hostOf(podDir).SubPath(request(podDir, c.v), part)
		if err != nil {
			t.Fatal(err)
		}
		same(t, c.v.Name+" "+c.path, flags(t, got), c.want)
	}
	if got := flags(t, dir); got != nil {
		t.Errorf("the volume itself has %v", got)
	}
	part := volume.Part{Container: "app", Options: []string{"exec"}}
	if _, err := hostOf(podDir).SubPath(request(podDir, emptyDir("d")), part); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("an option that is none: %v", err)
	}
}
