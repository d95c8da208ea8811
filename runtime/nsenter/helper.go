package nsenter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/runtime"
)

// Name is what this program is called when it is started to enter.
const Name = "podkeeper-exec"

// Asked reports whether this process was started to enter a container. Then [Main] is
// all that it may do.
func Asked() bool { return len(os.Args) == 1 && os.Args[0] == Name }

// report is what the helper says, one field after the other as they come to be known.
type report struct {
	PID    int    `json:",omitempty"` // of the command, as the host counts
	Ended  bool   `json:",omitempty"` // the command, by itself
	Code   int    `json:",omitempty"`
	Killed bool   `json:",omitempty"`
	Gone   bool   `json:",omitempty"`
	Wrong  string `json:",omitempty"`
}

// The files that the helper has beside the command's own three.
const (
	orderFile  = 3
	reportFile = 4
)

// Main enters as it is asked to and returns when the command has ended.
func Main() {
	// The command gets nothing of what its agent was started with, nor of ours.
	if unix.CloseRange(orderFile, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil {
		return
	}
	// Who is in the container sees this process for a moment, as that which becomes the
	// command, and must not be able to look into it.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	// Caught, it is an error of a write; ignored, it would be so for the command too.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	order, to := json.NewDecoder(os.NewFile(orderFile, "order")), json.NewEncoder(os.NewFile(reportFile, "report"))
	var c Command
	if order.Decode(&c) != nil {
		return
	}
	serve(c, order, stop, func(r report) { _ = to.Encode(r) })
}

func serve(c Command, order *json.Decoder, stop <-chan os.Signal, tell func(report)) {
	started, err := enter(c)
	var refused *startError
	switch {
	case errors.Is(err, ErrGone):
		tell(report{Gone: true})
		return
	case errors.As(err, &refused):
		to := os.Stderr
		if c.TTY {
			to = os.Stdout
		}
		fmt.Fprintln(to, refused)
		tell(report{Ended: true, Code: refused.code})
		return
	case err != nil:
		tell(report{Wrong: err.Error()})
		return
	}
	tell(report{PID: started.process.Pid})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for size := (runtime.TerminalSize{}); order.Decode(&size) == nil; {
			started.resize(size)
		}
	}()
	shown := started.show()
	ended := make(chan int, 1)
	go func() { ended <- started.wait() }()
	select {
	case code := <-ended:
		tell(report{Ended: true, Code: code})
		select { // what a terminal still shows is the command's
		case <-shown:
		case <-over:
		case <-stop:
		}
	case <-over:
		started.kill(c, ended, tell)
	case <-stop:
		started.kill(c, ended, tell)
	}
}

// started is a command that runs.
type started struct {
	process  *os.Process
	terminal *os.File // nil where it has none
}

func (s *started) wait() int {
	state, err := s.process.Wait()
	if err != nil {
		return 255
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// kill ends the command and all that it started.
func (s *started) kill(c Command, ended <-chan int, tell func(report)) {
	select {
	case code := <-ended:
		tell(report{Ended: true, Code: code})
		return
	default:
	}
	alive, err := KillTree(s.process.Pid, c.Container)
	switch {
	case err != nil:
		tell(report{Wrong: fmt.Sprintf("kill the command: %v", err)})
	case alive:
		<-ended
		tell(report{Killed: true})
	default:
		tell(report{Ended: true, Code: <-ended})
	}
}

func (s *started) resize(size runtime.TerminalSize) {
	if s.terminal == nil {
		return
	}
	// Its Fd would have it block.
	if raw, err := s.terminal.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Height, Col: size.Width})
		})
	}
}

const endOfTransmission = 4 // ctrl-d

// show carries between the terminal and who looks at it until its last user has closed
// it. Without one there is nothing to carry, and what is the command's is let go of.
func (s *started) show() <-chan struct{} {
	shown := make(chan struct{})
	if s.terminal == nil {
		for _, file := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
			file.Close()
		}
		close(shown)
		return shown
	}
	go func() {
		defer close(shown)
		_, _ = io.Copy(os.Stdout, s.terminal)
		os.Stdout.Close()
		os.Stderr.Close()
	}()
	go func() { // ends with this process
		defer os.Stdin.Close()
		if _, err := io.Copy(s.terminal, os.Stdin); err == nil {
			_, _ = s.terminal.Write([]byte{endOfTransmission})
		}
	}()
	return shown
}
