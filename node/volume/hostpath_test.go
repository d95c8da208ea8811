package volume_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/node/volume"
)

func hostPath(path string, typ v1.HostPathType) v1.Volume {
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path, Type: &typ}}}
}

// kinds makes one of each kind of file and returns their folder.
func kinds(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hp") // short: a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "file"), "content")
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, device := range map[string]struct {
		mode uint32
		dev  uint64
	}{"char": {unix.S_IFCHR, unix.Mkdev(1, 3)}, "block": {unix.S_IFBLK, unix.Mkdev(7, 0)}} {
		if err := unix.Mknod(filepath.Join(dir, name), device.mode|0o600, int(device.dev)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"todir": "dir", "tosock": "sock", "dangling": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// C068 and C069: the check of each type against each kind of file.
func TestHostPathTypesC068C069(t *testing.T) {
	all := []string{"dir", "file", "sock", "fifo", "char", "block", "todir", "tosock", "missing"}
	tests := map[v1.HostPathType]struct {
		what  string
		takes []string
	}{
		v1.HostPathDirectory:         {"directory", []string{"dir", "todir"}},
		v1.HostPathDirectoryOrCreate: {"directory", []string{"dir", "todir", "missing"}},
		v1.HostPathFile:              {"file", []string{"file"}},
		v1.HostPathFileOrCreate:      {"file", []string{"file", "missing"}},
		v1.HostPathSocket:            {"socket file", []string{"sock", "tosock"}},
		v1.HostPathCharDev:           {"character device", []string{"char"}},
		v1.HostPathBlockDev:          {"block device", []string{"block"}},
		v1.HostPathUnset:             {"", all},
	}
	// What the refusal adds, so that people see what is in the way.
	is := map[string]string{
		"dir": "it is a directory", "todir": "it is a directory", "file": "it is a file", "sock": "it is a socket file",
		"tosock": "it is a socket file", "fifo": "it is a named pipe", "char": "it is a character device",
		"block": "it is a block device", "missing": "it does not exist",
	}
	for typ, tt := range tests {
		t.Run("type "+string(typ), func(t *testing.T) {
			dir := kinds(t)
			takes := map[string]bool{}
			for _, k := range tt.takes {
				takes[k] = true
			}
			for _, k := range all {
				path := filepath.Join(dir, k)
				got, err := try(podFolder(t), hostPath(path, typ))
				if takes[k] {
					if err != nil || got != path {
						t.Errorf("%s: %q, %v", k, got, err)
					}
					continue
				}
				message := "hostPath type check failed: " + path + " is not a " + tt.what + ", " + is[k]
				refusal, ok := errors.AsType[*volume.Error](err)
				if !ok || refusal.Message != message || refusal.Path != path {
					t.Errorf("%s: %v, want %s", k, err, message)
				}
				if k == "missing" {
					gone(t, path)
				}
			}
			if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != "content" {
				t.Errorf("the file now has %q, %v", got, err)
			}
			if got := mode(t, filepath.Join(dir, "dir")).Perm(); got != 0o700 {
				t.Errorf("the directory's mode is now %#o", got)
			}
		})
	}
}

func TestHostPathErrorIsTheKubeletsSentence(t *testing.T) {
	_, err := try(podFolder(t), hostPath("/dev/null", v1.HostPathSocket))
	want := `MountVolume.SetUp failed for volume "v" : hostPath type check failed: /dev/null is not a socket file, it is a character device`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// C068: what is made, and with which mode.
func TestHostPathCreatesC068(t *testing.T) {
	tests := map[string]struct {
		typ  v1.HostPathType
		path string
		made map[string]fs.FileMode
		err  error
	}{
		"DirectoryOrCreate makes all levels": {
			typ: v1.HostPathDirectoryOrCreate, path: "x/y/z",
			made: map[string]fs.FileMode{"x": fs.ModeDir | 0o755, "x/y": fs.ModeDir | 0o755, "x/y/z": fs.ModeDir | 0o755},
		},
		"no type makes directories too": {
			typ: v1.HostPathUnset, path: "x/y",
			made: map[string]fs.FileMode{"x": fs.ModeDir | 0o755, "x/y": fs.ModeDir | 0o755},
		},
		"FileOrCreate makes a file": {
			typ: v1.HostPathFileOrCreate, path: "f", made: map[string]fs.FileMode{"f": 0o644},
		},
		"FileOrCreate makes no folders":          {typ: v1.HostPathFileOrCreate, path: "x/f", err: fs.ErrNotExist},
		"Directory makes nothing":                {typ: v1.HostPathDirectory, path: "x", err: fs.ErrNotExist},
		"a dangling link is not written through": {typ: v1.HostPathFileOrCreate, path: "dangling", err: fs.ErrExist},
		"nor is one to a directory":              {typ: v1.HostPathDirectoryOrCreate, path: "dangling", err: fs.ErrExist},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			defer unix.Umask(unix.Umask(0o077))
			dir := t.TempDir()
			if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
				t.Fatal(err)
			}
			for range 2 { // law 4
				_, err := try(podFolder(t), hostPath(filepath.Join(dir, tt.path), tt.typ))
				if !errors.Is(err, tt.err) {
					t.Errorf("Ensure: %v, want %v", err, tt.err)
				}
			}
			for rel, want := range tt.made {
				if got := mode(t, filepath.Join(dir, rel)); got != want {
					t.Errorf("mode of %s is %v, want %v", rel, got, want)
				}
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1+min(len(tt.made), 1) {
				t.Errorf("in the folder: %v, %v", entries, err)
			}
		})
	}
}

// C068 and C069: the check is made anew each time, and recovers by itself.
func TestHostPathIsCheckedEachTimeC069(t *testing.T) {
	dir := kinds(t)
	sock := filepath.Join(dir, "sock")
	aside := filepath.Join(dir, "aside")
	v := hostPath(sock, v1.HostPathSocket)
	ensure(t, podFolder(t), v)
	if err := os.Rename(sock, aside); err != nil {
		t.Fatal(err)
	}
	if _, err := try(podFolder(t), v); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the socket: %v", err)
	}
	gone(t, sock)
	if err := os.Rename(aside, sock); err != nil {
		t.Fatal(err)
	}
	ensure(t, podFolder(t), v)
}
