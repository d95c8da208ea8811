package logind_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"

	"github.com/podkeeper/podkeeper/node/logind"
)

// login is a login manager on a bus of the test's own.
type login struct {
	conn  *dbus.Conn
	asked chan []string // what locks were asked for
	// held and lent are the ends of the last lock: the manager's, and the client's as the
	// manager has it.
	held, lent *os.File
}

// Inhibit is the manager's method.
func (l *login) Inhibit(what, who, why, mode string) (dbus.UnixFD, *dbus.Error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	l.held, l.lent = ours, theirs
	l.asked <- []string{what, who, why, mode}
	return dbus.UnixFD(theirs.Fd()), nil
}

func (l *login) tell(t *testing.T, down bool) {
	t.Helper()
	if err := l.conn.Emit("/org/freedesktop/login1", "org.freedesktop.login1.Manager.PrepareForShutdown", down); err != nil {
		t.Fatal(err)
	}
}

// privateBus starts a message bus and a login manager on it, and makes it the system's
// for this process.
func privateBus(t *testing.T) *login {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Fatal("dbus-daemon is not there: scripts/test-tools.sh installs it")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "bus.conf")
	text := `<busconfig><type>session</type><listen>unix:path=` + dir + `/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/></policy></busconfig>`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), daemon, "--config-file="+config, "--nofork", "--print-address")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); _ = cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", strings.TrimSpace(address))
	conn, err := dbus.ConnectSystemBus()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	l := &login{conn: conn, asked: make(chan []string, 1)}
	const manager = "org.freedesktop.login1.Manager"
	if err := conn.Export(l, "/org/freedesktop/login1", manager); err != nil {
		t.Fatal(err)
	}
	if _, err := prop.Export(conn, "/org/freedesktop/login1", prop.Map{manager: {"InhibitDelayMaxUSec": {Value: uint64(5_000_000)}, "PreparingForShutdown": {Value: true}}}); err != nil {
		t.Fatal(err)
	}
	if reply, err := conn.RequestName("org.freedesktop.login1", dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(reply, err)
	}
	return l
}

// The manager is asked for a lock, tells of shutdowns and of those that are called
// off, and sees the lock go.
func TestShutdownOverTheBus(t *testing.T) {
	l := privateBus(t)
	m, err := logind.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if most, err := m.MaxDelay(); most != 5*time.Second || err != nil {
		t.Errorf("a shutdown is held up for %s at the most, %v", most, err)
	}
	if down, err := m.Preparing(); !down || err != nil {
		t.Errorf("the machine is about to go down: %v, %v", down, err)
	}
	lock, err := m.Hold("podkeeper", "pods are ended")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(<-l.asked, ","); got != "shutdown,podkeeper,pods are ended,delay" {
		t.Errorf("a lock was asked for as %q", got)
	}
	for _, want := range []bool{true, false, true} {
		l.tell(t, want)
		if got, err := m.Next(t.Context()); got != want || err != nil {
			t.Errorf("told of %v: %v, %v", want, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	l.lent.Close()
	if err := l.held.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.held.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the lock is still held: %v", err)
	}
}

// Without a bus there is nobody to ask; one that goes away is noticed.
func TestNoBus(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	if _, err := logind.Connect(t.Context()); err == nil {
		t.Error("connected to nothing")
	}
}
