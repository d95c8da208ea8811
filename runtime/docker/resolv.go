package docker

import (
	"net/netip"
	"os"
	"strings"

	"github.com/podkeeper/podkeeper/runtime"
)

const (
	etcResolvConf = "/etc/resolv.conf"
	// realResolvConf is where systemd-resolved writes the resolvers that its
	// loopback one forwards to.
	realResolvConf = "/run/systemd/resolve/resolv.conf"
)

// resolvConf is what pods are told about DNS; the zero value leaves it to the engine.
type resolvConf struct {
	servers, search, options []string
}

// parseResolvConf reads a resolv.conf as the C library does: the last search (or
// domain) line counts, options add up.
func parseResolvConf(text string) resolvConf {
	var rc resolvConf
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			// An address with a zone means an interface, and a pod has others.
			if addr, err := netip.ParseAddr(fields[1]); err == nil && addr.Zone() == "" {
				rc.servers = append(rc.servers, fields[1])
			}
		case "search":
			rc.search = fields[1:]
		case "domain":
			rc.search = fields[1:2]
		case "options":
			rc.options = append(rc.options, fields[1:]...)
		}
	}
	return rc
}

// loopbackOnly reports whether a pod, which has a loopback of its own, could
// reach none of the servers.
func (rc resolvConf) loopbackOnly() bool {
	for _, server := range rc.servers {
		if !isLoopback(server) {
			return false
		}
	}
	return len(rc.servers) > 0
}

// forEngine makes the file the whole truth: without a search list the engine
// would add that of its own file, and "." is its word for none.
func (rc resolvConf) forEngine() resolvConf {
	if len(rc.search) == 0 {
		rc.search = []string{"."}
	}
	return rc
}

// resolvers is a choice; broken means that pods cannot be given a working one.
type resolvers struct {
	resolvConf
	broken bool
}

// chooseResolvers decides between /etc/resolv.conf, which the engine reads by
// itself, and the real one behind a loopback resolver.
func chooseResolvers(etc, behind resolvConf) resolvers {
	switch {
	case !etc.loopbackOnly():
		return resolvers{}
	case len(behind.servers) == 0 || behind.loopbackOnly():
		return resolvers{broken: true}
	default:
		return resolvers{resolvConf: behind.forEngine()}
	}
}

// systemResolvers reads both files; one that is missing is empty.
func systemResolvers() (etc, behind resolvConf) {
	read := func(path string) resolvConf {
		data, _ := os.ReadFile(path)
		return parseResolvConf(string(data))
	}
	return read(etcResolvConf), read(realResolvConf)
}

// dns returns what a new sandbox is told. It is read each time: DHCP rewrites
// these files.
func (r *Runtime) dns(spec runtime.SandboxSpec) (resolvConf, error) {
	if spec.DNS != nil {
		return resolvConf{spec.DNS.Servers, spec.DNS.Searches, spec.DNS.Options}.forEngine(), nil
	}
	if r.cfg.ResolvConf != "" {
		data, err := os.ReadFile(r.cfg.ResolvConf)
		if err != nil {
			return resolvConf{}, err
		}
		return parseResolvConf(string(data)).forEngine(), nil
	}
	if spec.HostNetwork {
		return resolvConf{}, nil // the host's loopback is its own
	}
	return chooseResolvers(systemResolvers()).resolvConf, nil
}
