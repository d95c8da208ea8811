package stats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// deepest is how many levels below the folder are counted.
const deepest = 1000

// blockSize is that of the block counts of stat(2), whatever the filesystem's.
const blockSize = 512

// Walk counts what the files below a folder take, the folder included: their
// blocks, not their lengths, and a file with several names once. It stays within
// the folder's mount and follows no link. What vanishes meanwhile is not counted;
// a folder that is not there is os.ErrNotExist. Below [deepest] levels it does not
// look: each costs an open file, and a pod may make as many as it likes.
func Walk(ctx context.Context, folder string) (Usage, error) {
	w := walk{ctx: ctx, linked: make(map[uint64]bool)}
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = w.open(fd, folder)
	}
	if err != nil {
		return Usage{}, fmt.Errorf("walk through %s: %w", folder, err)
	}
	w.usage.Time = time.Now()
	return w.usage, nil
}

type walk struct {
	ctx   context.Context
	usage Usage
	top   unix.Statx_t
	depth int
	// linked are the inodes of files with several names that were counted.
	linked map[uint64]bool
}

// asked is what is wanted of each file. Whether the kernel tells the mount (since
// 5.8) shows in the answer.
const asked = unix.STATX_BASIC_STATS | unix.STATX_MNT_ID

// open counts an open folder, what is in it, and closes it.
func (w *walk) open(fd int, name string) error {
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	defer func(was int) { w.depth = was }(w.depth)
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, asked, &st); err != nil {
		return err
	}
	if w.top.Mask == 0 {
		w.top = st
	}
	if !w.within(&st) {
		return nil
	}
	w.count(&st)
	if w.depth++; w.depth > deepest {
		return nil
	}
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		names, err := dir.Readdirnames(512)
		if errors.Is(err, io.EOF) || vanished(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := w.entry(fd, name); err != nil && !vanished(err) {
				return err
			}
		}
	}
}

func (w *walk) entry(parent int, name string) error {
	var st unix.Statx_t
	if err := unix.Statx(parent, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, asked, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if w.within(&st) {
			w.count(&st)
		}
		return nil
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return w.open(fd, name)
}

// within reports whether a file is on the mount of the top folder. Two mounts of one
// filesystem have one device.
func (w *walk) within(st *unix.Statx_t) bool {
	if st.Dev_major != w.top.Dev_major || st.Dev_minor != w.top.Dev_minor {
		return false
	}
	return st.Mask&w.top.Mask&unix.STATX_MNT_ID == 0 || st.Mnt_id == w.top.Mnt_id
}

func (w *walk) count(st *unix.Statx_t) {
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if w.linked[st.Ino] {
			return
		}
		w.linked[st.Ino] = true
	}
	w.usage.Inodes++
	w.usage.Bytes += int64(st.Blocks) * blockSize
}

// vanished reports whether a file is gone, or another in its place.
func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ESTALE)
}
