package volume

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// share makes mounts that are made later in a directory reach other mount
// namespaces and come from them, as engines demand of what they are to propagate:
// where the mount that it lies in is shared, it is so; else the directory becomes
// a mount of its own that is.
func share(dir string) error {
	in, err := mountOf(dir)
	if err != nil {
		return fmt.Errorf("look for the mount of %s: %w", dir, err)
	}
	if strings.Contains(in.Optional, "shared:") {
		return nil
	}
	own, err := mountinfo.Mounted(dir)
	if err != nil {
		return fmt.Errorf("look for a mount on %s: %w", dir, err)
	}
	if !own {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s on itself: %w", dir, err)
		}
	}
	if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts in %s: %w", dir, err)
	}
	return nil
}

// mountOf returns the mount that a directory lies in.
func mountOf(dir string) (*mountinfo.Info, error) {
	dir, err := filepath.EvalSymlinks(dir) // the kernel's list knows no links
	if err != nil {
		return nil, err
	}
	list, err := mountinfo.GetMounts(mountinfo.ParentsFilter(dir))
	if err == nil && len(list) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	// The longest is the nearest; of several on one directory, the last lies on top.
	found := list[0]
	for _, m := range list {
		if len(m.Mountpoint) >= len(found.Mountpoint) {
			found = m
		}
	}
	return found, nil
}
