package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/node/volume"
)

// podFolder returns a pod dir for tests that mount, reached through a symbolic
// link and with a space in its name, both of which the kernel spells otherwise.
func podFolder(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("mounting needs root, as the agent does")
	}
	resolved := filepath.Join(t.TempDir(), "root dir")
	podDir := filepath.Join(t.TempDir(), "link", "pods", "u")
	if err := os.MkdirAll(filepath.Join(resolved, "pods/u"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(resolved, hostOf(podDir).RootDir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range mounts(t, podDir) {
			unix.Unmount(m, unix.MNT_DETACH)
		}
	})
	return podDir
}

// mounts lists what is mounted at and below a path.
func mounts(t *testing.T, path string) []string {
	t.Helper()
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(resolved))
	if err != nil {
		t.Fatal(err)
	}
	var points []string
	for _, info := range infos {
		points = append(points, info.Mountpoint)
	}
	return points
}

func mount(t *testing.T, source, target, fstype string, flags uintptr) {
	t.Helper()
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, target, fstype, flags, ""); err != nil {
		t.Fatal(err)
	}
}

func memory(size string) v1.Volume {
	v := emptyDir("m")
	v.EmptyDir.Medium = v1.StorageMediumMemory
	if size != "" {
		q := resource.MustParse(size)
		v.EmptyDir.SizeLimit = &q
	}
	return v
}

// C071: medium Memory is one tmpfs of the size that is asked for.
func TestMemoryC071(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	podDir := podFolder(t)
	var dir string
	for range 3 {
		dir = ensure(t, podDir, memory("10Mi"))
	}
	if got := mounts(t, podDir); len(got) != 1 {
		t.Errorf("mounted: %v, want one", got)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if size := int64(st.Blocks) * st.Bsize; st.Type != unix.TMPFS_MAGIC || size != 10<<20 {
		t.Errorf("type %#x of %d bytes, want a tmpfs of 10 MiB", st.Type, size)
	}
	if got := mode(t, dir).Perm(); got != 0o777 {
		t.Errorf("mode is %#o, want 0777", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 20<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing 20 MiB: %v, want ENOSPC", err)
	}
	// The next container finds what the first one wrote.
	ensure(t, podDir, memory("10Mi"))
	mode(t, filepath.Join(dir, "f"))

	for range 2 { // law 4
		if err := removeVolumes(podDir); err != nil {
			t.Fatal(err)
		}
	}
	if got := mounts(t, podDir); len(got) != 0 {
		t.Errorf("left mounted: %v", got)
	}
	gone(t, filepath.Join(podDir, "volumes"))
}

func TestMemoryWithoutALimitHasTheKernelsDefault(t *testing.T) {
	for _, size := range []string{"", "0"} {
		podDir := podFolder(t)
		dir := ensure(t, podDir, memory(size))
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		if st.Type != unix.TMPFS_MAGIC || int64(st.Blocks)*st.Bsize < 16<<20 {
			t.Errorf("sizeLimit %q: type %#x, %d blocks", size, st.Type, st.Blocks)
		}
		if err := removeVolumes(podDir); err != nil {
			t.Fatal(err)
		}
	}
}

// The memory limit of the pod bounds what it can put into memory, as in Kubernetes.
func TestMemoryIsBoundedByThePod(t *testing.T) {
	for name, c := range map[string]struct {
		size  string
		limit int64
		want  int64
	}{
		"by its limit":                {"", 8 << 20, 8 << 20},
		"by its limit, which is less": {"16Mi", 8 << 20, 8 << 20},
		"by the size, which is less":  {"4Mi", 8 << 20, 4 << 20},
	} {
		podDir := podFolder(t)
		r := request(podDir, memory(c.size))
		r.MemoryLimit = c.limit
		var st unix.Statfs_t
		if err := unix.Statfs(do(t, podDir, r), &st); err != nil || int64(st.Blocks)*st.Bsize != c.want {
			t.Errorf("%s: %d bytes, %v, want %d", name, int64(st.Blocks)*st.Bsize, err, c.want)
		}
	}
}

// Huge pages are what the medium names, or else the containers; a machine without
// them says so, and what it has instead is not taken.
func TestHugePages(t *testing.T) {
	_, err := os.Stat("/sys/kernel/mm/hugepages/hugepages-2048kB")
	has := err == nil
	for name, c := range map[string]struct {
		medium v1.StorageMedium
		asked  int64
		err    string // "" where the machine is to have them
	}{
		"named":                      {"HugePages-2Mi", 0, ""},
		"asked for":                  {"HugePages", 2 << 20, ""},
		"named, others asked for":    {"HugePages-2Mi", 1 << 30, ""},
		"none that is asked for":     {"HugePages", 0, "ask for huge pages of no size, or of several"},
		"a size that no machine has": {"HugePages-3Mi", 0, "this machine has no huge pages of 3072 KiB"},
		"no size":                    {"HugePages-big", 0, "want HugePages-<size>"},
	} {
		t.Run(name, func(t *testing.T) {
			podDir := podFolder(t)
			v := emptyDir("h")
			v.EmptyDir.Medium = c.medium
			group := int64(2000)
			r := request(podDir, v)
			r.PageSize, r.FSGroup = c.asked, &group
			err := hostOf(podDir).Ensure(t.Context(), r)
			if c.err == "" && !has {
				c.err = "this machine has no huge pages of 2048 KiB"
			}
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			dir := do(t, podDir, r) // law 4
			var st unix.Statfs_t
			if err := unix.Statfs(dir, &st); err != nil || st.Type != unix.HUGETLBFS_MAGIC || st.Bsize != 2<<20 {
				t.Errorf("type %#x, pages of %d, %v", st.Type, st.Bsize, err)
			}
			if got := owned(t, dir); got != "2000 2777" {
				t.Errorf("its root: %s", got)
			}
			if err := removeVolumes(podDir); err != nil || len(mounts(t, podDir)) != 0 {
				t.Errorf("left mounted: %v, %v", mounts(t, podDir), err)
			}
		})
	}
}

// After a reboot the directory is there and the mount is not.
func TestMemoryIsMountedAgain(t *testing.T) {
	podDir := podFolder(t)
	dir := ensure(t, podDir, memory(""))
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	ensure(t, podDir, memory(""))
	if got := mounts(t, podDir); len(got) != 1 {
		t.Errorf("mounted: %v, want one", got)
	}
}

func TestMemoryRefusesAnotherMount(t *testing.T) {
	podDir := podFolder(t)
	mount(t, t.TempDir(), pathOf(podDir, memory("")), "", unix.MS_BIND)
	if _, err := try(podDir, memory("")); err == nil {
		t.Error("a bind mount was taken for the tmpfs")
	}
}

// What a crashed agent left is found by asking the kernel (law 3), however it
// is stacked, and only what is below the pod's volumes.
func TestRemoveUnmountsWhateverIsThere(t *testing.T) {
	data := t.TempDir()
	tests := map[string]func(t *testing.T, dir string){
		"one in another": func(t *testing.T, dir string) {
			mount(t, "tmpfs", dir, "tmpfs", 0)
			mount(t, "tmpfs", filepath.Join(dir, "a"), "tmpfs", 0)
			mount(t, "tmpfs", filepath.Join(dir, "a/b"), "tmpfs", 0)
		},
		"one on another": func(t *testing.T, dir string) {
			mount(t, "tmpfs", dir, "tmpfs", 0)
			mount(t, "tmpfs", dir, "tmpfs", 0)
		},
		"one that hides another": func(t *testing.T, dir string) {
			mount(t, "tmpfs", filepath.Join(dir, "a/b"), "tmpfs", 0)
			mount(t, "tmpfs", filepath.Join(dir, "a"), "tmpfs", 0)
		},
		"one that was moved into a later one": func(t *testing.T, dir string) {
			mount(t, "tmpfs", dir, "tmpfs", 0)
			mount(t, "", dir, "", unix.MS_PRIVATE) // nothing is moved out of a shared one
			mount(t, "tmpfs", filepath.Join(dir, "a"), "tmpfs", 0)
			mount(t, "tmpfs", filepath.Join(dir, "b"), "tmpfs", 0)
			mount(t, filepath.Join(dir, "a"), filepath.Join(dir, "b/c"), "", unix.MS_MOVE)
		},
		"a bind of a folder with data": func(t *testing.T, dir string) {
			mount(t, data, filepath.Join(dir, "data"), "", unix.MS_BIND)
		},
		"on the volumes folder itself": func(t *testing.T, dir string) {
			mount(t, "tmpfs", filepath.Join(dir, "../.."), "tmpfs", 0)
		},
	}
	for name, setUp := range tests {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(data, "precious"), "")
			podDir := podFolder(t)
			beside := filepath.Join(podDir, "volumes-of-nobody")
			mount(t, "tmpfs", beside, "tmpfs", 0)
			setUp(t, ensure(t, podDir, emptyDir("d")))
			if err := removeVolumes(podDir); err != nil {
				t.Fatal(err)
			}
			gone(t, filepath.Join(podDir, "volumes"))
			if got := mounts(t, podDir); len(got) != 1 || filepath.Base(got[0]) != "volumes-of-nobody" {
				t.Errorf("mounted: %v, want only %s", got, beside)
			}
			mode(t, filepath.Join(data, "precious"))
		})
	}
}

