package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server"
	wire "github.com/podkeeper/podkeeper/server/stream"
)

// person is somebody before a terminal, in which the program runs.
type person struct {
	t        *testing.T
	dir      string // has the socket s
	terminal *os.File
	keyboard *os.File

	mu   sync.Mutex
	seen bytes.Buffer
	more chan struct{} // closed when more is seen
}

// newPerson returns one whose agent is served by kubelet and has one pod, of a file.
func newPerson(t *testing.T, kubelet http.Handler) *person {
	t.Helper()
	dir, err := os.MkdirTemp("", "podkeeper-test-") // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &person{t: t, dir: dir, more: make(chan struct{})}
	p.openTerminal()
	p.serve(kubelet)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "podkeeper-real")); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *person) openTerminal() {
	p.t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	raw, err := keyboard.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	var fd uintptr
	var errno syscall.Errno
	err = raw.Control(func(master uintptr) {
		if err = unix.IoctlSetPointerInt(int(master), unix.TIOCSPTLCK, 0); err == nil {
			fd, _, errno = unix.Syscall(unix.SYS_IOCTL, master, unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		}
	})
	if err != nil || errno != 0 {
		p.t.Fatal(err, errno)
	}
	p.keyboard, p.terminal = keyboard, os.NewFile(fd, "terminal")
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for buffer := make([]byte, 1024); ; {
			n, err := keyboard.Read(buffer)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.seen.Write(buffer[:n])
			close(p.more)
			p.more = make(chan struct{})
			p.mu.Unlock()
		}
	}()
	p.t.Cleanup(func() {
		p.terminal.Close()
		keyboard.Close()
		<-watched
	})
}

func (p *person) serve(kubelet http.Handler) {
	p.t.Helper()
	folder := filepath.Join(p.dir, "m")
	file := pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: folder}, Name: filepath.Join(folder, "web.yaml")}
	key := pod.Key{Namespace: "default", Name: "web-n1"}
	state := server.State{Ready: true, Online: true, NodeName: "n1", Revision: 1, Pods: []server.Pod{{
		Origin: file,
		Pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u"},
			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}}},
		},
	}}, Sources: []pod.Source{{ID: file.Source, Spoken: true, Present: true, Origins: []pod.OriginStatus{{Origin: file, Pods: []pod.Key{key}}}}}}
	listener, err := server.Listen(filepath.Join(p.dir, "s"), 0)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, listener, server.Handler(server.Answers{
			State: func(ctx context.Context, after uint64) (server.State, error) {
				if after >= state.Revision {
					<-ctx.Done()
				}
				return state, nil
			},
			Kubelet: kubelet,
		}), slog.New(slog.DiscardHandler))
	}()
	p.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// runs starts the program in the terminal.
func (p *person) runs(env []string, args ...string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(p.dir, "podkeeper-real"), append([]string{"--socket", filepath.Join(p.dir, "s")}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.terminal, p.terminal, p.terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return cmd
}

func (p *person) types(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keyboard, keys); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits for a text, and forgets all up to its end.
func (p *person) sees(text string) {
	p.t.Helper()
	deadline := time.After(time.Minute)
	for {
		p.mu.Lock()
		seen, more := p.seen.String(), p.more
		if i := strings.Index(seen, text); i >= 0 {
			p.seen.Next(i + len(text))
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		select {
		case <-more:
		case <-deadline:
			p.t.Fatalf("no %q in %q", text, seen)
		}
	}
}

func (p *person) settings() unix.Termios {
	p.t.Helper()
	var is *unix.Termios
	raw, err := p.keyboard.SyscallConn() // both ends have the same
	if err == nil {
		err = raw.Control(func(fd uintptr) { is, _ = unix.IoctlGetTermios(int(fd), unix.TCGETS) })
	}
	if err != nil || is == nil {
		p.t.Fatal("the terminal says nothing of itself: ", err)
	}
	return *is
}

// Whatever ends exec and attach, the terminal is as it was. Keys go where they should:
// to the command while it has a terminal, which ctrl-c is of, to podkeeper otherwise.
func TestTerminalIsPutRight(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		end  func(*person, *exec.Cmd)
		code int
	}{
		"SIGTERM":           {[]string{"exec", "-it", "web", "--", "sh"}, signalled(syscall.SIGTERM), 130},
		"SIGINT":            {[]string{"exec", "-it", "web", "--", "sh"}, signalled(syscall.SIGINT), 130},
		"SIGHUP":            {[]string{"exec", "-it", "web", "--", "sh"}, signalled(syscall.SIGHUP), 130},
		"SIGQUIT":           {[]string{"exec", "-it", "web", "--", "sh"}, signalled(syscall.SIGQUIT), 130},
		"attached, SIGTERM": {[]string{"attach", "-it", "web"}, signalled(syscall.SIGTERM), 130},
		"the command's end": {[]string{"exec", "-it", "web", "--", "sh"}, func(p *person, _ *exec.Cmd) { p.types("q") }, 7},
		"ctrl-c, not a key": {[]string{"exec", "-i", "web", "--", "sh"}, func(p *person, _ *exec.Cmd) { p.types("\x03") }, 130},
		"ctrl-c, a key":     {[]string{"exec", "-it", "web", "--", "sh"}, func(p *person, _ *exec.Cmd) { p.types("\x03"); p.sees("got 3"); p.types("q") }, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, http.HandlerFunc(answerKeys))
			before := p.settings()
			cmd := p.runs(nil, test.args...)
			p.sees("ready")
			if raw, want := p.settings().Lflag&unix.ICANON == 0, test.args[1] == "-it"; raw != want {
				t.Errorf("the terminal is raw: %t, want %t", raw, want)
			}
			test.end(p, cmd)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if diff := cmp.Diff(before, p.settings()); diff != "" {
				t.Errorf("the terminal (-before +after):\n%s", diff)
			}
		})
	}
}

