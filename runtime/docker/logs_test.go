package docker_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

// Logs of drivers that write no json-file come through the engine, where it can read
// them; one that cannot says so in the engine's words.
func TestLogsOfOtherDrivers(t *testing.T) {
	for driver, want := range map[string]struct {
		text  string
		class error
	}{
		"local": {"one\ntwo\n", nil},
		"none":  {"", runtime.ErrUnsupported},
	} {
		t.Run(driver, func(t *testing.T) {
			p := newPods(t, docker.Config{})
			p.SetLogDriver(driver)
			id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sh", "-c", "echo one; echo two"))
			ended, failed := p.raw.ContainerWait(t.Context(), id, container.WaitConditionNotRunning)
			select {
			case <-ended:
			case err := <-failed:
				t.Fatal(err)
			}
			if c, err := p.Inspect(t.Context(), id); c.LogPath != "" || err != nil {
				t.Errorf("its log path is %q, %v, want none", c.LogPath, err)
			}
			var got bytes.Buffer
			err := p.Logs(t.Context(), id, runtime.LogQuery{Tail: -1, Stdout: true, Stderr: true}, &got)
			if got.String() != want.text || !errors.Is(err, want.class) {
				t.Errorf("got %q, %v, want %q, %v", got.String(), err, want.text, want.class)
			}
		})
	}
}

// What can be asked of a log can be asked of each driver that the engine reads back, of
// the journal where there is one: while the container runs, and after it ended.
func TestQueriesOfOtherDrivers(t *testing.T) {
	drivers := []string{"local"}
	if _, err := os.Stat("/run/systemd/journal/socket"); err == nil {
		drivers = append(drivers, "journald")
	}
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			p := newPods(t, docker.Config{})
			p.SetLogDriver(driver)
			began := time.Now()
			id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sh", "-c", "echo one; sleep 1; echo odd >&2; sleep 1; echo two; exec sleep 1000"))
			r, w := io.Pipe()
			done := make(chan error, 1)
			go func() {
				done <- p.Logs(t.Context(), id, runtime.LogQuery{Follow: true, Tail: -1, Stdout: true, Stderr: true}, w)
				w.Close()
			}()
			want := "one\nodd\ntwo\n"
			text := make([]byte, len(want))
			if _, err := io.ReadFull(r, text); err != nil || string(text) != want {
				t.Fatalf("followed: %q, %v, want %q", text, err, want)
			}
			if err := p.Stop(t.Context(), id, 0); err != nil {
				t.Error(err)
			}
			if more, err := io.ReadAll(r); err != nil || len(more) > 0 {
				t.Errorf("after its end the follower got %q, %v", more, err)
			}
			if err := <-done; err != nil {
				t.Errorf("followed to its end: %v", err)
			}
			for name, c := range map[string]struct {
				q    runtime.LogQuery
				want string
			}{
				"all of it":                 {runtime.LogQuery{Tail: -1, Stdout: true, Stderr: true}, want},
				"one stream":                {runtime.LogQuery{Tail: -1, Stdout: true}, "one\ntwo\n"},
				"the other stream":          {runtime.LogQuery{Tail: -1, Stderr: true}, "odd\n"},
				"last lines":                {runtime.LogQuery{Tail: 2, Stdout: true, Stderr: true}, "odd\ntwo\n"},
				"no line":                   {runtime.LogQuery{Stdout: true, Stderr: true}, ""},
				"since before":              {runtime.LogQuery{Tail: -1, Stdout: true, Stderr: true, Since: began.Add(-time.Hour)}, want},
				"since what is yet to come": {runtime.LogQuery{Tail: -1, Stdout: true, Stderr: true, Since: began.Add(time.Hour)}, ""},
				"followed when it is over":  {runtime.LogQuery{Tail: 1, Stdout: true, Stderr: true, Follow: true}, "two\n"},
			} {
				var got bytes.Buffer
				if err := p.Logs(t.Context(), id, c.q, &got); err != nil || got.String() != c.want {
					t.Errorf("%s: %q, %v, want %q", name, &got, err, c.want)
				}
			}
			var got bytes.Buffer
			err := p.Logs(t.Context(), id, runtime.LogQuery{Tail: 1, Stdout: true, Timestamps: true}, &got)
			stamp, line, _ := strings.Cut(got.String(), " ")
			if at, wrong := time.Parse(time.RFC3339Nano, stamp); err != nil || wrong != nil || line != "two\n" || at.Sub(began).Abs() > time.Hour {
				t.Errorf("with its time: %q, %v, %v", &got, err, wrong)
			}
			if end, err := p.LogTail(t.Context(), id, 1, 100); err != nil || string(end) != "two\n" {
				t.Errorf("its end for a termination message: %q, %v", end, err)
			}
		})
	}
}

// A terminal's log has no frames, and its lines end as a terminal's do.
func TestLogsOfATerminal(t *testing.T) {
	p := newPods(t, docker.Config{})
	spec := p.spec(p.sandbox(t, nil), "app", busybox, "sh", "-c", "echo one; exec sleep 1000")
	spec.TTY = true
	id := p.start(t, spec)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- p.Logs(t.Context(), id, runtime.LogQuery{Follow: true, Tail: -1, Stdout: true}, w)
	}()
	line := make([]byte, len("one\r\n"))
	if _, err := io.ReadFull(r, line); err != nil || string(line) != "one\r\n" {
		t.Errorf("got %q, %v", line, err)
	}
	if err := p.Stop(t.Context(), id, 0); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after its end: %v", err)
	}
}
