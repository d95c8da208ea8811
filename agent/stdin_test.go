package agent_test

import (
	"context"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/podkeeper/podkeeper/server"
)

// Where a container's process stands, and what it reads from.
func TestWorkingDirAndStdin(t *testing.T) {
	w := newWorld(t)
	w.write("in.yaml", manifest("{name: in}",
		`{name: dir, image: "busybox:stable", workingDir: /tmp, command: ["sh", "-c", "pwd; test -t 0 || echo no terminal"]}`,
		`{name: tty, image: "busybox:stable", tty: true, stdin: true, command: ["sh", "-c", "test -t 0 && echo terminal; sleep 3600"]}`,
		`{name: none, image: "busybox:stable", command: [cat]}`,
		`{name: open, image: "busybox:stable", stdin: true, command: [cat]}`,
		`{name: once, image: "busybox:stable", stdin: true, stdinOnce: true, command: [cat]}`)+"  restartPolicy: Never\n")
	w.start()
	w.await("those that read nothing have ended, the others run", endsWell("in", "dir"), endsWell("in", "none"),
		runs0("in", "tty"), runs0("in", "open"), runs0("in", "once"))
	ids := make(map[string]string)
	for key, c := range w.containers() {
		ids[key] = c.ID
	}
	if got := w.output(ids["in-node/dir/0"]); got != "/tmp\nno terminal\n" {
		t.Errorf("it said %q", got)
	}
	for _, name := range []string{"open", "once"} {
		id := ids["in-node/"+name+"/0"]
		in, err := w.engine.ContainerAttach(context.Background(), id, container.AttachOptions{Stream: true, Stdin: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Conn.Write([]byte("hello\n")); err != nil {
			t.Error(err)
		}
		w.poll(name+" says what it read", func() bool { return w.output(id) == "hello\n" })
		in.Close()
	}
	w.await("the end of the first client is that of one alone", endsWell("in", "once"), runs0("in", "open"), runs0("in", "tty"))
	tty := w.inspect(ids["in-node/tty/0"])
	if !tty.Config.Tty || !tty.Config.OpenStdin || tty.Config.StdinOnce {
		t.Errorf("the terminal: %t, its input open: %t, once: %t", tty.Config.Tty, tty.Config.OpenStdin, tty.Config.StdinOnce)
	}
}

// endsWell: the container has ended, with exit code 0.
func endsWell(name, container string) condition {
	return func(s server.State) bool {
		c := status(s, name, container)
		return c != nil && c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
	}
}