func TestRemoveKeepsEverythingWhileAMountStays(t *testing.T) {
	podDir := podFolder(t)
	scratch := ensure(t, podDir, emptyDir("d"))
	write(t, filepath.Join(scratch, "f"), "x")
	dir := ensure(t, podDir, memory(""))
	nested := filepath.Join(dir, "nested")
	mount(t, "tmpfs", nested, "tmpfs", 0)
	open, err := os.Create(filepath.Join(dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()

	err = removeVolumes(podDir)
	if !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "kubernetes.io~empty-dir/m") {
		t.Errorf("Remove: %v, want EBUSY naming the mount", err)
	}
	if got := mounts(t, podDir); len(got) != 1 {
		t.Errorf("mounted: %v, want only the busy one", got)
	}
	mode(t, filepath.Join(scratch, "f"))
	mode(t, filepath.Join(dir, "open"))

	open.Close()
	if err := removeVolumes(podDir); err != nil {
		t.Fatal(err)
	}
	gone(t, filepath.Join(podDir, "volumes"))
}

// Whatever was mounted since the mounts were looked for, a bind of the same
// filesystem too, is not entered.
func TestRemovalStopsAtAMountPoint(t *testing.T) {
	podDir, data := podFolder(t), t.TempDir()
	write(t, filepath.Join(data, "precious"), "")
	dir := ensure(t, podDir, emptyDir("d"))
	mount(t, data, filepath.Join(dir, "deep/data"), "", unix.MS_BIND)
	err := volume.RemoveTree(podDir, "volumes")
	if err == nil || !strings.Contains(err.Error(), "data is a mount point") {
		t.Errorf("%v, want an error that names the mount point", err)
	}
	mode(t, filepath.Join(data, "precious"))
}
