package docker_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
	"github.com/podkeeper/podkeeper/runtime/nsenter"
)

func TestMain(m *testing.M) {
	switch {
	case nsenter.Asked():
		nsenter.Main()
	case os.Getenv(agentOf) != "":
		agentToKill(os.Getenv(agentOf), os.Args[1], os.Args[2:])
	default:
		os.Exit(m.Run())
	}
}

// agentOf names the root directory of an agent that this program is then.
const agentOf = "TEST_AGENT_OF"

// agentToKill runs a command on a terminal.
func agentToKill(root, id string, command []string) {
	r, err := docker.New(docker.Config{RootDir: root, ExecHandler: docker.NsenterExec}, slog.New(slog.DiscardHandler))
	if err == nil {
		_, err = r.ExecStream(context.Background(), id, command, runtime.Streams{Stdout: io.Discard, TTY: true})
	}
	fmt.Fprintln(os.Stderr, "the agent ended:", err)
}

// withBoth runs a test with each of what can run commands.
func withBoth(t *testing.T, f func(*testing.T, pods)) {
	for _, handler := range []docker.ExecHandler{docker.NativeExec, docker.NsenterExec} {
		t.Run(string(handler), func(t *testing.T) {
			t.Parallel()
			f(t, newPods(t, docker.Config{ExecHandler: handler}))
		})
	}
}

// said is what a command came to for who looked on.
type said struct {
	Code        int
	Out, Errors string
}

// whatItIs prints what a process is and may do; its session and terminal are its own.
const whatItIs = `id -u; id -g; id -G; pwd; umask; ulimit -n; cat /proc/self/oom_score_adj
grep -E '^(Cap|NoNewPrivs|Groups)' /proc/self/status; sed s/.*:// /proc/self/cgroup | sort -u; ls /proc/self/fd | tr '\n' ' '
for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done; env | grep -v ^SHLVL | sort`

