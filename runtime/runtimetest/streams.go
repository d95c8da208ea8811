package runtimetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/runtime"
)

// closing tells that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func execStream(t *testing.T, b bench) {
	id := b.run(t, b.sandbox(t), "app", b.Forever)
	much := strings.Repeat("0123456789abcde\n", 1<<16) // more than any pipe holds
	for name, test := range map[string]struct {
		command []string
		input   *closing
		code    int
		output  string
	}{
		"output":                    {b.Say("one", "two"), nil, 0, "one\ntwo\n"},
		"an exit code":              {b.Exit(3), nil, 3, ""},
		"input that ends":           {b.Cat, &closing{Reader: strings.NewReader(much)}, 0, much},
		"input that nobody reads":   {b.Exit(4), &closing{Reader: strings.NewReader(much)}, 4, ""},
		"no input":                  {b.Cat, nil, 0, ""},
		"input that has ended":      {b.Cat, &closing{Reader: strings.NewReader("")}, 0, ""},
		"output that nobody wants":  {b.Say("one"), nil, 0, ""},
		"input that ends in output": {b.Say("one"), &closing{Reader: strings.NewReader("two")}, 0, "one\n"},
	} {
		var out bytes.Buffer
		s := runtime.Streams{Stdout: &out, Stderr: &out}
		if test.input != nil {
			s.Stdin = test.input
		}
		if name == "output that nobody wants" {
			s.Stdout, s.Stderr = nil, nil
		}
		code, err := b.Runtime.ExecStream(b.ctx, id, test.command, s)
		if err != nil || code != test.code || out.String() != test.output {
			t.Errorf("%s: code %d, %d bytes of output, %v; want %d, %d bytes", name, code, out.Len(), err, test.code, len(test.output))
		}
		if test.input != nil && !test.input.closed {
			t.Errorf("%s: the input was not closed", name)
		}
	}
	if code, err := b.Runtime.ExecStream(b.ctx, id, b.FailStart, runtime.Streams{}); err != nil || code <= 125 {
		t.Errorf("one that cannot be started: code %d, %v; want one above 125", code, err)
	}
	created := b.create(t, b.sandbox(t), "later", b.Forever)
	for name, in := range map[string]string{"created": created, "gone": strings.Repeat("ab", 32)} {
		input := &closing{Reader: strings.NewReader("")}
		if _, err := b.Runtime.ExecStream(b.ctx, in, b.Cat, runtime.Streams{Stdin: input}); !errors.Is(err, runtime.ErrNotFound) || !input.closed {
			t.Errorf("exec in one that is %s: %v, want ErrNotFound; input closed: %t", name, err, input.closed)
		}
		if err := b.Runtime.Attach(b.ctx, in, runtime.Streams{}); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("attach to one that is %s: %v, want ErrNotFound", name, err)
		}
	}
}

var errGone = errors.New("nobody reads any more")

type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, errGone }

// execStreamKilled leaves a reader of its input and a writer behind: both must end.
func execStreamKilled(t *testing.T, b bench) {
	id := b.run(t, b.sandbox(t), "app", b.Forever)
	ctx, cancel := context.WithCancel(b.ctx)
	input, keyboard := io.Pipe()
	screen, output := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := b.Runtime.ExecStream(ctx, id, b.Cat, runtime.Streams{Stdin: input, Stdout: output})
		ended <- err
	}()
	if _, err := io.WriteString(keyboard, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(screen).ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("it said %q, %v, before its input ended", line, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context ended", err)
	}
	if _, err := keyboard.Write([]byte("more")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing to it says %v, want that it was closed", err)
	}
	if _, err := b.Runtime.ExecStream(b.ctx, id, append([]string{}, b.Say("x")...), runtime.Streams{Stdout: gone{}}); !errors.Is(err, errGone) {
		t.Errorf("output that cannot be written: %v, want why", err)
	}
	if c := b.inspect(t, id); c.State != runtime.Running {
		t.Errorf("the container is %s, want it running still", c.State)
	}
}

