package nsenter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// container is what is known of one from outside: from inside there is no looking back.
type container struct {
	process    *os.File // a handle
	namespaces []*os.File
	root       *os.File
	// tasks are the files of cgroup v1 that take in a thread, cgroup is the folder of
	// version 2, nil where there is none.
	tasks  []string
	cgroup *os.File

	oomScoreAdj  []byte
	limits       map[int]unix.Rlimit
	capabilities uint64
	noNewPrivs   bool
}

// entered are the namespaces to enter, that of mounts last: after it the others could
// not be found.
var entered = []struct {
	name string
	flag int
}{{"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}, {"net", unix.CLONE_NEWNET}, {"pid", unix.CLONE_NEWPID}, {"cgroup", unix.CLONE_NEWCGROUP}, {"mnt", unix.CLONE_NEWNS}}

// OwnUsers reports whether a process has a namespace of users of its own, in which case
// its container cannot be entered.
func OwnUsers(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/user")
	theirs, failed := os.Readlink(filepath.Join(procDir(pid), "ns/user"))
	return err == nil && failed == nil && own != theirs
}

// open looks at a container. Everything is held before it is asked whose it is.
func open(pid int, name string) (*container, error) {
	c, err := look(pid)
	if err == nil {
		var groups []byte
		if groups, err = os.ReadFile(filepath.Join(procDir(pid), "cgroup")); err == nil {
			if !bytes.Contains(groups, []byte(name)) {
				err = ErrGone
			} else {
				err = c.findCgroups(string(groups))
			}
		}
	}
	if err == nil && OwnUsers(pid) {
		err = errors.New("a namespace of users cannot be entered")
	}
	// While it lives its number is its own, and all that was seen is of one process.
	if err == nil && !alive(c.process) {
		err = ErrGone
	}
	if err == nil {
		return c, nil
	}
	c.close()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		err = ErrGone
	}
	return nil, err
}

func look(pid int) (*container, error) {
	c := &container{limits: map[int]unix.Rlimit{}}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return c, err
	}
	c.process = os.NewFile(uintptr(handle), "process")
	dir := procDir(pid)
	for _, n := range entered {
		file, err := os.Open(filepath.Join(dir, "ns", n.name))
		if err != nil {
			return c, err
		}
		c.namespaces = append(c.namespaces, file)
	}
	if c.root, err = os.Open(filepath.Join(dir, "root")); err != nil {
		return c, err
	}
	if c.oomScoreAdj, err = os.ReadFile(filepath.Join(dir, "oom_score_adj")); err != nil {
		return c, err
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err == nil {
		c.capabilities, c.noNewPrivs, err = privileges(string(status))
	}
	for _, which := range limited {
		var limit unix.Rlimit
		// Who may not raise limits may not see those of others.
		if unix.Prlimit(pid, which, nil, &limit) == nil {
			c.limits[which] = limit
		}
	}
	return c, err
}

func (c *container) close() {
	for _, file := range append(c.namespaces, c.process, c.root, c.cgroup) {
		if file != nil {
			file.Close()
		}
	}
}

// privileges reads /proc/<pid>/status.
func privileges(status string) (capabilities uint64, noNewPrivs bool, err error) {
	err = errors.New("the kernel does not tell of its capabilities")
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		switch key {
		case "CapBnd":
			capabilities, err = strconv.ParseUint(value, 16, 64)
		case "NoNewPrivs":
			noNewPrivs = value != "0"
		}
	}
	return capabilities, noNewPrivs, err
}

// findCgroups reads /proc/<pid>/cgroup.
func (c *container) findCgroups(groups string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return fmt.Errorf("mounts of cgroups: %w", err)
	}
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		dir, ok := cgroupDir(mounts, fields[1], fields[2])
		switch {
		case !ok:
		case fields[1] != "":
			c.tasks = append(c.tasks, filepath.Join(dir, "tasks"))
		default:
			// As a mount of its own it has nothing above it: a program's path may go by
			// what its process still holds.
			fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				return fmt.Errorf("open cgroup %s: %w", dir, err)
			}
			c.cgroup = os.NewFile(uintptr(fd), dir)
		}
	}
	if len(c.tasks) == 0 && c.cgroup == nil {
		return errors.New("no cgroups are mounted")
	}
	return nil
}

