package docker

import (
	"strconv"

	"github.com/docker/docker/api/types/container"

	"github.com/podkeeper/podkeeper/runtime"
)

// secure writes down what a container's process is and may do.
func (req request) secure(s runtime.Security) {
	req.config.User = s.User
	for _, group := range s.Groups {
		req.host.GroupAdd = append(req.host.GroupAdd, strconv.FormatInt(group, 10))
	}
	req.host.Privileged = s.Privileged
	req.host.CapAdd, req.host.CapDrop = orNil(s.AddCapabilities), orNil(s.DropCapabilities)
	req.host.ReadonlyRootfs = s.ReadOnlyRoot
	req.host.SecurityOpt = securityOptions(s)
	if s.UnmaskedProc {
		// An empty list is not the same as none, which is the engine's.
		req.host.MaskedPaths, req.host.ReadonlyPaths = []string{}, []string{}
	}
}

func securityOptions(s runtime.Security) []string {
	var list []string
	if s.NoNewPrivileges {
		list = append(list, "no-new-privileges")
	}
	switch s.Seccomp {
	case "":
		list = append(list, "seccomp=unconfined")
	case runtime.SeccompDefault:
	default:
		list = append(list, "seccomp="+string(s.Seccomp))
	}
	if s.AppArmor != "" {
		list = append(list, "apparmor="+s.AppArmor)
	}
	for _, label := range [][2]string{{"user", s.SELinux.User}, {"role", s.SELinux.Role}, {"type", s.SELinux.Type}, {"level", s.SELinux.Level}} {
		if label[1] != "" {
			list = append(list, "label="+label[0]+":"+label[1])
		}
	}
	return list
}

func users(u runtime.UserNamespace) container.UsernsMode {
	if u == runtime.HostUsers {
		return "host"
	}
	return ""
}
