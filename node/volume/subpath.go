package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	volumesDir  = "volumes"
	subPathsDir = "volume-subpaths"
)

// Part is a part of a volume that a container mounts.
type Part struct {
	Container string
	// Index is that of the mount in the container's list.
	Index int
	// Path is what is mounted; "" is all of the volume.
	Path string
	// Options are flags of the mount: noexec, nodev, nosuid, ro.
	Options []string
}

// SubPath returns where on the host a part of a volume can be mounted from: a bind
// mount in the pod's folder of just what the path led to, so that nothing that the
// pod renames afterwards can change it. The volume must be there. Directories that
// are missing are made with the mode of the volume, except in one whose content is
// given. The error wraps ErrOutside where the path leads out of the volume, and does
// not repeat the path.
func (h *Host) SubPath(r Request, p Part) (string, error) {
	target, err := h.subPath(r, p)
	if err != nil {
		return "", fmt.Errorf("path in volume %q: %w", r.Volume.Name, err)
	}
	return target, nil
}

func (h *Host) subPath(r Request, p Part) (string, error) {
	source, err := h.openIn(r, p.Path, makesMissing(r.Volume))
	if err != nil {
		return "", err
	}
	defer source.Close()
	rel := path.Join(subPathsDir, r.Volume.Name, p.Container)
	root, err := os.OpenRoot(h.podDir(r.UID))
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.MkdirAll(rel, 0o750); err != nil {
		return "", err
	}
	rel = path.Join(rel, strconv.Itoa(p.Index))
	target := path.Join(h.podDir(r.UID), rel)
	// What is there is of an earlier attempt, whose process has a mount of its own. To
	// read the kernel's list of mounts takes the longer the more pods there are.
	if _, err := root.Lstat(rel); !errors.Is(err, fs.ErrNotExist) {
		if err := unmountBelow(target); err != nil {
			return "", err
		}
	}
	if err := makeTarget(root, rel, source); err != nil {
		return "", err
	}
	if err := unix.Mount(procPath(int(source.Fd())), target, "", unix.MS_BIND, ""); err != nil {
		return "", fmt.Errorf("mount on %s: %w", target, err)
	}
	return target, restrict(target, p.Options)
}

var mountFlags = map[string]uintptr{"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC}

// restrict adds flags to those that a bind mount has from where it comes.
func restrict(target string, options []string) error {
	if len(options) == 0 {
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(target, &st); err != nil {
		return fmt.Errorf("look at the mount on %s: %w", target, err)
	}
	// The kernel has these flags in both places, and keeps the others.
	flags := uintptr(st.Flags) & (unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	for _, o := range options {
		flag, ok := mountFlags[o]
		if !ok {
			return fmt.Errorf("mount option %q: %w", o, fs.ErrInvalid)
		}
		flags |= flag
	}
	if err := unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""); err != nil {
		return fmt.Errorf("restrict the mount on %s: %w", target, err)
	}
	return nil
}

// makeTarget makes what the source can be mounted on.
func makeTarget(root *os.Root, rel string, source *os.File) error {
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if err := root.Remove(rel); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info.IsDir() {
		return root.Mkdir(rel, 0o750)
	}
	f, err := root.OpenFile(rel, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

// openIn opens what a path in a volume leads to, only as a place.
func (h *Host) openIn(r Request, path string, makeMissing bool) (*os.File, error) {
	if path == "" { // a path of the host may be a file
		return os.OpenFile(h.Path(r), unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	dir, err := openDir(h.Path(r))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if !makeMissing {
		return openBeneath(dir, path, nil)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, err
	}
	perm := st.Mode & 0o7777
	return openBeneath(dir, path, &perm)
}

// ErrNotRegular: what was to be read is not a file.
var ErrNotRegular = errors.New("is not a regular file")

// ErrTooLong: a file is longer than what is read.
var ErrTooLong = errors.New("is too long")

// ReadFile returns the content of a file in a volume, which must be there, of at
// most limit bytes. What the path leads to is opened as by SubPath, and nothing
// is made. The error does not repeat the path, and wraps ErrOutside, ErrNotRegular, ErrTooLong or
// fs.ErrNotExist where that is why.
func (h *Host) ReadFile(r Request, path string, limit int64) ([]byte, error) {
	data, err := h.readFile(r, path, limit)
	if err != nil {
		return nil, fmt.Errorf("file in volume %q: %w", r.Volume.Name, err)
	}
	return data, nil
}

func (h *Host) readFile(r Request, path string, limit int64) ([]byte, error) {
	place, err := h.openIn(r, path, false)
	if err != nil {
		return nil, err
	}
	defer place.Close()
	info, err := place.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	f, err := os.Open(procPath(int(place.Fd())))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = ErrTooLong
	}
	return data, err
}
