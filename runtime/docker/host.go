package docker

import (
	"cmp"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"
)

func dockerHostFromEnv() string {
	return cmp.Or(os.Getenv(client.EnvOverrideHost), client.DefaultDockerHost)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// enginePID returns the process that listens on the engine's socket, or 0 where
// that cannot be known (TCP, another PID namespace).
func enginePID(host string) int {
	path, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return 0
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return 0
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	var peer *unix.Ucred
	raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || peer == nil {
		return 0
	}
	return int(peer.Pid)
}