func execTerminal(t *testing.T, b bench) {
	id := b.run(t, b.sandbox(t), "app", b.Forever)
	ctx, cancel := context.WithCancel(b.ctx)
	screen, output := io.Pipe()
	sizes := make(chan runtime.TerminalSize, 1)
	ended := make(chan error, 1)
	go func() {
		_, err := b.Runtime.ExecStream(ctx, id, b.Sizes, runtime.Streams{Stdout: output, TTY: true, Resize: sizes})
		ended <- err
	}()
	resized(t, bufio.NewReader(screen), sizes)
	close(sizes)
	cancel()
	screen.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// resized changes the size of a terminal, in which Sizes run, and waits to see it.
func resized(t *testing.T, screen *bufio.Reader, sizes chan<- runtime.TerminalSize) {
	t.Helper()
	for _, size := range []struct {
		runtime.TerminalSize
		want string
	}{
		{runtime.TerminalSize{Width: 100, Height: 40}, "40 100"},
		{runtime.TerminalSize{Width: 81, Height: 25}, "25 81"},
	} {
		sizes <- size.TerminalSize
		for {
			line, err := screen.ReadString('\n')
			if err != nil {
				t.Fatalf("waiting for %q: %v", size.want, err)
			}
			if strings.TrimSpace(line) == size.want {
				break
			}
		}
	}
}

func attach(t *testing.T, b bench) {
	sandbox := b.sandbox(t)
	for name, tty := range map[string]bool{"cat": false, "sizes": true} {
		command := b.Cat
		if tty {
			command = b.Sizes
		}
		spec := b.containerSpec(sandbox, name, command)
		spec.Stdin, spec.StdinOnce, spec.TTY = true, true, tty
		id, err := b.Runtime.EnsureContainer(b.ctx, spec)
		if err == nil {
			err = b.Runtime.Start(b.ctx, id)
		}
		if err != nil {
			t.Fatal(err)
		}
		input, keyboard := io.Pipe()
		screen, output := io.Pipe()
		sizes := make(chan runtime.TerminalSize, 1)
		ended := make(chan error, 1)
		go func() {
			ended <- b.Runtime.Attach(b.ctx, id, runtime.Streams{Stdin: input, Stdout: output, Resize: sizes})
			output.Close()
		}()
		lines := bufio.NewReader(screen)
		if tty {
			resized(t, lines, sizes)
		} else {
			if _, err := io.WriteString(keyboard, "hello\n"); err != nil {
				t.Fatal(err)
			}
			if line, err := lines.ReadString('\n'); err != nil || line != "hello\n" {
				t.Errorf("it said %q, %v", line, err)
			}
		}
		b.Somebody.Kill(t, id)
		if _, err := io.Copy(io.Discard, lines); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("%s: when its container ends it says %v", name, err)
		}
	}
}

func attachLeaves(t *testing.T, b bench) {
	id := b.run(t, b.sandbox(t), "app", b.Forever)
	ctx, cancel := context.WithCancel(b.ctx)
	input, keyboard := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- b.Runtime.Attach(ctx, id, runtime.Streams{Stdin: input}) }()
	// It was made without input.
	if _, err := keyboard.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("its input says %v, want that it is closed", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context ended", err)
	}
	if c := b.inspect(t, id); c.State != runtime.Running {
		t.Errorf("the container is %s, want it running still", c.State)
	}
}

// attachTerminal leaves a terminal twice: that its user types no more is no end of
// what runs there.
func attachTerminal(t *testing.T, b bench) {
	spec := b.containerSpec(b.sandbox(t), "app", b.Cat)
	spec.Stdin, spec.TTY = true, true
	id, err := b.Runtime.EnsureContainer(b.ctx, spec)
	if err == nil {
		err = b.Runtime.Start(b.ctx, id)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"one", "two"} {
		ctx, cancel := context.WithCancel(b.ctx)
		input, keyboard := io.Pipe()
		screen, output := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- b.Runtime.Attach(ctx, id, runtime.Streams{Stdin: input, Stdout: output}) }()
		if _, err := io.WriteString(keyboard, word+"\n"); err != nil {
			t.Fatal(err)
		}
		for lines, line := bufio.NewReader(screen), ""; strings.TrimSpace(line) != word; {
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatalf("waiting for %s: %v", word, err)
			}
		}
		go func() { _, _ = io.Copy(io.Discard, screen) }()
		keyboard.Close()
		if word == "two" {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			continue
		}
		defer func() { <-ended }()
		defer cancel()
	}
	if c := b.inspect(t, id); c.State != runtime.Running {
		t.Errorf("it is %s, want it running still", c.State)
	}
}
