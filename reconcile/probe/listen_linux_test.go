package probe_test

import (
	"syscall"
	"testing"
)

// shrink has a listener queue one connection at most.
func shrink(t *testing.T, raw syscall.RawConn) {
	t.Helper()
	if err := raw.Control(func(fd uintptr) {
		if err := syscall.Listen(int(fd), 0); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
