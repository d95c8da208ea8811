package docker_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

// processes returns the command lines of what runs in a container, as the host
// sees it; a dead process that nobody reaped is "[zombie]".
func processes(t *testing.T, id string) []string {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, dir := range dirs {
		if _, err := strconv.Atoi(dir.Name()); err != nil {
			continue
		}
		read := func(name string) string {
			data, _ := os.ReadFile(filepath.Join("/proc", dir.Name(), name))
			return string(data)
		}
		if !strings.Contains(read("cgroup"), id) {
			continue
		}
		line := strings.TrimSpace(strings.ReplaceAll(read("cmdline"), "\x00", " "))
		if line == "" {
			line = "[zombie]"
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return list
}

// A command whose time is over leaves nothing: neither itself, nor what it
// started in the background or in a session of its own, nor the dead.
func TestExecLeavesNothing(t *testing.T) { withBoth(t, execLeavesNothing) }

func execLeavesNothing(t *testing.T, p pods) {
	// This one reaps what is orphaned to it, as a sandbox does that shares its
	// processes. Each orphan that ends may have it start one more sleep.
	id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sh", "-c", "trap : CHLD; while :; do sleep 0.2 & wait; done"))
	before := func() bool {
		list := slices.Compact(processes(t, id))
		return len(list) == 2 && strings.HasPrefix(list[0], "sh -c trap") && list[1] == "sleep 0.2"
	}
	pollUntil(t, before)
	for name, script := range map[string]string{
		"a child":           "sleep 1001; true",
		"in the background": "sleep 1002 & sleep 1003 & wait",
		"a daemon":          "setsid sleep 1004 & setsid sh -c 'sleep 1005; true' & sleep 1006",
		"deaf":              "trap '' TERM INT HUP; while :; do sleep 1007; done",
		"no output":         "exec >/dev/null 2>&1; sleep 1008; true",
		"much output":       "while :; do echo 0123456789; done",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		got, err := p.Exec(ctx, id, []string{"sh", "-c", script}, 30)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || len(got.Output) > 30 {
			t.Errorf("%s: %v, %d bytes of output", name, err, len(got.Output))
		}
		if list := processes(t, id); slices.ContainsFunc(list, func(line string) bool { return strings.Contains(line, "sleep 10") }) {
			t.Errorf("%s: %q are left", name, list)
		}
		pollUntil(t, before)
	}
}

// What a command left behind and what it said count, though something still has
// its output open.
func TestExecThatEndedByItself(t *testing.T) { withBoth(t, execThatEndedByItself) }

func execThatEndedByItself(t *testing.T, p pods) {
	id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sleep", "1000"))
	for name, test := range map[string]struct {
		script string
		want   runtime.ExecResult
	}{
		"holds its output":          {"echo a; sleep 1000 & exit 5", runtime.ExecResult{ExitCode: 5, Output: []byte("a\n")}},
		"closes its output":         {"echo a; exec >&- 2>&-; sleep 0.3; exit 6", runtime.ExecResult{ExitCode: 6, Output: []byte("a\n")}},
		"both streams, as is cut":   {"echo a; echo b >&2; exit 7", runtime.ExecResult{ExitCode: 7}},
		"killed by somebody's hand": {"echo a; kill -9 $$", runtime.ExecResult{ExitCode: 137, Output: []byte("a\n")}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		got, err := p.Exec(ctx, id, []string{"sh", "-c", test.script}, 100)
		cancel()
		if test.want.Output == nil { // in either order
			if text := string(got.Output); text != "a\nb\n" && text != "b\na\n" {
				t.Errorf("%s: it said %q", name, text)
			}
			got.Output = nil
		}
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// A container that ends takes its commands along.
func TestExecInContainerThatEnds(t *testing.T) { withBoth(t, execInContainerThatEnds) }

func execInContainerThatEnds(t *testing.T, p pods) {
	id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sleep", "1000"))
	type answer struct {
		got runtime.ExecResult
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		got, err := p.Exec(t.Context(), id, []string{"sh", "-c", "echo up; sleep 1000; true"}, 100)
		answers <- answer{got, err}
	}()
	pollUntil(t, func() bool { return len(processes(t, id)) == 3 })
	p.raw.Kill(t, id)
	select {
	case a := <-answers:
		if a.err == nil && a.got.ExitCode != 137 || a.err != nil && errors.Is(a.err, context.DeadlineExceeded) {
			t.Errorf("the command came to %+v, %v", a.got, a.err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the command does not end")
	}
}

// Many at a time all have their answer.
func TestExecsBesideEachOther(t *testing.T) { withBoth(t, execsBesideEachOther) }

func execsBesideEachOther(t *testing.T, p pods) {
	id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sleep", "1000"))
	const many = 40
	ended := make(chan error, many)
	for i := range many {
		go func() {
			got, err := p.Exec(t.Context(), id, []string{"sh", "-c", "echo " + strconv.Itoa(i) + "; exit " + strconv.Itoa(i)}, 100)
			if err == nil && (got.ExitCode != i || string(got.Output) != strconv.Itoa(i)+"\n") {
				err = errors.New("got " + strconv.Itoa(got.ExitCode) + " " + string(got.Output) + ", want " + strconv.Itoa(i))
			}
			ended <- err
		}()
	}
	for range many {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A start whose answer is lost, or that never arrived, is looked after.
func TestExecStartIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		inspect []answer
		want    error
	}{
		"it had ended":   {[]answer{status(http.StatusOK, `{"Running": false, "Pid": 12, "ExitCode": 3}`)}, nil},
		"it never began": {[]answer{status(http.StatusOK, `{"Running": false, "Pid": 0}`)}, runtime.ErrUnavailable},
	} {
		engine := newScript(t, map[string][]answer{
			"GET /containers/abc/json":  {inspects(t, identity("app"), "{}")},
			"POST /containers/abc/exec": {status(http.StatusCreated, `{"Id": "e1"}`)},
			"POST /exec/e1/start":       {lose},
			"GET /exec/e1/json":         test.inspect,
		})
		got, err := engine.Runtime(t, docker.Config{}).Exec(t.Context(), "abc", []string{"true"}, 10)
		if !errors.Is(err, test.want) || test.want == nil && got.ExitCode != 3 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
