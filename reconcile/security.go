package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// security returns what the process of a container is and may do. Where the
// image decides, image has to be the one that is run. A waiting reason says why
// the container must not be made.
func security(p *v1.Pod, c *v1.Container, image runtime.ImageInfo) (runtime.Security, Waiting) {
	sc := effectiveSecurity(p, c)
	user, why := runAs(sc, image.User)
	if why != "" {
		return runtime.Security{}, Waiting{CreateContainerConfigError, why}
	}
	s := runtime.Security{
		User:            user,
		Groups:          supplementalGroups(p),
		Privileged:      isPrivileged(c),
		NoNewPrivileges: sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation,
		ReadOnlyRoot:    isTrue(sc.ReadOnlyRootFilesystem),
		Seccomp:         seccomp(sc.SeccompProfile),
		AppArmor:        appArmor(p, c, sc.AppArmorProfile),
		UnmaskedProc:    sc.ProcMount != nil && *sc.ProcMount == v1.UnmaskedProcMount,
	}
	if sc.SELinuxOptions != nil {
		s.SELinux = *sc.SELinuxOptions
	}
	if sc.Capabilities != nil {
		s.AddCapabilities, s.DropCapabilities = capabilities(sc.Capabilities.Add), capabilities(sc.Capabilities.Drop)
	}
	return s, Waiting{}
}

// effectiveSecurity fills in from the pod what the container leaves open, field
// by field.
func effectiveSecurity(p *v1.Pod, c *v1.Container) v1.SecurityContext {
	var sc v1.SecurityContext
	if c.SecurityContext != nil {
		sc = *c.SecurityContext
	}
	if of := p.Spec.SecurityContext; of != nil {
		sc.RunAsUser = cmp.Or(sc.RunAsUser, of.RunAsUser)
		sc.RunAsGroup = cmp.Or(sc.RunAsGroup, of.RunAsGroup)
		sc.RunAsNonRoot = cmp.Or(sc.RunAsNonRoot, of.RunAsNonRoot)
		sc.SELinuxOptions = cmp.Or(sc.SELinuxOptions, of.SELinuxOptions)
		sc.SeccompProfile = cmp.Or(sc.SeccompProfile, of.SeccompProfile)
		sc.AppArmorProfile = cmp.Or(sc.AppArmorProfile, of.AppArmorProfile)
	}
	return sc
}

// runAs returns the user in the engine's words, "" for the image's own. One that
// was looked at is named, so that it is this one that runs, whatever becomes of
// the image's name; like the kubelet, without a group that has only a name.
func runAs(sc v1.SecurityContext, image string) (user, why string) {
	name, group, _ := strings.Cut(image, ":")
	name = cmp.Or(name, "0")
	uid, err := strconv.ParseInt(name, 10, 64)
	switch numeric := err == nil; {
	case sc.RunAsUser != nil:
		name, group = strconv.FormatInt(*sc.RunAsUser, 10), ""
		if isTrue(sc.RunAsNonRoot) && *sc.RunAsUser == 0 {
			return "", "container's runAsUser breaks non-root policy"
		}
	case !isTrue(sc.RunAsNonRoot):
		if sc.RunAsGroup == nil {
			return "", ""
		}
	case !numeric:
		return "", fmt.Sprintf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root", name)
	case uid == 0:
		return "", "container has runAsNonRoot and image will run as root"
	}
	if sc.RunAsGroup != nil {
		group = strconv.FormatInt(*sc.RunAsGroup, 10)
	}
	if _, err := strconv.ParseUint(group, 10, 32); err != nil {
		return name, ""
	}
	return name + ":" + group, ""
}

// supplementalGroups are those of the pod, that of its volumes among them.
func supplementalGroups(p *v1.Pod) []int64 {
	sc := p.Spec.SecurityContext
	if sc == nil {
		return nil
	}
	groups := slices.Clone(sc.SupplementalGroups)
	if sc.FSGroup != nil {
		groups = append(groups, *sc.FSGroup)
	}
	return groups
}

func isPrivileged(c *v1.Container) bool {
	return c.SecurityContext != nil && isTrue(c.SecurityContext.Privileged)
}

func capabilities(list []v1.Capability) []string {
	var out []string
	for _, c := range list {
		out = append(out, strings.TrimPrefix(string(c), "CAP_"))
	}
	return out
}

// localProfile stands before the name of a seccomp profile that has yet to be
// read. No engine takes it for one.
const localProfile = "localhost/"

func seccomp(p *v1.SeccompProfile) runtime.Seccomp {
	switch {
	case p == nil:
		return ""
	case p.Type == v1.SeccompProfileTypeRuntimeDefault:
		return runtime.SeccompDefault
	case p.Type == v1.SeccompProfileTypeLocalhost && p.LocalhostProfile != nil:
		return localProfile + runtime.Seccomp(*p.LocalhostProfile)
	default:
		return ""
	}
}

// appArmor returns the profile, from the old annotation where no field says.
func appArmor(p *v1.Pod, c *v1.Container, profile *v1.AppArmorProfile) string {
	if profile == nil {
		annotation := p.Annotations[v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name]
		if annotation == v1.DeprecatedAppArmorBetaProfileNameUnconfined {
			return "unconfined"
		}
		name, local := strings.CutPrefix(annotation, v1.DeprecatedAppArmorBetaProfileNamePrefix)
		if !local {
			return ""
		}
		return name
	}
	switch {
	case profile.Type == v1.AppArmorProfileTypeUnconfined:
		return "unconfined"
	case profile.Type == v1.AppArmorProfileTypeLocalhost && profile.LocalhostProfile != nil:
		return *profile.LocalhostProfile
	default:
		return ""
	}
}

// sysctls are by the names that the kernel has below /proc/sys, with dots.
func sysctls(p *v1.Pod) map[string]string {
	if p.Spec.SecurityContext == nil {
		return nil
	}
	set := make(map[string]string)
	for _, s := range p.Spec.SecurityContext.Sysctls {
		set[sysctlName(s.Name)] = s.Value
	}
	return set
}

// sandboxSecurity is that of the process that holds the pod's namespaces. It has
// the pod's label, so that the others may use what they share.
func sandboxSecurity(p *v1.Pod) runtime.Security {
	s := runtime.Security{Seccomp: runtime.SeccompDefault}
	if sc := p.Spec.SecurityContext; sc != nil && sc.SELinuxOptions != nil {
		s.SELinux = *sc.SELinuxOptions
	}
	return s
}

// userNamespace is the pod's: an engine that maps users cannot give a container
// the host's namespaces or privileges unless it has the host's users.
func userNamespace(p *v1.Pod) runtime.UserNamespace {
	spec := &p.Spec
	switch {
	case spec.HostUsers != nil && !*spec.HostUsers:
		return runtime.OwnUsers
	case spec.HostUsers != nil, spec.HostNetwork, spec.HostPID, spec.HostIPC,
		slices.ContainsFunc(members(p), func(m member) bool { return isPrivileged(m.Container) }):
		return runtime.HostUsers
	default:
		return runtime.EngineUsers
	}
}
