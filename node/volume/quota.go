package volume

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A project quota counts what is in a folder: files in it bear the folder's
// project, and the filesystem has a limit for each project.

// fsxattr is the kernel's struct of that name (include/uapi/linux/fs.h).
type fsxattr struct {
	flags, extent, extents, project, cow uint32
	_                                    [8]byte
}

const (
	getAttributes = 0x801c581f // FS_IOC_FSGETXATTR
	setAttributes = 0x401c5820 // FS_IOC_FSSETXATTR
	inheritID     = 0x200      // FS_XFLAG_PROJINHERIT
)

// dqblk is the kernel's struct if_dqblk (include/uapi/linux/quota.h).
type dqblk struct {
	hard, soft             uint64 // blocks of 1 KiB
	space                  uint64 // bytes in use
	inodesHard, inodesSoft uint64
	inodes                 uint64
	blockTime, inodeTime   uint64
	valid                  uint32
}

const (
	projectQuota = 2
	getQuota     = 0x800007<<8 | projectQuota // Q_GETQUOTA
	setQuota     = 0x800008<<8 | projectQuota // Q_SETQUOTA
	limitsValid  = 1                          // QIF_BLIMITS
)

// firstProject is where our projects begin: low ones are people's, and other
// tools begin at a million.
const firstProject = 3_000_000

// quotaOf returns the quota of a project on the filesystem of an open folder. ok
// is false where that has no project quotas.
func quotaOf(dir *os.File, project uint32) (q dqblk, ok bool, err error) {
	err = quotactl(dir, getQuota, project, &q)
	for _, none := range []error{unix.ENOSYS, unix.ESRCH, unix.EOPNOTSUPP, unix.EINVAL, unix.ENOTBLK} {
		if errors.Is(err, none) {
			return q, false, nil
		}
	}
	if errors.Is(err, unix.ENOENT) { // nothing is known of the project
		return q, true, nil
	}
	if err != nil {
		return q, false, fmt.Errorf("quota of project %d: %w", project, err)
	}
	return q, true, nil
}

// limit makes what is made in an open folder from now on be of a project of its
// own, which may hold that many bytes. Where the filesystem has no project quotas
// it does nothing. Calls for one filesystem must not overlap.
func limit(dir *os.File, bytes int64) error {
	attr, ok, err := project(dir)
	if err != nil || !ok {
		return err
	}
	id := attr.project
	if id < firstProject {
		if id, err = freeProject(dir); err != nil {
			return err
		}
	}
	// First the limit: it shows that the project is taken.
	if err := setLimit(dir, id, bytes); err != nil {
		return err
	}
	return join(dir, attr, id)
}

// join makes an open folder, and what is made in it from now on, be of a project.
func join(dir *os.File, attr fsxattr, id uint32) error {
	if attr.project == id && attr.flags&inheritID != 0 {
		return nil
	}
	attr.project, attr.flags = id, attr.flags|inheritID
	if err := ioctl(dir, setAttributes, unsafe.Pointer(&attr)); err != nil {
		return fmt.Errorf("set project of %s: %w", dir.Name(), err)
	}
	return nil
}

// count makes what is made in an open folder be of a project of its own without a
// limit, so that the filesystem counts it. What is there already would not be
// counted: such a folder, and one on a filesystem without project quotas, stays as
// it is. Calls for one filesystem must not overlap.
func count(dir *os.File) error {
	attr, ok, err := project(dir)
	if err != nil || !ok || attr.project >= firstProject {
		return err
	}
	if _, err := dir.Readdirnames(1); !errors.Is(err, io.EOF) {
		return err
	}
	id, err := freeProject(dir)
	if err != nil {
		return err
	}
	return join(dir, attr, id)
}

// Counted returns what the filesystem says that is in a folder of ours. ok is false
// where it does not count that.
func (h *Host) Counted(folder string) (bytes, inodes int64, ok bool) {
	dir, err := os.OpenFile(folder, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, 0, false
	}
	defer dir.Close()
	attr, ok, err := project(dir)
	if err != nil || !ok || attr.project < firstProject || attr.flags&inheritID == 0 {
		return 0, 0, false
	}
	q, ok, err := quotaOf(dir, attr.project)
	return int64(q.space), int64(q.inodes), ok && err == nil
}

// release takes the limit away from a folder that is to be removed. Its project is
// free when nothing is in it any more.
func release(dir *os.File) error {
	attr, ok, err := project(dir)
	if err != nil || !ok || attr.project < firstProject {
		return err
	}
	return setLimit(dir, attr.project, 0)
}

// project returns the attributes of an open folder; ok is false where there are no
// project quotas.
func project(dir *os.File) (attr fsxattr, ok bool, err error) {
	if _, ok, err = quotaOf(dir, firstProject); err != nil || !ok {
		return attr, false, err
	}
	if err := ioctl(dir, getAttributes, unsafe.Pointer(&attr)); err != nil {
		return attr, false, fmt.Errorf("attributes of %s: %w", dir.Name(), err)
	}
	return attr, true, nil
}

// freeProject returns a project that has no limit and counts nothing.
func freeProject(dir *os.File) (uint32, error) {
	for id := uint32(firstProject); ; id++ {
		q, _, err := quotaOf(dir, id)
		if err != nil || q.hard == 0 && q.space == 0 && q.inodes == 0 {
			return id, err
		}
	}
}

func setLimit(dir *os.File, project uint32, bytes int64) error {
	blocks := uint64(bytes+1023) / 1024
	q := dqblk{hard: blocks, soft: blocks, valid: limitsValid}
	if err := quotactl(dir, setQuota, project, &q); err != nil {
		return fmt.Errorf("set quota of project %d: %w", project, err)
	}
	return nil
}

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// quotactl is quotactl_fd(2), which Linux has since 5.14.
func quotactl(f *os.File, command uintptr, project uint32, q *dqblk) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, f.Fd(), command, uintptr(project), uintptr(unsafe.Pointer(q)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Quotas returns why the sizes of claims do not hold, nil where they do: the
// filesystem of the root dir has project quotas.
func (h *Host) Quotas() error {
	dir, err := os.Open(h.RootDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	_, ok, err := quotaOf(dir, firstProject)
	if err == nil && !ok {
		err = fmt.Errorf("the filesystem of %s has no project quotas", h.RootDir)
	}
	return err
}
