package nsenter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/runtime"
)

// Command is what is run, where and as whom.
type Command struct {
	// PID is a process of the container, as the host counts, and Container what the
	// name of its cgroup has in it: pids are used again.
	PID       int
	Container string
	// Args are looked for in the container, by the PATH of Env. HOME is added to Env
	// where that has none.
	Args, Env []string
	// Dir is where it runs; "" is /.
	Dir string
	// User is as an image has it: "", "name", "uid", or one of these with ":group".
	// Groups are those besides its own, by name or number.
	User   string
	Groups []string
	TTY    bool
	// OneOutput has what it writes come on Stdout alone, in the order in which it wrote.
	OneOutput bool
}

// Result is what came of a command.
type Result struct {
	// Code is its exit code, 128 and the signal's number where one ended it.
	Code int
	// Ended says that it did so by itself. It counts where there is an error too: what
	// a command leaves behind may hold its output open.
	Ended bool
}

// ErrGone: the container has ended, or its number is another's by now.
var ErrGone = errors.New("the container does not run any more")

// Program is this program, as it is started again. It is safe for concurrent use.
type Program struct {
	path string
	file *os.File
}

// Open returns the program that runs. It must call [Main] where [Asked] says so.
func Open() (*Program, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root can enter the namespaces of a container")
	}
	// A container may get hold of what enters it, and write to it. On a mount of its own
	// that is read-only it cannot.
	fd, err := unix.OpenTree(unix.AT_FDCWD, "/proc/self/exe", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		if err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err == nil {
			return &Program{path: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), file: os.NewFile(uintptr(fd), "this program")}, nil
		}
		unix.Close(fd)
	}
	if errors.Is(err, unix.ENOSYS) {
		return nil, fmt.Errorf("it takes Linux 5.12 to enter containers safely: %w", err)
	}
	return nil, fmt.Errorf("mount this program read-only: %w", err)
}

// Close lets go of the program.
func (p *Program) Close() { p.file.Close() }

// endTime is how long a command that was killed, and what entered for it, may take.
const endTime = 10 * time.Second

// Run runs a command and returns when it has ended and its output too, or with ctx:
// then it and all that it started are killed. Stdin is closed. One that cannot be
// started has a code above 125, and its output says why.
func (p *Program) Run(ctx context.Context, c Command, s runtime.Streams) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{command: c}
	carried, err := r.start(p.path)
	if err != nil {
		closeInput(s)
		return Result{}, err
	}
	var others sync.WaitGroup
	others.Go(func() { carried.feed(s.Stdin) })
	others.Go(func() { r.sizes(ctx, s.Resize) })
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		r.listen()
	}()
	output := make(chan error, 1)
	go func() { output <- carried.drain(s) }()
	var wrong error
	select {
	case wrong = <-output:
		output = nil
	case <-ctx.Done():
	}
	if wrong == nil && ctx.Err() == nil { // it may close its output and go on
		select {
		case <-reported:
		case <-ctx.Done():
		}
	}
	stopped := ctx.Err()
	cancel()
	r.order.Close()
	r.await(reported)
	carried.close()
	if output != nil {
		<-output
	}
	closeInput(s)
	others.Wait()
	if wrong == nil {
		wrong = stopped
	}
	return r.result(wrong)
}

func closeInput(s runtime.Streams) {
	if s.Stdin != nil {
		s.Stdin.Close()
	}
}

// run is a command on its way.
type run struct {
	command Command
	helper  *exec.Cmd
	order   *os.File // the helper kills the command when it is closed
	report  *os.File
	said    report // counts when listen has returned
}

