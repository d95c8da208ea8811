package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// Where the filesystem has project quotas it counts what is in an emptyDir, and
// nobody has to walk through it. Whether the kernel has them is not the test's to
// choose.
func TestWhatAnEmptyDirHolds(t *testing.T) {
	podDir := podFolder(t)
	host := hostOf(podDir)
	quotas := mountQuotas(t, host.RootDir)
	dir := do(t, podDir, request(podDir, emptyDirNamed("first")))
	other := do(t, podDir, request(podDir, emptyDirNamed("second")))
	check := func(what, dir string, least, most, inodes int64) {
		t.Helper()
		bytes, count, ok := host.Counted(dir)
		if ok != quotas || ok && (bytes < least || bytes > most || count != inodes) {
			t.Errorf("%s: %d bytes in %d inodes (%t), want %d to %d in %d (%t)", what, bytes, count, ok, least, most, inodes, quotas)
		}
	}
	check("an empty one", dir, 0, 64<<10, 1)
	if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	unix.Sync()
	check("one with a file", dir, 1<<20, 1<<20+64<<10, 2)
	do(t, podDir, request(podDir, emptyDirNamed("first"))) // as before each create
	check("made again", dir, 1<<20, 1<<20+64<<10, 2)
	check("the other one", other, 0, 64<<10, 1)
	if _, _, ok := host.Counted(filepath.Join(dir, "gone")); ok {
		t.Error("told of what is not there")
	}
	if _, _, ok := host.Counted(host.RootDir); ok {
		t.Error("told of what is not of a project of ours")
	}
}

func emptyDirNamed(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
}
