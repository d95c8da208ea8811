package docker_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

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
