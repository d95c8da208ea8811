package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

func TestWhereTheSecurePortIs(t *testing.T) {
	for name, c := range map[string]struct {
		address     string
		credentials bool
		want        string
	}{
		"everywhere":                 {"0.0.0.0", true, "0.0.0.0"},
		"everywhere, nobody known":   {"0.0.0.0", false, "127.0.0.1"},
		"one, nobody known":          {"10.0.0.1", false, "127.0.0.1"},
		"IPv6, nobody known":         {"::", false, "::1"},
		"mapped, nobody known":       {"::ffff:10.0.0.1", false, "127.0.0.1"},
		"loopback":                   {"127.0.0.2", false, "127.0.0.2"},
		"loopback, somebody known":   {"127.0.0.2", true, "127.0.0.2"},
		"no address, somebody known": {"", true, "127.0.0.1"},
	} {
		var said strings.Builder
		a := APIConfig{Address: c.address, Callers: Callers{Anonymous: true}}.complete()
		if c.credentials {
			a.Callers.Tokens = "/tokens"
		}
		got := a.secureAddress(slog.New(slog.NewTextHandler(&said, nil)))
		told := strings.Contains(said.String(), "nobody has credentials")
		if got != c.want || told != (c.address != "" && got != c.address) {
			t.Errorf("%s: %s, want %s; said %q", name, got, c.want, &said)
		}
	}
}

func TestAPortInUseNamesItsHolder(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("port %d for healthz: in use by %s (process %d)", port, strings.TrimSpace(string(comm)), os.Getpid())
	if _, err := listen("healthz", "127.0.0.1", port, 1); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A client that is sent nothing and has vanished is found out by the kernel, within a minute.
func TestConnectionsAreKeptAlive(t *testing.T) {
	l, err := listen("tests", "127.0.0.1", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(level, name int) (value int) {
		t.Helper()
		failed := raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), level, name) })
		if err := errors.Join(failed, err); err != nil {
			t.Fatal(err)
		}
		return value
	}
	idle, every, times := option(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), option(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL), option(unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
	if option(unix.SOL_SOCKET, unix.SO_KEEPALIVE) == 0 || idle+every*times > 60 {
		t.Errorf("it is given up after %d s and %d times %d s, want within a minute", idle, times, every)
	}
}

// Healthz answers while the loop hangs, and says so; what does not need the loop is well.
func TestHealthzWhileTheLoopHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := slog.New(slog.DiscardHandler)
		p := &parts{loop: reconcile.New(reconcile.Config{}, reconcile.Deps{Log: quiet})} // which nobody runs
		h := kubeletapi.Healthz(kubeletapi.Answers{SyncLoop: p.syncLoop}, quiet)
		for path, want := range map[string]string{
			"/healthz":          "500 [+]ping ok\n[+]log ok\n[-]syncloop failed: the loop does not answer for 10s\nhealthz check failed\n",
			"/healthz/syncloop": "500 [-]syncloop failed: the loop does not answer for 10s\nhealthz check failed\n",
			"/healthz/ping":     "200 ok",
		} {
			began, w := time.Now(), httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if got := fmt.Sprint(w.Code, " ", w.Body); got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
			if took := time.Since(began); took > loopAnswers {
				t.Errorf("%s took %s", path, took)
			}
		}
	})
}

func TestWhenTheLoopIsIll(t *testing.T) {
	for since, ill := range map[time.Duration]bool{
		0: false, 5 * time.Minute: false, 6 * time.Minute: false, 6*time.Minute + time.Second: true, 24 * time.Hour: true,
	} {
		if err := overdue(since, 5*time.Minute); (err != nil) != ill {
			t.Errorf("%s after the last look: %v", since, err)
		}
	}
}
