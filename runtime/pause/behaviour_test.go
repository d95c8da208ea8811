package pause_test

import (
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// programs are the command lines under which a binary runs here: the machine's
// own, and the others where an emulator is installed.
func programs(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for arch, emulator := range map[string]string{"amd64": "qemu-x86_64", "arm64": "qemu-aarch64"} {
		binary, err := filepath.Abs("pause-" + arch)
		if err != nil {
			t.Fatal(err)
		}
		if arch == goruntime.GOARCH {
			found[arch] = []string{binary}
			continue
		}
		for _, name := range []string{emulator, emulator + "-static"} {
			if path, err := exec.LookPath(name); err == nil {
				found[arch+" under "+name] = []string{path, binary}
				break
			}
		}
	}
	return found
}

func TestVersion(t *testing.T) {
	for name, command := range programs(t) {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(command[0], append(command[1:], "-v")...).Output()
			if err != nil || !strings.HasPrefix(string(out), "podkeeper pause ") {
				t.Errorf("pause -v printed %q (%v), want its name and version", out, err)
			}
		})
	}
}

func TestEndsAtOnceWhenTold(t *testing.T) {
	for name, command := range programs(t) {
		for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			for place, flags := range map[string]uintptr{"as process 1": syscall.CLONE_NEWPID, "as any process": 0} {
				t.Run(strings.Join([]string{name, place, end.String()}, " "), func(t *testing.T) {
					p := start(t, command, flags, 0)
					p.end(t, end)
				})
			}
		}
	}
}

// As process 1 the kernel would spare it some of these; as any other process
// nobody but the program itself does.
func TestIgnoresOtherSignals(t *testing.T) {
	for name, command := range programs(t) {
		t.Run(name, func(t *testing.T) {
			p := start(t, command, 0, 0)
			for _, s := range []syscall.Signal{
				syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
				syscall.SIGPIPE, syscall.SIGCHLD, syscall.SIGWINCH, syscall.SIGSTOP, syscall.SIGCONT, syscall.Signal(34),
			} {
				if err := p.cmd.Process.Signal(s); err != nil {
					t.Fatalf("send %v: %v", s, err)
				}
			}
			p.await(t, "sleep", p.sleeps)
			p.end(t, syscall.SIGTERM)
		})
	}
}

func TestReapsOrphansAndSleeps(t *testing.T) {
	for name, command := range programs(t) {
		t.Run(name, func(t *testing.T) {
			// Many at once, since their SIGCHLDs merge into one.
			const orphans = 40
			p := start(t, command, syscall.CLONE_NEWPID, orphans)
			p.await(t, "adopt the orphans", func() bool { return len(p.children()) == orphans })
			p.endOrphans()
			p.await(t, "reap the orphans", func() bool { return len(p.children()) == 0 })

			// A program that polls would be switched to and away from meanwhile.
			p.await(t, "sleep", p.sleeps)
			before := p.status("voluntary_ctxt_switches")
			<-time.After(300 * time.Millisecond)
			if after := p.status("voluntary_ctxt_switches"); after != before || !p.sleeps() {
				t.Errorf("in 300 ms without work it was woken: %s context switches, then %s", before, after)
			}
			p.end(t, syscall.SIGTERM)
		})
	}
}

// process is a running pause program.
type process struct {
	pid        int
	cmd        *exec.Cmd
	endOrphans func()
}

// start runs pause and returns when it waits for signals. The orphans are its
// children from the first instant and live until endOrphans: a shell makes
// them, and then becomes pause.
func start(t *testing.T, command []string, cloneflags uintptr, orphans int) *process {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	script := `n=$1; shift; while [ "$n" -gt 0 ]; do (cat <&3 &); n=$((n - 1)); done; exec "$@"`
	cmd := exec.Command("sh", append([]string{"-c", script, "sh", strconv.Itoa(orphans)}, command...)...)
	cmd.ExtraFiles = []*os.File{r}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: cloneflags}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start pause (as root?): %v", err)
	}
	p := &process{pid: cmd.Process.Pid, cmd: cmd, endOrphans: func() { w.Close() }}
	r.Close()
	t.Cleanup(func() {
		w.Close()
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	p.await(t, "sleep", p.sleeps)
	return p
}

// end sends the signal and checks that the program ends with code 0 at once.
func (p *process) end(t *testing.T, s syscall.Signal) {
	t.Helper()
	sent := time.Now()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("send %v: %v", s, err)
	}
	killer := time.AfterFunc(5*time.Second, func() { p.cmd.Process.Kill() })
	err := p.cmd.Wait()
	killer.Stop()
	if took := time.Since(sent); err != nil || took > time.Second {
		t.Errorf("after %v it ended with %v in %v, want code 0 at once", s, p.cmd.ProcessState, took)
	}
	if used := p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(); used > time.Second {
		t.Errorf("it used %v of processor time", used)
	}
}

func (p *process) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for !done() {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-deadline:
			t.Fatalf("pause did not %s within 10 s; its children: %v", what, p.children())
		}
	}
}

func (p *process) proc(file string) string {
	data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), file))
	return string(data)
}

// status is one field of /proc/PID/status.
func (p *process) status(field string) string {
	for line := range strings.Lines(p.proc("status")) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// sleeps tells that it stands in the system call that waits for signals.
func (p *process) sleeps() bool {
	return strings.HasPrefix(p.proc("syscall"), strconv.Itoa(syscall.SYS_RT_SIGTIMEDWAIT)+" ")
}

// children are its child processes, dead ones that were not reaped included.
func (p *process) children() []string {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []string
	for _, path := range stats {
		data, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(data), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(p.pid) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}