// accounts is an archive of the files of names.
func accounts(t *testing.T) io.Reader {
	t.Helper()
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	for name, text := range map[string]string{
		"passwd": "root:x:0:0:root:/root:/bin/sh\njane:x:501:502:Jane:/home/jane:/bin/sh\n",
		"group":  "root:x:0:\njane:x:502:\nstaff:x:600:\nwheel:x:601:root,jane\n",
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &data
}

// What a command is, and what it comes to, does not depend on who runs it.
func TestExecHandlers(t *testing.T) {
	t.Parallel()
	native := newPods(t, docker.Config{})
	entering := native
	var err error
	entering.Runtime, err = docker.New(docker.Config{RootDir: native.RootDir(), ExecHandler: docker.NsenterExec}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer entering.Close()
	sandbox := native.sandbox(t, nil)
	start := func(name string, edit func(*runtime.ContainerSpec)) string {
		spec := native.spec(sandbox, name, busybox, "sleep", "1000")
		spec.Env = []string{"A=b c", "PATH=/bin:/usr/bin"}
		spec.Security.Seccomp = runtime.SeccompDefault
		edit(&spec)
		id, err := native.EnsureContainer(t.Context(), spec)
		if err == nil {
			err = native.raw.CopyToContainer(t.Context(), id, "/etc", accounts(t), container.CopyToContainerOptions{})
		}
		if err == nil {
			err = native.Start(t.Context(), id)
		}
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	root := start("root", func(*runtime.ContainerSpec) {})
	ids := map[string]string{
		"root": root,
		"somebody": start("somebody", func(s *runtime.ContainerSpec) {
			s.WorkingDir, s.Security.User, s.Security.Groups = "/tmp", "1000:1001", []int64{2000, 3000}
			s.Security.NoNewPrivileges = true
		}),
		"a name":  start("named", func(s *runtime.ContainerSpec) { s.Security.User, s.Env = "jane", nil }),
		"a home":  start("home", func(s *runtime.ContainerSpec) { s.Security.User, s.Env = "jane:staff", []string{"HOME=/here"} }),
		"no home": start("nohome", func(s *runtime.ContainerSpec) { s.Security.User, s.Env = "jane", []string{"HOME=", "A=1"} }),
		"capabilities": start("caps", func(s *runtime.ContainerSpec) {
			s.Security.AddCapabilities, s.Security.DropCapabilities = []string{"NET_ADMIN"}, []string{"CHOWN"}
		}),
		"the host's":    start("hostpid", func(s *runtime.ContainerSpec) { s.HostPID = true }),
		"the sandbox's": start("shared", func(s *runtime.ContainerSpec) { s.SharePID, s.OOMScoreAdj = true, 900 }),
	}
	run := func(p pods, id string, command []string, input string) said {
		t.Helper()
		var out, errs bytes.Buffer
		s := runtime.Streams{Stdout: &out, Stderr: &errs, Stdin: io.NopCloser(strings.NewReader(input))}
		code, err := p.ExecStream(t.Context(), id, command, s)
		if err != nil {
			t.Errorf("%q: %v", command, err)
		}
		return said{code, out.String(), errs.String()}
	}
	for name, id := range ids {
		want, got := run(native, id, []string{"sh", "-c", whatItIs}, ""), run(entering, id, []string{"sh", "-c", whatItIs}, "")
		if diff := cmp.Diff(want, got); diff != "" || want.Code != 0 {
			t.Errorf("a process of %s (-native +nsenter):\n%s", name, diff)
		}
		environment := []string{"sort", "-z", "/proc/self/environ"} // a shell would tidy up first
		if diff := cmp.Diff(run(native, id, environment, ""), run(entering, id, environment, "")); diff != "" {
			t.Errorf("the environment of %s (-native +nsenter):\n%s", name, diff)
		}
	}
	for name, test := range map[string]struct {
		command []string
		input   string
		want    said
	}{
		"stdout and stderr apart": {[]string{"sh", "-c", "echo a; echo b >&2"}, "", said{0, "a\n", "b\n"}},
		"input to its end":        {[]string{"sh", "-c", "cat; echo over"}, "hello\n", said{0, "hello\nover\n", ""}},
		"an exit code":            {[]string{"sh", "-c", "exit 42"}, "", said{42, "", ""}},
		"a signal":                {[]string{"sh", "-c", "kill -TERM $$"}, "", said{143, "", ""}},
		"arguments as they are":   {[]string{"printf", "%s|", "a b", "", "$x"}, "", said{0, "a b||$x|", ""}},
	} {
		for _, p := range []pods{native, entering} {
			if diff := cmp.Diff(test.want, run(p, root, test.command, test.input)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
	// What cannot be started says why, each in its own words. The codes of the engine's
	// exec are those of its version.
	for name, test := range map[string]struct {
		command []string
		want    int
	}{
		"not found":       {[]string{"nothing-of-the-kind"}, 127},
		"no such path":    {[]string{"/nothing/of/the/kind"}, 127},
		"not executable":  {[]string{"/etc/passwd"}, 126},
		"a folder":        {[]string{"/etc"}, 126},
		"no program":      {[]string{"/tmp/odd"}, 126},
		"no such program": {[]string{"/tmp/lost"}, 127},
	} {
		for handler, p := range map[string]pods{"native": native, "nsenter": entering} {
			run(p, root, []string{"sh", "-c", `printf odd >/tmp/odd; printf '#!/nothing\n' >/tmp/lost; chmod 755 /tmp/odd /tmp/lost`}, "")
			got := run(p, root, test.command, "")
			if handler == "nsenter" && got.Code != test.want || got.Code == 0 || got.Out+got.Errors == "" {
				t.Errorf("%s, %s: got %+v, want code %d and why", name, handler, got, test.want)
			}
		}
	}
}

// A terminal is the container's own, has the size that it is told, and ends with what
// runs in it.
func TestExecHandlerTerminal(t *testing.T) { withBoth(t, execHandlerTerminal) }

func execHandlerTerminal(t *testing.T, p pods) {
	id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sleep", "1000"))
	input, keyboard := io.Pipe()
	screen, output := io.Pipe()
	sizes := make(chan runtime.TerminalSize, 1)
	sizes <- runtime.TerminalSize{Width: 100, Height: 40}
	type end struct {
		code int
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		code, err := p.ExecStream(t.Context(), id, []string{"sh", "-c", `trap 'stty size; echo "got it"' WINCH; trap 'exit 7' INT
echo $TERM $(tty); until [ "$(stty size)" = "40 100" ]; do sleep 0.05; done; echo at first; while read -r line; do echo "said $line"; done; echo "end of input"
while :; do sleep 0.05; done`},
			runtime.Streams{Stdin: input, Stdout: output, TTY: true, Resize: sizes})
		output.Close()
		ended <- end{code, err}
	}()
	lines := bufio.NewReader(screen)
	await := func(want string) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("waiting for %q: %v", want, err)
			}
			if strings.TrimSpace(line) == want {
				return
			}
		}
	}
	write := func(text string) {
		t.Helper()
		if _, err := io.WriteString(keyboard, text); err != nil {
			t.Fatal(err)
		}
	}
	await("xterm /dev/pts/0")
	await("at first")
	write("hello\n")
	await("said hello")
	sizes <- runtime.TerminalSize{Width: 81, Height: 25}
	write("\n")
	await("25 81")
	await("got it")
	write("\x04")
	await("end of input")
	write("\x03")
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	if got := <-ended; got != (end{7, nil}) {
		t.Errorf("ctrl-c ended it with %+v, want code 7", got)
	}
	keyboard.Close()
}

// A command of an agent that is killed ends with it, with all that it started.
func TestEnteredCommandEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	p := newPods(t, docker.Config{ExecHandler: docker.NsenterExec})
	id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sleep", "1000"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := p.Exec(ctx, id, []string{"sh", "-c", "sleep 2000 & sleep 3000; true"}, 10)
		ended <- err
	}()
	pollUntil(t, func() bool { return len(processes(t, id)) == 4 })
	// The end of its agent is all that the helper sees: the order closes.
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it came to %v", err)
	}
	got := slices.DeleteFunc(processes(t, id), func(line string) bool { return line == "[zombie]" }) // its first process reaps nobody
	if !slices.Equal(got, []string{"sleep 1000"}) {
		t.Errorf("there run %q", got)
	}
}

