package volume_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/volume"
)

func emptyDir(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
}

// hostOf returns the host that has a pod's folder at <root dir>/pods/<uid>.
func hostOf(podDir string) *volume.Host {
	return &volume.Host{RootDir: filepath.Dir(filepath.Dir(podDir))}
}

// request returns that of a volume of the pod with nothing special about it.
func request(podDir string, v v1.Volume) volume.Request {
	return volume.Request{UID: types.UID(filepath.Base(podDir)), Namespace: "default", Volume: v}
}

func pathOf(podDir string, v v1.Volume) string { return hostOf(podDir).Path(request(podDir, v)) }

func try(podDir string, v v1.Volume) (string, error) {
	return pathOf(podDir, v), hostOf(podDir).Ensure(context.Background(), request(podDir, v))
}

func ensure(t *testing.T, podDir string, v v1.Volume) string {
	t.Helper()
	got, err := try(podDir, v)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func removeVolumes(podDir string) error {
	return hostOf(podDir).Remove(types.UID(filepath.Base(podDir)))
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

func TestPath(t *testing.T) {
	memory := emptyDir("m")
	memory.EmptyDir.Medium = v1.StorageMediumMemory
	host := v1.Volume{Name: "h", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/data//x/"}}}
	tests := map[string]struct {
		v    v1.Volume
		want string
	}{
		"an emptyDir lies where the kubelet has it": {emptyDir("scratch"), "/p/pods/u/volumes/kubernetes.io~empty-dir/scratch"},
		"one in memory too":                         {memory, "/p/pods/u/volumes/kubernetes.io~empty-dir/m"},
		"a hostPath is itself":                      {host, "/data/x"},
		"another kind has no place":                 {v1.Volume{Name: "x"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := pathOf("/p/pods/u", tt.v); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// C072: an emptyDir lives as long as its pod, whoever may write to it.
func TestEmptyDirC072(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	pods := filepath.Join(t.TempDir(), "pods")
	podDir := filepath.Join(pods, "u1")
	dir := ensure(t, podDir, emptyDir("d"))
	if got := mode(t, dir); got != fs.ModeDir|0o777 {
		t.Errorf("mode is %v, want 0777 whatever the umask", got)
	}
	if got := mode(t, podDir).Perm(); got != 0o700 {
		t.Errorf("mode of the pod dir is %#o, want 0700", got)
	}
	write(t, filepath.Join(dir, "n"), "1")

	// The container starts again, or the agent does. Software that insists on a
	// private data directory has changed the mode in the meantime.
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ensure(t, podDir, emptyDir("d"))
	if got := mode(t, dir).Perm(); got != 0o700 {
		t.Errorf("mode was changed back to %#o", got)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "n")); err != nil || string(got) != "1" {
		t.Errorf("content: %q, %v", got, err)
	}

	other := ensure(t, filepath.Join(pods, "u2"), emptyDir("d"))
	if entries, err := os.ReadDir(other); err != nil || len(entries) != 0 {
		t.Errorf("the emptyDir of another pod has %v, %v", entries, err)
	}
	for range 2 { // law 4
		if err := removeVolumes(podDir); err != nil {
			t.Fatal(err)
		}
	}
	gone(t, filepath.Join(podDir, "volumes"))
	dir = ensure(t, podDir, emptyDir("d"))
	gone(t, filepath.Join(dir, "n"))
}

func TestEmptyDirAfterACrashWhileItWasMade(t *testing.T) {
	podDir := podFolder(t)
	parent := filepath.Join(podDir, "volumes/kubernetes.io~empty-dir")
	if err := os.MkdirAll(filepath.Join(parent, ".d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := mode(t, ensure(t, podDir, emptyDir("d"))).Perm(); got != 0o777 {
		t.Errorf("mode is %#o", got)
	}
	gone(t, filepath.Join(parent, ".d"))
}

func TestEnsureRefuses(t *testing.T) {
	outside := t.TempDir()
	huge := emptyDir("h")
	huge.EmptyDir.Medium = v1.StorageMediumHugePages
	inTheWay := filepath.Join("volumes/kubernetes.io~empty-dir", "d")
	tests := map[string]struct {
		v     v1.Volume
		is    error
		setUp func(podDir string) error
	}{
		"a kind that it does not know":         {v: v1.Volume{Name: "x"}},
		"a medium that it does not know":       {v: huge},
		"a name that leads out":                {v: emptyDir("../../../x"), is: fs.ErrInvalid},
		"a name that leads to another volume":  {v: emptyDir("a/b"), is: fs.ErrInvalid},
		"a name that is the folder":            {v: emptyDir("."), is: fs.ErrInvalid},
		"an empty name":                        {v: emptyDir(""), is: fs.ErrInvalid},
		"a relative host path":                 {v: hostPath("x", v1.HostPathUnset)},
		"a file in the place of the directory": {v: emptyDir("d"), setUp: func(p string) error { return place(p, inTheWay, "") }},
		"a link in the place of the directory": {v: emptyDir("d"), setUp: func(p string) error { return place(p, inTheWay, outside) }},
		"a link in the place of its folder":    {v: emptyDir("d"), setUp: func(p string) error { return place(p, "volumes", outside) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			podDir := podFolder(t)
			if tt.setUp != nil {
				if err := tt.setUp(podDir); err != nil {
					t.Fatal(err)
				}
			}
			got, err := try(podDir, tt.v)
			refusal, ok := errors.AsType[*volume.Error](err)
			if !ok {
				t.Fatalf("Ensure: %s, %v, want a *volume.Error", got, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("Ensure: %v, want %v", err, tt.is)
			}
			if refusal.Volume != tt.v.Name || refusal.Message == "" {
				t.Errorf("the error says %+v", refusal)
			}
		})
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("made outside the pod dir: %v, %v", entries, err)
	}
}

// place puts a link to target, or an empty file, at a path below the pod dir.
func place(podDir, rel, target string) error {
	path := filepath.Join(podDir, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if target == "" {
		return os.WriteFile(path, nil, 0o600)
	}
	return os.Symlink(target, path)
}

func TestRemoveFollowsNoLink(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "kept"), "")
	podDir := podFolder(t)
	dir := ensure(t, podDir, emptyDir("d"))
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(podDir, "pod.json"), "{}")
	if err := removeVolumes(podDir); err != nil {
		t.Fatal(err)
	}
	gone(t, filepath.Join(podDir, "volumes"))
	if err := os.Symlink(outside, filepath.Join(podDir, "volumes")); err != nil {
		t.Fatal(err)
	}
	if err := removeVolumes(podDir); err != nil {
		t.Fatal(err)
	}
	gone(t, filepath.Join(podDir, "volumes"))
	mode(t, filepath.Join(podDir, "pod.json"))
	mode(t, filepath.Join(outside, "kept"))

	link := filepath.Join(t.TempDir(), "pods/pod")
	if err := os.Mkdir(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(outside, "volumes"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	if err := removeVolumes(link); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("Remove of a pod dir that is a link: %v", err)
	}
	mode(t, filepath.Join(outside, "volumes"))
}

func TestRemoveOfNothing(t *testing.T) {
	if err := removeVolumes(filepath.Join(t.TempDir(), "pods/none")); err != nil {
		t.Error(err)
	}
}
