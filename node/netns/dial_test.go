package netns_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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

// A port that does not answer is given up: each connection holds a thread.
func TestDialInVain(t *testing.T) {
	t.Parallel() // it takes as long as that
	port := deaf(t)
	began := time.Now()
	conn, err := netns.Dial(t.Context(), os.Getpid(), "", port)
	if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() {
		t.Errorf("%v, %v after %s, want a time-out", conn, err, time.Since(began))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := netns.Dial(ctx, os.Getpid(), "", port)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "canceled") {
		t.Errorf("one that is called off: %v", err)
	}
}

// deaf returns a port that takes in nobody: as many wait there as may.
func deaf(t *testing.T) uint16 {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		t.Cleanup(func() { syscall.Close(fd) })
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = syscall.Listen(fd, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := at.(*syscall.SockaddrInet4).Port
	waiting, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { waiting.Close() })
	return uint16(port)
}
