package netns_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/podkeeper/podkeeper/node/netns"
)

// moved says where the main thread is after many connections elsewhere, "" where it
// was before.
var moved string

// TestMain dials from the goroutine that begins on the main thread: what it starts
// begins there, too, when it waits.
func TestMain(m *testing.M) {
	there := exec.Command("sleep", "1000")
	there.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := there.Start(); err != nil {
		moved = err.Error()
	} else {
		before, _ := os.Readlink("/proc/self/ns/net")
		for range 50 {
			_, _ = netns.Dial(context.Background(), there.Process.Pid, "", 1)
		}
		if after, err := os.Readlink("/proc/self/ns/net"); err != nil || after != before {
			moved = after
		}
		_ = there.Process.Kill()
		_ = there.Wait()
	}
	os.Exit(m.Run())
}

func TestMainThreadStays(t *testing.T) {
	if moved != "" {
		t.Errorf("it is in %s", moved)
	}
}

// serve greets one client on the address.
func serve(t *testing.T, address string) (port uint16) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = io.WriteString(conn, "hello")
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close() })
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func TestDial(t *testing.T) {
	for name, address := range map[string]string{"IPv4": "127.0.0.1:0", "IPv6": "[::1]:0"} {
		conn, err := netns.Dial(t.Context(), os.Getpid(), "", serve(t, address))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		conn.Close()
	}
	if conn, err := netns.Dial(t.Context(), os.Getpid(), "", 1); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a port of nobody: %v, %v", conn, err)
	}
}

// In a network of its own there is nothing, and who comes from there is back.
func TestDialElsewhere(t *testing.T) {
	there := exec.Command("sleep", "1000")
	there.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := there.Start(); err != nil {
		t.Fatal(err)
	}
	port := serve(t, "127.0.0.1:0")
	if _, err := netns.Dial(t.Context(), there.Process.Pid, "", port); err == nil {
		t.Error("what listens here is found there")
	}
	conn, err := netns.Dial(t.Context(), os.Getpid(), "", port)
	if err != nil {
		t.Errorf("back here: %v", err)
	} else {
		conn.Close()
	}
	if _, err := netns.Dial(t.Context(), there.Process.Pid, "another's", port); !errors.Is(err, netns.ErrNotThere) {
		t.Errorf("a process of another: %v", err)
	}
	if err := there.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = there.Wait()
	if _, err := netns.Dial(t.Context(), there.Process.Pid, "", port); !errors.Is(err, netns.ErrNotThere) {
		t.Errorf("a process that has ended: %v", err)
	}
}
