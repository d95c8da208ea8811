package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotThere: the process has ended, or is another one's by now.
var ErrNotThere = errors.New("not there any more")

// Dial connects to a TCP port of the loopback device, of IPv4 and else of IPv6, where
// the process pid has its network. of is part of the name of that process's cgroup: pids
// are used again.
func Dial(ctx context.Context, pid int, of string, port uint16) (net.Conn, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	// The namespace is held before it is asked whose it is.
	space, err := os.Open(filepath.Join(dir, "ns", "net"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotThere
	}
	if err != nil {
		return nil, fmt.Errorf("network of process %d: %w", pid, err)
	}
	defer space.Close()
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil || !strings.Contains(string(groups), of) {
		return nil, ErrNotThere
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var conn net.Conn
	onThreadOfItsOwn(func() {
		// A socket belongs where its thread is when it is made.
		if err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("enter the network of process %d: %w", pid, err)
			return
		}
		conn, err = loopback(ctx, port)
	})
	return conn, err
}

// within bounds how long a connection may take: each holds a thread meanwhile.
const within = 10 * time.Second

// onThreadOfItsOwn calls f on a thread that ends after it, so that nothing else ever
// runs where f has taken it. The main thread never is that one: it would not end, and
// what the kernel tells of this process it tells of that thread.
func onThreadOfItsOwn(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		goruntime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer goruntime.UnlockOSThread()
			onThreadOfItsOwn(f) // which cannot be this one as long as it is locked
			return
		}
		f()
	}()
	<-done
}

// loopback connects from where its thread is. It asks for one address at a time, which
// the library connects to on the thread that asks.
func loopback(ctx context.Context, port uint16) (net.Conn, error) {
	var d net.Dialer
	to := strconv.Itoa(int(port))
	conn, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", to))
	if err == nil {
		return conn, nil
	}
	if conn, failed := d.DialContext(ctx, "tcp6", net.JoinHostPort("::1", to)); failed == nil {
		return conn, nil
	}
	return nil, err
}
