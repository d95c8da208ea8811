package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrOutside: a path leads out of its volume, by "..", by a symbolic link to an
// absolute path, or by one that climbs too high.
var ErrOutside = errors.New("leads out of the volume")

// maxLinks is how many symbolic links a path may lead over, as in the kernel.
const maxLinks = 40

// openBeneath opens what a path leads to in a directory, only as a place
// (O_PATH): a device is not touched by it and a pipe does not wait. Symbolic
// links are followed as long as they stay inside.
//
// It is what openat2 does with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS, also on
// kernels that have no openat2, and it can make what is missing: each part is
// opened from the one before without following a link, a link is read and walked
// like the path itself, and ".." is the directory that the walk came from. So
// whatever others rename meanwhile, each part was inside when it was opened.
//
// With perm, missing directories are made, with those bits whatever the umask.
//
// Errors do not repeat the path, which may be made of a secret.
func openBeneath(dir *os.File, path string, perm *uint32) (*os.File, error) {
	if filepath.IsAbs(path) {
		return nil, ErrOutside
	}
	start, err := unix.FcntlInt(dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir.Name(), err)
	}
	w := walk{trail: []int{start}, left: parts(path), perm: perm}
	err = w.run()
	last := len(w.trail) - 1
	for _, fd := range w.trail[:last] {
		unix.Close(fd)
	}
	if err != nil {
		unix.Close(w.trail[last])
		return nil, err
	}
	return os.NewFile(uintptr(w.trail[last]), filepath.Join(dir.Name(), path)), nil
}

// walk is a path on the way. trail are the places that it is in, the deepest
// last, and never without the directory where it began.
type walk struct {
	trail []int
	left  []string
	links int
	perm  *uint32
}

func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(p string) bool { return p == "" || p == "." })
}

func (w *walk) run() error {
	for len(w.left) > 0 {
		name := w.left[0]
		w.left = w.left[1:]
		if name == ".." {
			if len(w.trail) == 1 {
				return ErrOutside
			}
			unix.Close(w.trail[len(w.trail)-1])
			w.trail = w.trail[:len(w.trail)-1]
			continue
		}
		if err := w.enter(name); err != nil {
			return err
		}
	}
	return nil
}

// enter goes to a part, or over the link that it is.
func (w *walk) enter(name string) error {
	fd, err := w.open(name)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		w.trail = append(w.trail, fd)
		return nil
	}
	target, err := readlink(fd)
	unix.Close(fd)
	if err != nil {
		return err
	}
	if w.links++; w.links > maxLinks {
		return unix.ELOOP
	}
	if filepath.IsAbs(target) {
		return ErrOutside
	}
	w.left = append(parts(target), w.left...)
	return nil
}

// open opens a part of the last place on the trail, without following a link.
func (w *walk) open(name string) (int, error) {
	const flags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	dir := w.trail[len(w.trail)-1]
	fd, err := unix.Openat(dir, name, flags, 0)
	if w.perm == nil || !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	err = unix.Mkdirat(dir, name, 0o700)
	if errors.Is(err, unix.EEXIST) { // somebody was faster
		return unix.Openat(dir, name, flags, 0)
	}
	if err != nil {
		return -1, err
	}
	if fd, err = unix.Openat(dir, name, flags|unix.O_DIRECTORY, 0); err != nil {
		return -1, err
	}
	if err := unix.Chmod(procPath(fd), *w.perm); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// procPath names what a descriptor is open on, for calls that take no O_PATH
// descriptor. It cannot lead anywhere else.
func procPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// readlink returns the target of the link that fd is open on.
func readlink(fd int) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// openDir opens a directory as a place. Links on the way are followed: they are
// the machine's or, to a host path, the manifest's.
func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}
