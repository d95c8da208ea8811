package volume

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// place says in which mount an open file lies.
type place struct {
	dev   uint64
	mount uint64 // 0 before Linux 5.8, which does not tell
}

// same reports whether both are in one mount; where the kernel does not tell,
// whether they are on one device. (In an overlay files are on others than their
// directories, so the device says too much where the mount is known.)
func (p place) same(q place) bool {
	if p.mount != 0 && q.mount != 0 {
		return p.mount == q.mount
	}
	return p.dev == q.dev
}

// look returns what is known of an open file.
func look(fd int) (unix.Statx_t, place, error) {
	var st unix.Statx_t
	const mask = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_UID | unix.STATX_GID | unix.STATX_INO | unix.STATX_MNT_ID
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, mask, &st); err != nil {
		return st, place{}, err
	}
	p := place{dev: unix.Mkdev(st.Dev_major, st.Dev_minor)}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		p.mount = st.Mnt_id
	}
	return st, p, nil
}

// names returns what is in a directory that is open in any way.
func names(fd int) ([]string, error) {
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "")
	defer f.Close()
	return f.Readdirnames(-1)
}

// errMountPoint: something is mounted where a tree was to be removed.
var errMountPoint = errors.New("is a mount point")

// removeTree removes what a name in a directory is, and all that is in it. A
// missing one is success. Links are removed, never followed; at a mount point it
// fails and leaves what is behind it.
func removeTree(dir *os.File, name string) error {
	_, where, err := look(int(dir.Fd()))
	if err != nil {
		return fmt.Errorf("remove %s in %s: %w", name, dir.Name(), err)
	}
	if err := removeAt(int(dir.Fd()), name, where); err != nil {
		return fmt.Errorf("remove %s in %s: %w", name, dir.Name(), err)
	}
	return nil
}

func removeAt(dir int, name string, where place) error {
	err := unix.Unlinkat(dir, name, 0)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR):
		return fmt.Errorf("%s: %w", name, err)
	}
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer unix.Close(fd)
	_, at, err := look(fd)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !at.same(where) {
		return fmt.Errorf("%s %w", name, errMountPoint)
	}
	inside, err := names(fd)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, n := range inside {
		if err := removeAt(fd, n, where); err != nil {
			return err
		}
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