// What a hostile container has made of its files leads no command out of it.
func TestEnteredCommandStaysInside(t *testing.T) {
	t.Parallel()
	p := newPods(t, docker.Config{ExecHandler: docker.NsenterExec})
	sandbox := p.sandbox(t, nil)
	start := func(name string, edit func(*runtime.ContainerSpec)) string {
		spec := p.spec(sandbox, name, busybox, "sleep", "1000")
		edit(&spec)
		return p.start(t, spec)
	}
	contained := start("contained", func(*runtime.ContainerSpec) {})
	seeing := start("seeing", func(s *runtime.ContainerSpec) { s.HostPID = true })
	elsewhere := start("elsewhere", func(s *runtime.ContainerSpec) { s.HostPID, s.WorkingDir = true, "/proc/self/root" })
	outside := t.TempDir() // there is no such folder in the container
	run := func(id string, command ...string) runtime.ExecResult {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		got, err := p.Exec(ctx, id, command, 1000)
		if err != nil {
			t.Fatalf("%q: %v", command, err)
		}
		return got
	}
	program := func(id, interpreter string) string {
		t.Helper()
		run(id, "sh", "-c", `printf "#!$0\n" >/tmp/program; chmod 755 /tmp/program`, interpreter)
		return string(run(id, "/tmp/program").Output)
	}
	const isFolder, nothing = "permission denied", "no such file"
	if got := run(elsewhere, "ls", "-d", "."+outside); got.ExitCode == 0 {
		t.Errorf("its working directory leads it to the host: %s", got.Output)
	}
	for fd := range 24 {
		if got := program(contained, fmt.Sprintf("/proc/self/fd/%d/../../../../../..%s", fd, outside)); strings.Contains(got, isFolder) {
			t.Errorf("descriptor %d leads it to the host: %s", fd, got)
		}
	}
	if got := program(seeing, fmt.Sprintf("/proc/%d/root/nothing", os.Getpid())); strings.Contains(got, nothing) {
		t.Errorf("it may go where the host's processes are: %s", got)
	}
	for name, odd := range map[string]string{"fifo": "rm /etc/passwd; mkfifo /etc/passwd", "endless": "ln -sf /dev/zero /etc/group"} {
		id := start(name, func(*runtime.ContainerSpec) {})
		run(id, "sh", "-c", odd)
		if got := run(id, "true"); got.ExitCode != 126 {
			t.Errorf("after %s: %+v", odd, got)
		}
	}
}

// So does one that never stops writing to its terminal, and does not mind losing it.
func TestEnteredCommandEndsWithKilledAgent(t *testing.T) {
	t.Parallel()
	p := newPods(t, docker.Config{ExecHandler: docker.NsenterExec})
	id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sleep", "1000"))
	agent := exec.Command(os.Args[0], id, "sh", "-c", "trap '' HUP; sleep 2000 & while :; do echo on and on; done")
	agent.Env, agent.Stderr = append(os.Environ(), agentOf+"="+p.RootDir()), os.Stderr
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	pollUntil(t, func() bool { return slices.Contains(processes(t, id), "sleep 2000") })
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // it was killed
	pollUntil(t, func() bool {
		return !slices.ContainsFunc(processes(t, id), func(line string) bool { return strings.Contains(line, "2000") })
	})
}

func TestCheckExecHandler(t *testing.T) {
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:2375")
	for name, test := range map[string]struct {
		handler docker.ExecHandler
		host    string
		ok      bool
	}{
		"the default":                   {"", "", true},
		"native over TCP":               {docker.NativeExec, "", true},
		"nsenter over TCP":              {docker.NsenterExec, "", false},
		"nsenter behind a socket":       {docker.NsenterExec, "unix:///run/docker.sock", true},
		"nsenter over TCP, by its flag": {docker.NsenterExec, "tcp://localhost:2375", false},
		"another":                       {"docker", "unix:///run/docker.sock", false},
	} {
		if err := docker.CheckExecHandler(test.handler, test.host); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
