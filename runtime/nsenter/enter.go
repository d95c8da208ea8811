package nsenter

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/moby/sys/user"
	"golang.org/x/sys/unix"
)

// startError is why a command cannot be started, with the exit code that says so.
type startError struct {
	code int
	err  error
}

func (e *startError) Error() string { return "podkeeper: exec: " + e.err.Error() }

// The exit codes of a shell for what it cannot run.
const (
	notExecutable = 126
	notFound      = 127
)

func cannotStart(err error) error {
	code := notExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = notFound
	}
	return &startError{code, err}
}

// enter starts the command, on a thread that goes into the container for it and ends.
func enter(c Command) (*started, error) {
	into, err := open(c.PID, c.Container)
	if err != nil {
		return nil, err
	}
	defer into.close()
	// Where it may not be lowered it stays as it is.
	_ = os.WriteFile("/proc/self/oom_score_adj", into.oomScoreAdj, 0)
	into.limit()
	s, err := into.run(c)
	if err != nil && !alive(into.process) {
		return nil, ErrGone
	}
	return s, err
}

func (c *container) run(command Command) (s *started, err error) {
	dir, err := c.find(cmp.Or(command.Dir, "/"), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, cannotStart(fmt.Errorf("working directory: %w", err))
	}
	defer unix.Close(dir)
	who, err := c.whoIs(command.User, command.Groups)
	if err != nil {
		return nil, cannotStart(err)
	}
	onThreadOfItsOwn(func() {
		if err = c.join(dir); err == nil {
			s, err = start(command, c, who)
		}
	})
	return s, err
}

func alive(process *os.File) bool {
	return unix.PidfdSendSignal(int(process.Fd()), 0, nil, 0) == nil
}

// onThreadOfItsOwn calls f on a thread that ends after it. The main thread never is
// that one: what the kernel tells of this process it tells of that.
func onThreadOfItsOwn(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		goruntime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer goruntime.UnlockOSThread()
			onThreadOfItsOwn(f)
			return
		}
		f()
	}()
	<-done
}

// start starts the command from inside the container.
func start(c Command, into *container, who account) (*started, error) {
	path, err := lookPath(c.Args, c.Env)
	if err != nil {
		return nil, cannotStart(err)
	}
	// Of what stands twice in its environment the last counts.
	command := &exec.Cmd{Path: path, Args: c.Args, Env: withHome(c.Env, who.home), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: &who.Credential}
	if into.cgroup != nil {
		command.SysProcAttr.UseCgroupFD, command.SysProcAttr.CgroupFD = true, int(into.cgroup.Fd())
	}
	s := &started{}
	if c.TTY {
		terminal, theirs, err := into.openTerminal(int(who.Uid))
		if err != nil {
			return nil, err
		}
		defer theirs.Close()
		command.Stdin, command.Stdout, command.Stderr = theirs, theirs, theirs
		command.SysProcAttr.Setctty = true
		s.terminal = terminal
	}
	if err := into.restrict(); err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, cannotStart(err)
	}
	s.process = command.Process
	return s, nil
}

func lookPath(args, env []string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("no command")
	}
	os.Clearenv()
	for _, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			os.Setenv("PATH", path)
		}
	}
	path, err := exec.LookPath(args[0])
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	return path, err
}

func withHome(env []string, home string) []string {
	for _, entry := range env {
		if strings.HasPrefix(entry, "HOME=") && entry != "HOME=" {
			return env
		}
	}
	return append(env, "HOME="+home)
}

// account is who runs a command.
type account struct {
	syscall.Credential
	home string
}

// whoIs reads the container's files: names are its own.
func (c *container) whoIs(name string, groups []string) (account, error) {
	passwd, err := c.text("/etc/passwd")
	if err != nil {
		return account{}, err
	}
	group, err := c.text("/etc/group")
	if err != nil {
		return account{}, err
	}
	found, err := user.GetExecUser(name, &user.ExecUser{Home: "/"}, bytes.NewReader(passwd), bytes.NewReader(group))
	if err != nil {
		return account{}, fmt.Errorf("user %q: %w", name, err)
	}
	who := account{syscall.Credential{Uid: uint32(found.Uid), Gid: uint32(found.Gid)}, found.Home}
	more, err := user.GetAdditionalGroups(groups, bytes.NewReader(group))
	if err != nil {
		return account{}, fmt.Errorf("groups %q: %w", groups, err)
	}
	// Its own is among them, so that what is denied to that is denied to it.
	for _, gid := range append(append([]int{found.Gid}, found.Sgids...), more...) {
		who.Groups = append(who.Groups, uint32(gid))
	}
	return who, nil
}

// openTerminal makes a terminal in the container: one of the host's would have no name
// there. ours is what its keyboard and screen would be.
func (c *container) openTerminal(owner int) (ours, theirs *os.File, err error) {
	const path = "/dev/pts/ptmx"
	fd, err := c.find(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK)
	if err != nil {
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	ours = os.NewFile(uintptr(fd), path)
	var is unix.Statfs_t
	if err = unix.Fstatfs(fd, &is); err == nil && is.Type != unix.DEVPTS_SUPER_MAGIC {
		err = errors.New(path + " is something else")
	}
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno == 0 {
			theirs = os.NewFile(peer, "terminal")
			err = theirs.Chown(owner, -1)
		} else {
			err = errno
		}
	}
	if err != nil {
		ours.Close()
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	return ours, theirs, nil
}

// procDir is where the host tells of a process.
func procDir(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid)) }
