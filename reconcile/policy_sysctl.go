package reconcile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// SafeSysctls returns the sysctls that a pod may set on a machine with that
// version of Linux: each belongs to the pod's own namespaces, and has no effect on
// other pods.
func SafeSysctls(major, minor int) []string {
	names := []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
		"net.ipv4.ping_group_range", "net.ipv4.tcp_syncookies",
	}
	// From which version on they are a namespace's own.
	for _, s := range []struct {
		name         string
		major, minor int
	}{
		{"net.ipv4.ip_local_reserved_ports", 3, 16},
		{"net.ipv4.tcp_keepalive_intvl", 4, 5},
		{"net.ipv4.tcp_keepalive_probes", 4, 5},
		{"net.ipv4.tcp_keepalive_time", 4, 5},
		{"net.ipv4.tcp_fin_timeout", 4, 6},
		{"net.ipv4.tcp_notsent_lowat", 4, 6},
		{"net.ipv4.tcp_rmem", 4, 15},
		{"net.ipv4.tcp_slow_start_after_idle", 4, 15},
		{"net.ipv4.tcp_wmem", 4, 15},
	} {
		if major > s.major || major == s.major && minor >= s.minor {
			names = append(names, s.name)
		}
	}
	return names
}

// CheckSysctl says what is wrong with a name of a sysctl, or a prefix of
// names followed by *, that pods are to be allowed to set.
func (Policy) CheckSysctl(pattern string) error {
	prefix, _ := strings.CutSuffix(sysctlName(pattern), "*")
	switch {
	case len(pattern) > maxSysctl || !sysctlPattern.MatchString(pattern):
		return errors.New("want the name of a sysctl, or the beginning of names and a *, such as net.*")
	case sysctlNamespace(prefix) == "":
		return errors.New("it is not known to belong to a namespace: it would be the machine's")
	}
	return nil
}

const maxSysctl = 253

var sysctlPattern = regexp.MustCompile(`^([a-z0-9][-_a-z0-9]*[./])*([a-z0-9][-_a-z0-9]*\*?|\*)$`)

// sysctl says why a pod may not set one, "" where it may.
func (y Policy) sysctl(name string, spec *v1.PodSpec) string {
	name = sysctlName(name)
	for _, pattern := range y.Sysctls {
		pattern = sysctlName(pattern)
		prefix, open := strings.CutSuffix(pattern, "*")
		if name != pattern && !(open && strings.HasPrefix(name, prefix)) {
			continue
		}
		namespace := sysctlNamespace(prefix)
		if namespace == "Net" && spec.HostNetwork || namespace == "IPC" && spec.HostIPC ||
			namespace == "User" && (spec.HostUsers == nil || *spec.HostUsers) {
			return fmt.Sprintf("%q not allowed with host %s enabled", name, namespace)
		}
		return ""
	}
	return fmt.Sprintf("%q not allowlisted (--allowed-unsafe-sysctls)", name)
}

// sysctlNamespace returns the namespace that a sysctl, or the beginning of the
// names of some, belongs to; "" where that is not known.
func sysctlNamespace(name string) string {
	switch name {
	case "kernel.domainname":
		return "UTS"
	case "kernel.sem", "kernel.shm", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
		"kernel.msg", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni":
		return "IPC"
	}
	switch {
	case strings.HasPrefix(name, "fs.mqueue."):
		return "IPC"
	case strings.HasPrefix(name, "net."):
		return "Net"
	case strings.HasPrefix(name, "user."):
		return "User"
	default:
		return ""
	}
}

// sysctlName returns the name with dots between its parts: one whose first
// separator is a slash has slashes there, and dots within the parts.
func sysctlName(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}
