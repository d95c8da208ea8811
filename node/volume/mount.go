package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
)

// mountTmpfs mounts a tmpfs of that size (nil or zero: the kernel's default,
// half of the memory) on a directory, unless one is mounted there already.
func mountTmpfs(dir string, size *resource.Quantity) error {
	mounted, err := mountinfo.Mounted(dir)
	if err != nil {
		return fmt.Errorf("look for a mount on %s: %w", dir, err)
	}
	if mounted {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			return fmt.Errorf("look at the mount on %s: %w", dir, err)
		}
		if st.Type != unix.TMPFS_MAGIC {
			return fmt.Errorf("something other than a tmpfs is mounted on %s", dir)
		}
		return nil
	}
	options := "mode=0777"
	if size != nil && size.Value() > 0 {
		options += fmt.Sprintf(",size=%d", size.Value())
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

// Remove unmounts everything in the pod's volumes folder, the deepest first,
// and removes the folder. A folder that is missing is success. Where a mount
// stays nothing is removed, and the error names it.
func Remove(podDir string) error {
	info, err := os.Lstat(podDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s: %w", podDir, unix.ENOTDIR)
	}
	if err == nil {
		err = unmountBelow(podDir)
	}
	if err == nil {
		err = removeVolumes(podDir)
	}
	if err != nil {
		return fmt.Errorf("remove volumes: %w", err)
	}
	return nil
}

func removeVolumes(podDir string) error {
	root, err := os.OpenRoot(podDir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(volumesDir)
}

// unmountBelow unmounts until nothing is mounted in the volumes folder, or
// nothing more can be. A mount can hide others, which show up afterwards.
func unmountBelow(podDir string) error {
	// The kernel's list knows no symbolic links.
	resolved, err := filepath.EvalSymlinks(podDir)
	if err != nil {
		return err
	}
	volumes := filepath.Join(resolved, volumesDir)
	for previous := math.MaxInt; ; {
		mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(volumes))
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
	var errs []error
	for _, m := range slices.Backward(mounts) {
		if err := unix.Unmount(m.Mountpoint, unix.UMOUNT_NOFOLLOW); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", m.Mountpoint, err))
		}
	}
	return errors.Join(errs...)
}