// start starts the helper, which then starts the command.
func (r *run) start(path string) (*carried, error) {
	ends, err := newPipes(5)
	if err != nil {
		return nil, err
	}
	in, out, errs, order, said := ends[0], ends[1], ends[2], ends[3], ends[4]
	r.order, r.report = order.w, said.r
	mine := &carried{in: in.w, out: out.r, err: errs.r}
	stderr := errs.w
	if r.command.OneOutput {
		stderr = out.w
	}
	r.helper = &exec.Cmd{
		Path: path, Args: []string{Name}, Env: []string{}, Dir: "/",
		Stdin: in.r, Stdout: out.w, Stderr: stderr, ExtraFiles: []*os.File{order.r, said.w},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = r.helper.Start()
	for _, theirs := range []*os.File{in.r, out.w, errs.w, order.r, said.w} {
		theirs.Close()
	}
	if err == nil {
		if err = json.NewEncoder(r.order).Encode(r.command); err != nil {
			r.order.Close()
			_ = r.helper.Wait()
		}
	}
	if err != nil {
		mine.close()
		r.order.Close()
		r.report.Close()
		return nil, fmt.Errorf("start what enters: %w", err)
	}
	return mine, nil
}

// listen takes what the helper reports, until it has ended.
func (r *run) listen() {
	for lines := json.NewDecoder(r.report); lines.Decode(&r.said) == nil; {
	}
	r.report.Close()
	_ = r.helper.Wait()
}

// await waits for the end of the helper, which does not wait for anything but the
// kernel.
func (r *run) await(reported <-chan struct{}) {
	slow := time.NewTimer(endTime)
	defer slow.Stop()
	select {
	case <-reported:
		return
	case <-slow.C:
		_ = r.helper.Process.Kill()
	}
	<-reported
}

func (r *run) result(wrong error) (Result, error) {
	said := r.said
	switch {
	case said.Gone:
		return Result{}, ErrGone
	case said.Wrong != "":
		return Result{}, errors.New(said.Wrong)
	case said.Ended:
		return Result{Code: said.Code, Ended: true}, wrong
	case wrong != nil && said.Killed:
		return Result{}, wrong
	}
	// It ended without a word.
	if said.PID > 0 {
		if _, err := KillTree(said.PID, r.command.Container); err != nil {
			return Result{}, errors.Join(wrong, fmt.Errorf("kill the command: %w", err))
		}
	}
	if wrong == nil {
		wrong = errors.New("what entered for the command was killed")
	}
	return Result{}, wrong
}

// sizes tells the helper those of a terminal.
func (r *run) sizes(ctx context.Context, sizes <-chan runtime.TerminalSize) {
	if !r.command.TTY {
		return
	}
	for to := json.NewEncoder(r.order); ; {
		select {
		case size, more := <-sizes:
			if !more {
				return
			}
			if size.Width > 0 && size.Height > 0 && to.Encode(size) != nil {
				return // it has ended
			}
		case <-ctx.Done():
			return
		}
	}
}

// carried are our ends of what a command reads and writes.
type carried struct{ in, out, err *os.File }

func (c *carried) close() {
	c.in.Close()
	c.out.Close()
	c.err.Close()
}

// feed gives the command its input. What cannot be written is what nobody reads any
// more.
func (c *carried) feed(input io.Reader) {
	defer c.in.Close()
	if input != nil {
		_, _ = io.Copy(c.in, input)
	}
}

// drain takes all that the command writes, and writes one thing at a time. Where that
// cannot be done, it is an error.
func (c *carried) drain(s runtime.Streams) error {
	failed := make(chan error, 2)
	var turn sync.Mutex
	take := func(to io.Writer, from *os.File) {
		if to == nil {
			to = io.Discard
		}
		_, err := io.Copy(inTurn{&turn, to}, from)
		from.Close() // which ends what writes more
		failed <- err
	}
	go take(s.Stdout, c.out)
	go take(s.Stderr, c.err)
	err := <-failed
	if err != nil {
		c.out.Close()
		c.err.Close()
		<-failed
		return err
	}
	return <-failed
}

// inTurn writes when nobody else does who has the same turn.
type inTurn struct {
	turn *sync.Mutex
	to   io.Writer
}

func (w inTurn) Write(p []byte) (int, error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	return w.to.Write(p)
}

// pipe is both ends of one.
type pipe struct{ r, w *os.File }

func newPipes(n int) ([]pipe, error) {
	var list []pipe
	for range n {
		r, w, err := os.Pipe()
		if err != nil {
			for _, p := range list {
				p.r.Close()
				p.w.Close()
			}
			return nil, fmt.Errorf("make pipe %s: %w", strconv.Itoa(len(list)), err)
		}
		list = append(list, pipe{r, w})
	}
	return list, nil
}
