package docker_test

import (
	"io"
	"log"
	"testing"
	"time"

	"github.com/docker/go-connections/nat"
)

// pollUntil waits for what a process in a container does, of which nobody tells.
func pollUntil(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(20 * time.Second); !done(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("nothing happened within 20 s")
		}
	}
}

func natPort(port string) nat.Port { return nat.Port(port) }

func discardLogger() *log.Logger { return log.New(io.Discard, "", 0) }

func readAll(r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	return string(data), err
}
