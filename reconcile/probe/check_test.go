package probe_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podkeeper/podkeeper/reconcile/probe"
)

// execFunc runs commands as a function does.
type execFunc func(context.Context, string, []string, int) (int, []byte, error)

func (f execFunc) Exec(ctx context.Context, id string, command []string, most int) (int, []byte, error) {
	return f(ctx, id, command, most)
}

func check(t *testing.T, c probe.Check) probe.Result {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	return probe.NewChecker(nil).Check(t.Context(), c)
}

// failedAs wants a failure with all of the words.
func failedAs(t *testing.T, got probe.Result, words ...string) {
	t.Helper()
	for _, w := range words {
		if got.Outcome != probe.Failure || !strings.Contains(got.Reason, w) {
			t.Errorf("got %+v, want a failure with %q", got, w)
		}
	}
}

func TestExec(t *testing.T) {
	tests := map[string]struct {
		exec execFunc
		want probe.Result
	}{
		"exit code 0": {
			func(context.Context, string, []string, int) (int, []byte, error) { return 0, []byte("fine"), nil },
			probe.Result{Outcome: probe.Success, Output: "fine"},
		},
		"another": {
			func(context.Context, string, []string, int) (int, []byte, error) { return 3, []byte("no file"), nil },
			probe.Result{Outcome: probe.Failure, Reason: "exit code 3", Output: "no file"},
		},
		"10 KiB of output are kept": {
			func(_ context.Context, _ string, _ []string, most int) (int, []byte, error) {
				return 0, make([]byte, most), nil
			},
			probe.Result{Outcome: probe.Success, Output: string(make([]byte, 10<<10))},
		},
		"an engine that cannot run it says nothing of the container": {
			func(context.Context, string, []string, int) (int, []byte, error) {
				return 0, nil, errors.New("engine unavailable")
			},
			probe.Result{Outcome: probe.Unknown, Reason: "engine unavailable"},
		},
		"a command that takes too long fails": {
			func(ctx context.Context, _ string, _ []string, _ int) (int, []byte, error) {
				<-ctx.Done()
				return 0, nil, ctx.Err()
			},
			probe.Result{Outcome: probe.Failure, Reason: `command "check it" timed out after 10ms`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := probe.NewChecker(tt.exec).Check(t.Context(), probe.Check{
				ContainerID: "a", Timeout: 10 * time.Millisecond,
				Handler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"check", "it"}}},
			})
			diff(t, "result", got, tt.want)
		})
	}
}

// listen returns a listener on the loopback and its port.
func listen(t *testing.T) (net.Listener, int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, l.Addr().(*net.TCPAddr).Port
}

// closed returns a port on which nobody listens.
func closed(t *testing.T) int {
	l, port := listen(t)
	l.Close()
	return port
}

// C095.
func TestPortsByNumberAndByName(t *testing.T) {
	_, port := listen(t)
	ports := []v1.ContainerPort{{Name: "other", ContainerPort: 1}, {Name: "http", ContainerPort: int32(port)}}
	at := func(p intstr.IntOrString) probe.Check {
		return probe.Check{Address: "127.0.0.1", Ports: ports, Handler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: p}}}
	}
	success := probe.Result{Outcome: probe.Success}
	diff(t, "a number", check(t, at(intstr.FromInt(port))), success)
	diff(t, "a number in quotes", check(t, at(intstr.FromString(strconv.Itoa(port)))), success)
	diff(t, "a name", check(t, at(intstr.FromString("http"))), success)
	diff(t, "a name that the container has not", check(t, at(intstr.FromString("nope"))), probe.Result{Outcome: probe.Failure, Reason: "port nope not found"})
}

func TestTCP(t *testing.T) {
	_, port := listen(t)
	to := func(address, host string, port int) probe.Check {
		return probe.Check{Address: address, Handler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Host: host, Port: intstr.FromInt(port)}}}
	}
	diff(t, "the probe's host wins (C098)", check(t, to("192.0.2.1", "127.0.0.1", port)), probe.Result{Outcome: probe.Success})
	failedAs(t, check(t, to("127.0.0.1", "", closed(t))), "dial tcp 127.0.0.1:", "connect: connection refused")
}

func TestTCPTimeout(t *testing.T) {
	// A queue of connections that is full: the kernel answers no more of them.
	l, port := listen(t)
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	shrink(t, raw)
	c := probe.Check{Address: "127.0.0.1", Timeout: 50 * time.Millisecond, Handler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(port)}}}
	for range 3 {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), 50*time.Millisecond)
		if err == nil {
			defer conn.Close()
		}
	}
	failedAs(t, check(t, c), "i/o timeout")
}

// What the kernel says names the address as it was dialled, on a machine without
// IPv6 too.
func TestAddressesOfEitherFamily(t *testing.T) {
	for address, want := range map[string]string{"127.0.0.1": "dial tcp 127.0.0.1:1:", "::1": "dial tcp [::1]:1:"} {
		failedAs(t, check(t, probe.Check{Address: address, Handler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(1)}}}), want)
	}
}

// descriptors counts the open ones of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
