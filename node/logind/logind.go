package logind

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/coreos/go-systemd/v22/login1"
	"github.com/godbus/dbus/v5"
)

// Manager is a connection to the login manager. Close ends it.
type Manager struct {
	login   *login1.Conn
	bus     *dbus.Conn
	signals chan *dbus.Signal
}

const manager = "org.freedesktop.login1.Manager"

// Connect connects to the login manager of the machine, by the system bus, and hears
// of shutdowns from then on.
func Connect(ctx context.Context) (*Manager, error) {
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("connect to the system bus: %w", err)
	}
	login, err := login1.New()
	if err != nil {
		bus.Close()
		return nil, fmt.Errorf("connect to the system bus: %w", err)
	}
	return &Manager{login: login, bus: bus, signals: login.Subscribe("PrepareForShutdown")}, nil
}

// Close gives up the connection. It releases no lock.
func (m *Manager) Close() {
	m.login.Close()
	m.bus.Close()
}

// MaxDelay returns how long a shutdown may be held up.
func (m *Manager) MaxDelay() (time.Duration, error) {
	value, err := m.bus.Object("org.freedesktop.login1", "/org/freedesktop/login1").GetProperty(manager + ".InhibitDelayMaxUSec")
	if err != nil {
		return 0, fmt.Errorf("read InhibitDelayMaxSec of logind: %w", err)
	}
	microseconds, ok := value.Value().(uint64)
	if !ok {
		return 0, fmt.Errorf("read InhibitDelayMaxSec of logind: it is %s", value)
	}
	return time.Duration(microseconds) * time.Microsecond, nil
}

// Preparing reports whether the machine is about to go down.
func (m *Manager) Preparing() (bool, error) {
	value, err := m.bus.Object("org.freedesktop.login1", "/org/freedesktop/login1").GetProperty(manager + ".PreparingForShutdown")
	if err != nil {
		return false, fmt.Errorf("read PreparingForShutdown of logind: %w", err)
	}
	down, _ := value.Value().(bool)
	return down, nil
}

// Hold takes a lock that holds up the next shutdown, until it is closed.
func (m *Manager) Hold(who, why string) (io.Closer, error) {
	lock, err := m.login.Inhibit("shutdown", who, why, "delay")
	if err != nil {
		return nil, fmt.Errorf("take an inhibitor lock of logind: %w", err)
	}
	return lock, nil
}

// Next waits for news: true where the machine is about to go down, false where that
// was called off. It returns an error when the connection or ctx ends.
func (m *Manager) Next(ctx context.Context) (down bool, err error) {
	for {
		select {
		case s, ok := <-m.signals:
			switch {
			case !ok:
				return false, fmt.Errorf("hear from logind: %w", io.ErrUnexpectedEOF)
			case s == nil || s.Name != manager+".PrepareForShutdown" || len(s.Body) == 0:
				continue
			}
			if down, ok := s.Body[0].(bool); ok {
				return down, nil
			}
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
