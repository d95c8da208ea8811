package cgroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	dbus "github.com/godbus/dbus/v5"
)

// Units are systemd's. Calls return when it has done what is asked.
type Units interface {
	// Start starts a slice with those properties. One that is there is set to them.
	Start(ctx context.Context, unit string, limits []systemd.Property) error
	// Set changes properties until the machine restarts.
	Set(ctx context.Context, unit string, limits []systemd.Property) error
	// Stop ends a unit and all that runs in it; one that is not there is success.
	Stop(ctx context.Context, unit string) error
}

func (h Host) units() Units {
	if h.Units != nil {
		return h.Units
	}
	return bus{}
}

// bus reaches systemd by D-Bus, with a connection for each call: nothing of it is
// left over when systemd starts anew.
type bus struct{}

// jobTime is how long systemd may take for a slice.
const jobTime = 30 * time.Second

// The errors of systemd's bus that are told apart.
const (
	unitExists  = "org.freedesktop.systemd1.UnitExists"
	unitMissing = "org.freedesktop.systemd1.NoSuchUnit"
)

func (bus) Start(ctx context.Context, unit string, limits []systemd.Property) error {
	return call(ctx, "start "+unit, func(ctx context.Context, c *systemd.Conn) error {
		properties := append(sliceProperties(unit), limits...)
		err := job(ctx, func(done chan<- string) error {
			_, err := c.StartTransientUnitContext(ctx, unit, "replace", properties, done)
			return err
		})
		if is(err, unitExists) {
			err = c.SetUnitPropertiesContext(ctx, unit, true, limits...)
		}
		return err
	})
}

func (bus) Set(ctx context.Context, unit string, limits []systemd.Property) error {
	return call(ctx, "set "+unit, func(ctx context.Context, c *systemd.Conn) error {
		return c.SetUnitPropertiesContext(ctx, unit, true, limits...)
	})
}

func (bus) Stop(ctx context.Context, unit string) error {
	return call(ctx, "stop "+unit, func(ctx context.Context, c *systemd.Conn) error {
		err := job(ctx, func(done chan<- string) error {
			_, err := c.StopUnitContext(ctx, unit, "replace", done)
			return err
		})
		if is(err, unitMissing) {
			return nil
		}
		return err
	})
}

// sliceProperties are what every slice of ours has: what is used in it is counted, and
// it goes down with the machine's other slices.
func sliceProperties(unit string) []systemd.Property {
	list := []systemd.Property{systemd.PropDescription("pods " + unit)}
	for name, value := range map[string]bool{
		"DefaultDependencies": false,
		"CPUAccounting":       true,
		"MemoryAccounting":    true,
		"TasksAccounting":     true,
		"IOAccounting":        true,
	} {
		list = append(list, systemd.Property{Name: name, Value: dbus.MakeVariant(value)})
	}
	return list
}

func call(ctx context.Context, what string, f func(context.Context, *systemd.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	c, err := systemd.NewWithContext(ctx)
	if err == nil {
		defer c.Close()
		err = f(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("systemd: %s: %w", what, err)
	}
	return nil
}

// job waits until what start begins has been done.
func job(ctx context.Context, start func(done chan<- string) error) error {
	done := make(chan string, 1)
	if err := start(done); err != nil {
		return err
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("the job has come to %q", result)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func is(err error, name string) bool {
	var e dbus.Error
	return errors.As(err, &e) && e.Name == name
}