// cgroupDir returns where a cgroup is of the hierarchy that has those controllers, ""
// being that of version 2.
func cgroupDir(mounts []*mountinfo.Info, controllers, path string) (string, bool) {
	for _, m := range mounts {
		if (m.FSType == "cgroup2") != (controllers == "") {
			continue
		}
		options := strings.Split(m.VFSOptions, ",")
		if controllers != "" && slices.ContainsFunc(strings.Split(controllers, ","), func(name string) bool { return !slices.Contains(options, name) }) {
			continue
		}
		if below, err := filepath.Rel(m.Root, path); err == nil && filepath.IsLocal(below) {
			return filepath.Join(m.Mountpoint, below), true
		}
	}
	return "", false
}

// limited are the limits that a command has of its container. Those of memory and CPU
// time are left out, which this process would run into itself.
var limited = []int{
	unix.RLIMIT_NOFILE, unix.RLIMIT_NPROC, unix.RLIMIT_CORE, unix.RLIMIT_MEMLOCK, unix.RLIMIT_STACK, unix.RLIMIT_FSIZE,
	unix.RLIMIT_SIGPENDING, unix.RLIMIT_MSGQUEUE, unix.RLIMIT_NICE, unix.RLIMIT_RTPRIO, unix.RLIMIT_LOCKS,
}

// limit takes the container's limits for this process; a higher one than it may have
// stays as it is.
func (c *container) limit() {
	for which, limit := range c.limits {
		_ = unix.Prlimit(0, which, &limit, nil)
	}
}

// find opens what a path is in the container. The links of /proc, which lead anywhere,
// are not followed.
func (c *container) find(path string, flags int) (fd int, err error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for range 100 { // it gives up where something is renamed meanwhile
		fd, err = unix.Openat2(int(c.root.Fd()), path, &how)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// mostText is how much of a file with names is read.
const mostText = 16 << 20

// text reads a file of the container, from outside of it, nothing where there is none.
// What may never end, or has its reader wait, is refused before it is opened.
func (c *container) text(path string) ([]byte, error) {
	handle, err := c.find(path, unix.O_PATH)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(handle)
	var is unix.Stat_t
	if err := unix.Fstat(handle, &is); err != nil || is.Mode&unix.S_IFMT != unix.S_IFREG || is.Size > mostText {
		return nil, errors.Join(err, fmt.Errorf("%s is no file of at most %d bytes", path, mostText))
	}
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", handle))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, mostText))
}

// join takes the calling thread into the container, to a folder there.
func (c *container) join(dir int) error {
	thread := []byte(strconv.Itoa(unix.Gettid()))
	for _, path := range c.tasks {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = file.Write(thread)
			file.Close()
		}
		if err != nil {
			return fmt.Errorf("join its cgroup: %w", err)
		}
	}
	// A thread alone may have its own idea of what / is.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("part with the other threads: %w", err)
	}
	for i, n := range entered {
		if err := unix.Setns(int(c.namespaces[i].Fd()), n.flag); err != nil {
			return fmt.Errorf("enter its namespace %s: %w", n.name, err)
		}
	}
	// The agent's keys are not its own. A kernel without keys has none to hide.
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("part with the agent's keys: %w", err)
	}
	if err := unix.Fchdir(int(c.root.Fd())); err != nil {
		return fmt.Errorf("enter its root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("enter its root: %w", err)
	}
	if err := unix.Fchdir(dir); err != nil {
		return fmt.Errorf("enter its working directory: %w", err)
	}
	unix.Umask(0o022)
	return nil
}

// restrict takes from the calling thread what the container's processes do not have.
// What it starts has its capabilities, or none, by who it is.
func (c *container) restrict() error {
	last, err := lastCapability()
	if err != nil {
		return err
	}
	for capability := range last + 1 {
		if c.capabilities&(1<<capability) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	err = unix.Capget(&header, &sets[0])
	if err == nil {
		// The path of its program is followed with these, and links of /proc lead out of
		// the container who may follow them. It needs two to become who it is.
		may := c.capabilities | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID
		for i := range sets {
			have := sets[i].Permitted & uint32(may>>(32*i))
			sets[i] = unix.CapUserData{Effective: have, Permitted: have}
		}
		err = unix.Capset(&header, &sets[0])
	}
	if err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if c.noNewPrivs {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("set no_new_privs: %w", err)
		}
	}
	return nil
}

// lastCapability returns the highest that the kernel knows.
func lastCapability() (int, error) {
	for capability := range 64 {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(capability), 0, 0, 0); err != nil {
			return capability - 1, nil
		}
	}
	return 0, errors.New("the kernel knows no end of capabilities")
}