func signalled(s syscall.Signal) func(*person, *exec.Cmd) {
	return func(p *person, cmd *exec.Cmd) {
		if err := cmd.Process.Signal(s); err != nil {
			p.t.Error(err)
		}
	}
}

// answerKeys is a command that tells which keys it gets, and ends with the q.
func answerKeys(w http.ResponseWriter, r *http.Request) {
	keys := func(ctx context.Context, s runtime.Streams) (int, error) {
		defer s.Stdin.Close()
		defer context.AfterFunc(ctx, func() { s.Stdin.Close() })()
		_, _ = io.WriteString(s.Stdout, "ready\r\n")
		for key := make([]byte, 1); ; {
			if _, err := s.Stdin.Read(key); err != nil {
				return 0, ctx.Err()
			}
			if key[0] == 'q' {
				return 7, nil
			}
			_, _ = io.WriteString(s.Stdout, "got "+string('0'+key[0])+"\r\n")
		}
	}
	if strings.HasPrefix(r.URL.Path, "/attach") {
		_ = wire.Attach(w, r, wire.Config{}, func(ctx context.Context, s runtime.Streams) error {
			_, err := keys(ctx, s)
			return err
		})
		return
	}
	_ = wire.Exec(w, r, wire.Config{}, func(ctx context.Context, _ []string, s runtime.Streams) (int, error) { return keys(ctx, s) })
}

// An editor has the terminal, and ctrl-c there is its own, however often.
func TestEditOnATerminal(t *testing.T) {
	const old = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: app, image: 'busybox:stable'}]\n"
	for name, test := range map[string]struct {
		editor string
		says   []string
		code   int
		want   string // what the file has then
	}{
		"it takes ctrl-c":         {"trap 'echo caught' INT\n" + edits + "exit 0\n", []string{"pod/web-n1 configured"}, 0, "busybox:1"},
		"it ends with an error":   {"trap 'echo caught' INT\n" + edits + "exit 3\n", []string{"exit status 3", "The copy is kept in"}, 1, "busybox:stable"},
		"it ends with the ctrl-c": {"echo caught\n" + edits, []string{"The copy is kept in"}, 1, "busybox:stable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, http.NotFoundHandler())
			file, editor := filepath.Join(p.dir, "m", "web.yaml"), filepath.Join(p.dir, "editor")
			for path, text := range map[string]string{file: old, editor: "#!/bin/sh\n" + test.editor} {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			before := p.settings()
			cmd := p.runs([]string{"KUBE_EDITOR=" + editor, "TMPDIR=" + p.dir}, "edit", "web", "--wait=false")
			p.sees("on a terminal")
			if test.code == 0 || strings.HasPrefix(test.editor, "trap") {
				for range 3 {
					p.types("\x03")
					p.sees("caught")
				}
				p.types("go\n")
			} else {
				p.types("\x03")
			}
			for _, text := range test.says {
				p.sees(text)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), test.want) {
				t.Errorf("the file says %q, %v; want %s", data, err, test.want)
			}
			if diff := cmp.Diff(before, p.settings()); diff != "" {
				t.Errorf("the terminal (-before +after):\n%s", diff)
			}
		})
	}
}

// edits waits for a line, then edits.
const edits = `[ -t 0 ] && [ -t 1 ] && echo on a terminal
until [ "$line" = go ]; do read line; done
sed -i s/:stable/:1/ "$1"
`
