package stream_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/server/stream"
)

// A client with a full window that answers the kernel stays, however long it reads nothing;
// one that drops what it is sent, as a machine that lost its power, is found to be gone.
func TestAClientThatAnswersNoMore(t *testing.T) {
	const soon = 300 * time.Millisecond
	ours, theirs := connected(t)
	// Until nothing goes any more.
	full := make([]byte, 1<<20)
	for err := error(nil); !errors.Is(err, os.ErrDeadlineExceeded); {
		_ = ours.SetWriteDeadline(time.Now().Add(soon))
		if _, err = ours.Write(full); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for until := time.Now().Add(4 * soon); time.Now().Before(until); <-every.C {
		if stream.HungUp(ours) || stream.Vanished(ours, soon) {
			t.Fatal("it is taken for gone, and answers")
		}
	}
	// What the filter keeps 0 bytes of, the client's kernel never sees.
	raw, err := theirs.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	})
	if err := errors.Join(failed, err); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); !stream.Vanished(ours, soon); <-every.C {
		if time.Now().After(until) {
			t.Fatal("it answers no more, and is not taken for gone")
		}
	}
	if stream.HungUp(ours) {
		t.Error("the kernel has given up: that is no test of who has not")
	}
}

// connected returns both ends of a connection over TCP.
func connected(t *testing.T) (ours, theirs *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if theirs, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	if ours, err = l.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	return ours, theirs
}
