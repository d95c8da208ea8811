package volume

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// What the group of a volume may do with it, as the kubelet has it: use it as its
// owner does, and own what is made in its directories. What is only read is only
// readable.
const (
	groupFile = 0o660
	groupDir  = groupFile | 0o110 | unix.S_ISGID

	groupReadFile = 0o440
	groupReadDir  = groupReadFile | 0o110 | unix.S_ISGID
)

// giveToGroup gives a directory and all that is in it to a group. Links are given
// and not followed; what is mounted in the directory stays as it is. With the
// policy OnRootMismatch nothing is done where the directory itself has what it
// would get: it gets it last, so then everything in it has.
func giveToGroup(dir *os.File, gid int, policy v1.PodFSGroupChangePolicy) error {
	fd := int(dir.Fd())
	st, where, err := look(fd)
	if err != nil {
		return fmt.Errorf("give %s to group %d: %w", dir.Name(), gid, err)
	}
	if policy == v1.FSGroupChangeOnRootMismatch && int(st.Gid) == gid && st.Mode&groupDir == groupDir {
		return nil
	}
	if err := giveTree(fd, gid, where); err != nil {
		return fmt.Errorf("give %s to group %d: %w", dir.Name(), gid, err)
	}
	return nil
}

// giveTree gives what fd is open on, what is in it first.
func giveTree(fd, gid int, where place) error {
	st, at, err := look(fd)
	if err != nil || !at.same(where) {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		inside, err := names(fd)
		if err != nil {
			return err
		}
		for _, name := range inside {
			if err := giveChild(fd, name, gid, where); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return give(fd, gid, uint32(st.Mode))
}

func giveChild(dir int, name string, gid int, where place) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) { // another pod on the same claim removed it
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return giveTree(fd, gid, where)
}

func give(fd, gid int, mode uint32) error {
	if err := unix.Fchownat(fd, "", -1, gid, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	want := mode
	switch mode & unix.S_IFMT {
	case unix.S_IFLNK: // has no mode of its own
		return nil
	case unix.S_IFDIR:
		want |= groupDir
	default:
		want |= groupFile
	}
	// Always: giving a file away took its setuid bit.
	return unix.Chmod(procPath(fd), want&0o7777)
}
