package stats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/cadvisor/lib/fs/vfs"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// filesystem reads the one that a folder is on; nil where that cannot be told.
func (r *Reader) filesystem(what, path string) *Filesystem {
	if path == "" {
		r.note(what, errors.New("nobody tells where it is"))
		return nil
	}
	f, err := ReadFilesystem(path)
	r.note(what, err)
	if err != nil {
		return nil
	}
	return f
}

// ReadFilesystem returns what the filesystem of a folder has. One that does not
// answer within two seconds is an error.
func ReadFilesystem(path string) (*Filesystem, error) {
	f, err := statfs(path)
	if err != nil {
		return nil, err
	}
	if f.Device, err = device(path); err != nil {
		return nil, fmt.Errorf("filesystem of %s: %w", path, err)
	}
	return f, nil
}

// statfs is ReadFilesystem without the device.
func statfs(path string) (*Filesystem, error) {
	capacity, free, available, inodes, inodesFree, err := vfs.GetVfsStats(path)
	if err != nil {
		return nil, fmt.Errorf("filesystem of %s: %w", path, err)
	}
	f := &Filesystem{Path: path, Capacity: int64(capacity), Available: int64(available), Used: int64(capacity - free)}
	if inodes > 0 {
		f.Inodes, f.InodesFree = new(int64(inodes)), new(int64(inodesFree))
	}
	return f, nil
}

// device identifies the filesystem of a folder: by its device number, or where each
// part of a filesystem has a number of its own (btrfs), by what is mounted.
func device(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", err
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	if unix.Major(st.Dev) != 0 {
		return number, nil
	}
	mounts, err := mountinfo.GetMounts(mountinfo.ParentsFilter(path))
	if err != nil {
		return "", err
	}
	var holds *mountinfo.Info
	for _, m := range mounts { // of two at one place, the later one is seen
		if holds == nil || len(m.Mountpoint) >= len(holds.Mountpoint) {
			holds = m
		}
	}
	if holds != nil && strings.HasPrefix(holds.Source, "/dev/") {
		return holds.Source, nil
	}
	return number, nil
}

// Block returns the name of the block device that the filesystem is on, "/dev/sda1", or
// what else its Device is called.
func (f Filesystem) Block() string {
	link, err := os.Readlink("/sys/dev/block/" + f.Device)
	if err != nil {
		return f.Device
	}
	return "/dev/" + filepath.Base(link)
}
