package main

import (
	"fmt"
	"path/filepath"

	"github.com/podkeeper/podkeeper/node/podlog"
)

const defaultRootDir = "/var/lib/podkeeper"

// location says which agent is meant. With another root dir than the default,
// socket and log links are in places of its own (law 6).
type location struct {
	rootDir string
	socket  string
	// ownSocket: the socket does not follow from the root dir.
	ownSocket bool
}

// maxSocketPath is what the kernel takes, less the final zero.
const maxSocketPath = 107

// complete fills in what follows from the root dir.
func (l location) complete() (location, error) {
	root, err := filepath.Abs(l.rootDir)
	if err != nil || l.rootDir == "" {
		return l, fmt.Errorf("--root-dir %q: want a path", l.rootDir)
	}
	l.rootDir = root
	switch {
	case l.socket != "":
		l.ownSocket = true
		if l.socket, err = filepath.Abs(l.socket); err != nil {
			return l, fmt.Errorf("--socket %q: %w", l.socket, err)
		}
	case l.isDefault():
		l.socket = "/run/podkeeper.sock"
	default:
		l.socket = filepath.Join(l.rootDir, "podkeeper.sock")
	}
	if len(l.socket) > maxSocketPath {
		return l, fmt.Errorf("socket %s: its path has %d bytes, the system takes %d: give a shorter one with --socket", l.socket, len(l.socket), maxSocketPath)
	}
	return l, nil
}

func (l location) isDefault() bool { return l.rootDir == defaultRootDir }

// logs returns where log links go. podsDir overrides one of the two.
func (l location) logs(podsDir string) podlog.Config {
	cfg := podlog.Config{PodsDir: "/var/log/pods", ContainersDir: "/var/log/containers", Owner: l.rootDir}
	if !l.isDefault() {
		cfg.PodsDir = filepath.Join(l.rootDir, "logs", "pods")
		cfg.ContainersDir = filepath.Join(l.rootDir, "logs", "containers")
	}
	if podsDir != "" {
		cfg.PodsDir = podsDir
	}
	return cfg
}

// flags returns what has to be added to a command to mean the same agent.
func (l location) flags() string {
	text := ""
	if !l.isDefault() {
		text += " --root-dir " + l.rootDir
	}
	if l.ownSocket {
		text += " --socket " + l.socket
	}
	return text
}
