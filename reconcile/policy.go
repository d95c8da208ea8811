package reconcile

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
)

// Policy is what pods may have of the machine. The zero value forbids only
// sysctls: it knows of none that is safe.
type Policy struct {
	// NoPrivileged forbids privileged containers, whatever their source.
	NoPrivileged bool
	// Whose pods may have what; see [Sources].
	HostNetwork, HostPID, HostIPC, Privileged, HostPath Sources
	// Sysctls are those that a pod may set, or prefixes of them followed by *.
	Sysctls []string
}

// Sources are kinds of sources. Nil is every kind, empty is none.
type Sources []pod.SourceKind

// AnySource stands for every kind.
const AnySource pod.SourceKind = "*"

func (s Sources) has(kind pod.SourceKind) bool {
	return s == nil || slices.Contains(s, kind) || slices.Contains(s, AnySource)
}

// Forbidden is something that a pod asks for and may not have.
type Forbidden struct {
	Waiting
	// Flag is the setting of the agent that forbids it, such as --host-pid-sources.
	Flag string
}

// Forbids returns what the pod asks for and may not have, the same list each
// time. Empty: it is admitted, as is one that is not known any more, nil.
func (y Policy) Forbids(p *pod.Pod) []Forbidden {
	if p == nil {
		return nil
	}
	var list []Forbidden
	spec, kind := &p.Object.Spec, p.Origin.Source.Kind
	ask := func(what, flag string, wanted bool, allowed Sources) {
		if wanted && !allowed.has(kind) {
			list = append(list, Forbidden{Waiting{NotAllowed, fmt.Sprintf("%s is not for pods from %s (%s)", what, kind, flag)}, flag})
		}
	}
	ask("hostNetwork", "--host-network-sources", spec.HostNetwork, y.HostNetwork)
	ask("hostPID", "--host-pid-sources", spec.HostPID, y.HostPID)
	ask("hostIPC", "--host-ipc-sources", spec.HostIPC, y.HostIPC)
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		ask(fmt.Sprintf("hostPath (volume %s)", v.Name), "--host-path-sources", v.HostPath != nil, y.HostPath)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		what := privilege(c.SecurityContext)
		if what == privileged && y.NoPrivileged {
			list = append(list, Forbidden{Waiting{NotAllowed, fmt.Sprintf("%s (container %s) is not for any pod (--allow-privileged=false)", what, c.Name)}, "--allow-privileged"})
		}
		ask(fmt.Sprintf("%s (container %s)", what, c.Name), "--privileged-sources", what != "", y.Privileged)
	}
	if sc := spec.SecurityContext; sc != nil {
		for _, s := range sc.Sysctls {
			if why := y.sysctl(s.Name, spec); why != "" {
				list = append(list, Forbidden{Waiting{SysctlForbidden, "forbidden sysctl: " + why}, "--allowed-unsafe-sysctls"})
			}
		}
	}
	return list
}

// refusal returns why the pod is not admitted, zero where it is.
func (y Policy) refusal(p *pod.Pod) Waiting {
	if list := y.Forbids(p); len(list) > 0 {
		return list[0].Waiting
	}
	return Waiting{}
}

const privileged = "privileged"

// privilege returns what a container asks for that makes its processes masters
// of the machine, or lets them become that: "" is nothing.
func privilege(sc *v1.SecurityContext) string {
	if sc == nil {
		return ""
	}
	if sc.Privileged != nil && *sc.Privileged {
		return privileged
	}
	if sc.ProcMount != nil && *sc.ProcMount == v1.UnmaskedProcMount {
		return "procMount Unmasked"
	}
	if sc.Capabilities != nil {
		for _, c := range sc.Capabilities.Add {
			if name := strings.TrimPrefix(strings.ToUpper(string(c)), "CAP_"); !slices.Contains(usualCapabilities(), name) {
				return "capability " + name
			}
		}
	}
	return ""
}

// usualCapabilities are those that engines give a container unasked.
func usualCapabilities() []string {
	return []string{
		"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW",
		"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
	}
}
