package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mountTmpfs mounts a tmpfs of that many bytes (0: the kernel's default, half of
// the memory) on a directory, unless one is mounted there already.
func mountTmpfs(dir string, own owner, size int64) error {
	mounted, err := isMounted(dir, unix.TMPFS_MAGIC, "tmpfs")
	if err != nil || mounted {
		return err
	}
	options := own.options()
	if size > 0 {
		options += fmt.Sprintf(",size=%d", size)
	}
	// As the kubelet does: what is meant for memory does not go to the disk.
	// Kernels before 6.4 do not know the option.
	err = unix.Mount("tmpfs", dir, "tmpfs", 0, options+",noswap")
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	}
	if err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", dir, err)
	}
	return nil
}

// hugePages is where the kernel says which sizes of huge pages it has.
const hugePages = "/sys/kernel/mm/hugepages"

// mountHugePages mounts memory in huge pages of that many bytes, as mountTmpfs.
func mountHugePages(dir string, own owner, page int64) error {
	mounted, err := isMounted(dir, unix.HUGETLBFS_MAGIC, "hugetlbfs")
	if err != nil || mounted {
		return err
	}
	if _, err := os.Stat(fmt.Sprintf("%s/hugepages-%dkB", hugePages, page>>10)); err != nil {
		return fmt.Errorf("this machine has no huge pages of %d KiB: %w", page>>10, err)
	}
	if err := unix.Mount("nodev", dir, "hugetlbfs", 0, own.options()+fmt.Sprintf(",pagesize=%dK", page>>10)); err != nil {
		return fmt.Errorf("mount hugetlbfs on %s: %w", dir, err)
	}
	// Its option takes no setgid bit.
	return os.Chmod(dir, fileMode(own.mode))
}

// isMounted reports whether a filesystem of that kind is mounted on a directory.
// Another one there is an error.
func isMounted(dir string, magic int64, kind string) (bool, error) {
	mounted, err := mountinfo.Mounted(dir)
	if err != nil {
		return false, fmt.Errorf("look for a mount on %s: %w", dir, err)
	}
	if !mounted {
		return false, nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false, fmt.Errorf("look at the mount on %s: %w", dir, err)
	}
	if st.Type != magic {
		return false, fmt.Errorf("something other than a %s is mounted on %s", kind, dir)
	}
	return true, nil
}

// Remove unmounts everything in the volumes of a pod, the deepest first, whoever
// mounted it, and removes their folders. Where there are none that is success.
// Where a mount stays nothing is removed, and the error names it. What lies
// outside the pod's folder stays: claims, and paths of the host.
func (h *Host) Remove(uid types.UID) error {
	if err := h.remove(uid); err != nil {
		return fmt.Errorf("remove volumes: %w", err)
	}
	return nil
}

func (h *Host) remove(uid types.UID) error {
	dir, err := os.OpenFile(h.podDir(uid), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	// What was bound of the volumes, before the volumes.
	folders := []string{subPathsDir, volumesDir}
	for _, name := range folders {
		if err := unmountBelow(filepath.Join(dir.Name(), name)); err != nil {
			return err
		}
	}
	if err := h.releaseEphemeral(uid); err != nil {
		return err
	}
	for _, name := range folders {
		if err := removeTree(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// releaseEphemeral takes the limits away from the claims that are the pod's own.
func (h *Host) releaseEphemeral(uid types.UID) error {
	root, err := os.OpenRoot(h.podDir(uid))
	if err != nil {
		return err
	}
	defer root.Close()
	parent := folder(v1.Volume{VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}})
	entries, err := fs.ReadDir(root.FS(), parent)
	if err != nil {
		return nil // there are none
	}
	for _, e := range entries {
		dir, err := root.Open(path.Join(parent, e.Name()))
		if err != nil {
			return err
		}
		err = release(dir)
		dir.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// unmountBelow unmounts until nothing is mounted on or in a path, or nothing more
// can be. A mount can hide others, which show up afterwards.
func unmountBelow(target string) error {
	// The kernel's list knows no symbolic links. That the path itself is one is
	// nobody's intention, and what it leads to is not ours.
	parent, err := filepath.EvalSymlinks(filepath.Dir(target))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	target = filepath.Join(parent, filepath.Base(target))
	for previous := math.MaxInt; ; {
		mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(target))
		if err != nil {
			return fmt.Errorf("read mounts: %w", err)
		}
		if len(mounts) == 0 {
			return nil
		}
		errs := unmountAll(mounts)
		if errs != nil && len(mounts) >= previous {
			return errs
		}
		previous = len(mounts)
	}
}

// unmountAll tries each mount once. The kernel lists a mount after the one that
// it lies in or on.
func unmountAll(mounts []*mountinfo.Info) error {
	for _, m := range mounts {
		// What lies in a mount that has peers, such as the directory that was bound,
		// would vanish there too.
		shared := strings.Contains(m.Optional, "shared:")
		if !shared || !slices.ContainsFunc(mounts, func(o *mountinfo.Info) bool { return o.Parent == m.ID }) {
			continue
		}
		if err := unix.Mount("", m.Mountpoint, "", unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("make mount on %s private: %w", m.Mountpoint, err)
		}
	}
	var errs []error
	for _, m := range slices.Backward(mounts) {
		if err := unix.Unmount(m.Mountpoint, unix.UMOUNT_NOFOLLOW); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", m.Mountpoint, err))
		}
	}
	return errors.Join(errs...)
}
