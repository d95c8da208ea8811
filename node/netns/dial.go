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
	type answer struct {
		conn net.Conn
		err  error
	}
	answers := make(chan answer)
	go func() {
		// A socket belongs where its thread is when it is made. The thread is not given
		// back: it ends with this goroutine, so that nothing else ever runs there.
		goruntime.LockOSThread()
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			answers <- answer{err: fmt.Errorf("enter the network of process %d: %w", pid, err)}
			return
		}
		conn, err := loopback(ctx, port)
		answers <- answer{conn, err}
	}()
	got := <-answers
	return got.conn, got.err
}

// loopback connects from where its thread is: one address at a time, for which the
// library needs no other goroutine.
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
