package agent

import (
	"net"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/podlog"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// logLinks keeps the links of log shippers.
type logLinks struct{ cfg podlog.Config }

func (l logLinks) Link(c runtime.Container) error {
	return podlog.Ensure(l.cfg, link(c))
}

func link(c runtime.Container) podlog.Link {
	return podlog.Link{Key: c.Key, UID: c.UID, Container: c.Name, Attempt: c.Attempt, ID: c.ID, LogPath: c.LogPath}
}

func (l logLinks) Unlink(key pod.Key, uid types.UID) error { return podlog.RemovePod(l.cfg, key, uid) }

// machineMemory returns the machine's memory in bytes, 0 where it does not tell.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// firstAddress returns the machine's first global IPv4 address, else its first
// global one, else "".
func firstAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	found := ""
	for _, a := range addrs {
		ip, ok := a.(*net.IPNet)
		if !ok || !ip.IP.IsGlobalUnicast() {
			continue
		}
		if ip.IP.To4() != nil {
			return ip.IP.String()
		}
		if found == "" {
			found = ip.IP.String()
		}
	}
	return found
}
