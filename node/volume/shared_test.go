package volume_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// shared reports whether the mount on a directory shares what is mounted in it.
func shared(t *testing.T, dir string) bool {
	t.Helper()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(real))
	if err != nil || len(infos) != 1 {
		t.Fatalf("mounts on %s: %v, %v", dir, infos, err)
	}
	return strings.Contains(infos[0].Optional, "shared:")
}

// privateRoot makes the root dir of a pod a mount that shares nothing, as on a
// machine without systemd, or one that shares all.
func rootDirMount(t *testing.T, podDir string, propagation uintptr) {
	t.Helper()
	root := hostOf(podDir).RootDir
	mount(t, root, root, "", unix.MS_BIND)
	mount(t, "", root, "", propagation)
	t.Cleanup(func() { unix.Unmount(root, unix.MNT_DETACH) })
}

func TestVolumesThatPropagateAreShared(t *testing.T) {
	for name, v := range map[string]v1.Volume{"on the disk": emptyDir("d"), "in memory": memory("1Mi"), "a claim": claimed("c")} {
		t.Run(name, func(t *testing.T) {
			podDir := podFolder(t)
			rootDirMount(t, podDir, unix.MS_PRIVATE)
			r := request(podDir, v)
			r.Claim, r.Shared = claimObject("c"), true
			var dir string
			for range 2 { // law 4
				dir = do(t, podDir, r)
			}
			if !shared(t, dir) {
				t.Error("what is mounted in it is not shared")
			}
			if got := len(mounts(t, dir)); got != 1 {
				t.Errorf("%d mounts", got)
			}
			// As a container with Bidirectional would.
			mount(t, "tmpfs", filepath.Join(dir, "made/inside"), "tmpfs", 0)
			if err := removeVolumes(podDir); err != nil {
				t.Fatal(err)
			}
			if got := mounts(t, podDir); len(got) != 0 {
				t.Errorf("left mounted: %v", got)
			}
		})
	}
}

func TestVolumesOfAHostThatSharesStayAsTheyAre(t *testing.T) {
	podDir := podFolder(t)
	rootDirMount(t, podDir, unix.MS_SHARED)
	r := request(podDir, emptyDir("d"))
	r.Shared = true
	do(t, podDir, r)
	if got := mounts(t, podDir); len(got) != 0 {
		t.Errorf("mounted: %v", got)
	}
}

// What a subPath mount shares with the path of the host that it comes from stays
// there when the pod goes.
func TestRemoveLeavesWhatIsSharedWithTheHost(t *testing.T) {
	podDir, host := podFolder(t), t.TempDir()
	mount(t, "tmpfs", host, "tmpfs", 0)
	t.Cleanup(func() { unix.Unmount(host, unix.MNT_DETACH) })
	mount(t, "", host, "", unix.MS_SHARED)
	mkdir(t, filepath.Join(host, "a"))
	got, err := subPath(podDir, hostPath(host, v1.HostPathDirectory), "a")
	if err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(host, "a/disk")
	mount(t, "tmpfs", disk, "tmpfs", 0) // shows up below the subPath too
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	if n := len(mounts(t, got)); n != 2 {
		t.Fatalf("%d mounts in the subPath, want the second to be shared", n)
	}
	if err := removeVolumes(podDir); err != nil {
		t.Fatal(err)
	}
	if n := len(mounts(t, podDir)); n != 0 {
		t.Errorf("%d mounts are left", n)
	}
	if n := len(mounts(t, disk)); n != 1 {
		t.Error("the disk of the host was unmounted")
	}
}
