package rootdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/rootdir"
)

func TestRemovePod(t *testing.T) {
	outside := t.TempDir()
	path := t.TempDir()
	d := open(t, path)
	kept := filepath.Join(outside, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pods/u/pod.json", "pods/u/volumes/deep/er/f", "pods/u2/pod.json"} {
		if err := d.WriteFile(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(path, "pods/u/volumes/link")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // law 4
		if err := d.RemovePod("u"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(d.PodDir("u")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	for _, p := range []string{kept, filepath.Join(path, "pods/u2/pod.json")} {
		if _, err := os.Lstat(p); err != nil {
			t.Errorf("removed with it: %v", err)
		}
	}
}

func TestRemovePodOfALinkRemovesTheLink(t *testing.T) {
	path, outside := t.TempDir(), t.TempDir()
	d := open(t, path)
	if err := d.WriteFile("pods/other/pod.json", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{outside, "other"} {
		if err := os.Symlink(target, d.PodDir("u")); err != nil {
			t.Fatal(err)
		}
		if err := d.RemovePod("u"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(d.PodDir("u")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("link to %s is left: %v", target, err)
		}
	}
	for _, p := range []string{filepath.Join(outside, "f"), filepath.Join(path, "pods/other/pod.json")} {
		if _, err := os.Lstat(p); err != nil {
			t.Errorf("followed a link: %v", err)
		}
	}
}

func TestRemovePodRefusesAUIDThatIsNoName(t *testing.T) {
	d := open(t, t.TempDir())
	if err := d.WriteFile("pods/u/pod.json", nil); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []types.UID{"", ".", "..", "../pods", "u/..", "/"} {
		if err := d.RemovePod(uid); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("RemovePod(%q): %v, want fs.ErrInvalid", uid, err)
		}
	}
	if _, err := d.ReadFile("pods/u/pod.json"); err != nil {
		t.Error(err)
	}
}

// Removals that went through a live mount have taken the data behind it along.
func TestRemovePodDoesNotCrossAMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("mounting needs root, as the agent does")
	}
	// The kernel names mounts by the path without the link.
	link := filepath.Join(t.TempDir(), "root with a space")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	d := open(t, link)
	data := t.TempDir()
	for _, name := range []string{"pods/u/pod.json", "pods/u/volumes/v/f", "pods/u2/pod.json"} {
		if err := d.WriteFile(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A bind mount of the same file system: the device number tells nothing.
	target := filepath.Join(d.PodDir("u"), "volumes/v")
	if err := unix.Mount(data, target, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(target, unix.MNT_DETACH) })

	err := d.RemovePod("u")
	if !errors.Is(err, rootdir.ErrMounted) || !strings.Contains(err.Error(), "pods/u/volumes/v") {
		t.Errorf("RemovePod: %v, want ErrMounted naming the mount point", err)
	}
	for _, p := range []string{filepath.Join(data, "precious"), filepath.Join(d.PodDir("u"), "pod.json")} {
		if _, err := os.Lstat(p); err != nil {
			t.Errorf("removed in spite of the mount: %v", err)
		}
	}
	if err := d.RemovePod("u2"); err != nil {
		t.Errorf("another pod: %v", err)
	}
	if err := unix.Unmount(target, 0); err != nil {
		t.Fatal(err)
	}
	if err := d.RemovePod("u"); err != nil {
		t.Errorf("after the unmount: %v", err)
	}
}
