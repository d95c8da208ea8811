package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// owner is what a directory is born with.
type owner struct {
	mode uint32 // permission bits, setgid and sticky
	gid  int
}

// born returns what a file or directory of a volume is born with: mode, and where
// a group is to own the volume, what that adds.
func (r Request) born(mode, forGroup uint32) owner {
	if r.FSGroup == nil {
		return owner{mode: mode}
	}
	return owner{mode: mode | forGroup, gid: int(*r.FSGroup)}
}

func ensureEmptyDir(root *os.Root, r Request) error {
	e := r.Volume.EmptyDir
	mode := uint32(0o777)
	if e.Mode != nil {
		mode = uint32(*e.Mode)
	}
	own := r.born(mode, groupDir)
	size, huge := strings.CutPrefix(string(e.Medium), string(v1.StorageMediumHugePages))
	switch {
	case e.Medium == v1.StorageMediumDefault:
		_, err := makeDir(root, r.Volume, own)
		return err
	case e.Medium == v1.StorageMediumMemory:
		dir, err := makeDir(root, r.Volume, own)
		if err != nil {
			return err
		}
		return mountTmpfs(dir, own, r.memory())
	case huge:
		page, err := pageSize(strings.TrimPrefix(size, "-"), r.PageSize)
		if err != nil {
			return err
		}
		dir, err := makeDir(root, r.Volume, own)
		if err != nil {
			return err
		}
		return mountHugePages(dir, own, page)
	default:
		return fmt.Errorf("storage medium %q is not supported", e.Medium)
	}
}

// memory returns the bytes that an emptyDir in memory may hold, 0 for the
// kernel's default, half of the memory.
func (r Request) memory() int64 {
	size := r.MemoryLimit
	if limit := r.Volume.EmptyDir.SizeLimit; limit != nil && limit.Value() > 0 && (size == 0 || limit.Value() < size) {
		size = limit.Value()
	}
	return size
}

// pageSize returns the bytes of the pages that a medium names, or that the
// containers of the pod ask for where it names none.
func pageSize(named string, asked int64) (int64, error) {
	if named == "" {
		if asked == 0 {
			return 0, errors.New("medium HugePages: the containers of the pod ask for huge pages of no size, or of several")
		}
		return asked, nil
	}
	q, err := resource.ParseQuantity(named)
	if err != nil || q.Value() <= 0 {
		return 0, fmt.Errorf("medium HugePages-%s: want HugePages-<size>", named)
	}
	return q.Value(), nil
}

// makeDir makes the directory of a volume and returns its path. It appears with
// its mode and group, in one step: one that is there is never changed, since its
// containers may have chosen another mode since.
func makeDir(root *os.Root, v v1.Volume, own owner) (string, error) {
	dir := path.Join(folder(v), v.Name)
	abs := filepath.Join(root.Name(), dir)
	info, err := root.Lstat(dir)
	if err == nil && !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", abs)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return abs, err
	}
	if err := root.MkdirAll(folder(v), 0o750); err != nil {
		return "", err
	}
	// No volume is called that: names begin with a letter or digit.
	temp := path.Join(folder(v), "."+v.Name)
	if err := root.RemoveAll(temp); err != nil { // of a crash
		return "", err
	}
	if err := root.Mkdir(temp, 0o700); err != nil {
		return "", err
	}
	if err := own.give(root, temp); err != nil {
		return "", err
	}
	return abs, root.Rename(temp, dir)
}

// give sets group and mode of a file or directory whatever the umask.
func (o owner) give(root *os.Root, name string) error {
	if err := root.Lchown(name, -1, o.gid); err != nil {
		return err
	}
	return root.Chmod(name, fileMode(o.mode))
}

// fileMode spells the kernel's bits as Go does.
func fileMode(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	if bits&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if bits&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// options returns the mount options that give the root of a new filesystem its
// mode and group.
func (o owner) options() string {
	return "mode=0" + strconv.FormatUint(uint64(o.mode), 8) + ",gid=" + strconv.Itoa(o.gid)
}
