package validate

import (
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// security checks the pod's security context and its share in the host.
func security(s *v1.PodSpec, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		podSecurity(s, path.Child("securityContext")),
		hostUsers(s, path),
		hostProcess(s, path),
		operatingSystem(s, path),
	)
	if share := s.ShareProcessNamespace; share != nil && *share && s.HostPID {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), *share, "must not be set together with hostPID"))
	}
	return errs
}

func podSecurity(s *v1.PodSpec, path *field.Path) field.ErrorList {
	c := s.SecurityContext
	if c == nil {
		return nil
	}
	errs := slices.Concat(
		userID(path.Child("runAsUser"), c.RunAsUser),
		groupID(path.Child("runAsGroup"), c.RunAsGroup),
		groupID(path.Child("fsGroup"), c.FSGroup),
		optionalChoice(path.Child("fsGroupChangePolicy"), c.FSGroupChangePolicy, v1.FSGroupChangeOnRootMismatch, v1.FSGroupChangeAlways),
		optionalChoice(path.Child("supplementalGroupsPolicy"), c.SupplementalGroupsPolicy,
			v1.SupplementalGroupsPolicyMerge, v1.SupplementalGroupsPolicyStrict),
		optionalChoice(path.Child("seLinuxChangePolicy"), c.SELinuxChangePolicy,
			v1.SELinuxChangePolicyRecursive, v1.SELinuxChangePolicyMountOption),
		seccompProfile(c.SeccompProfile, path.Child("seccompProfile")),
		appArmorProfile(c.AppArmorProfile, path.Child("appArmorProfile")),
		windowsOptions(c.WindowsOptions, path.Child("windowsOptions")),
		sysctls(s, path.Child("sysctls")),
	)
	for i, group := range c.SupplementalGroups {
		errs = append(errs, groupID(path.Child("supplementalGroups").Index(i), &group)...)
	}
	return errs
}

func containerSecurity(c *v1.SecurityContext, ownHostUsers bool, path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := slices.Concat(
		userID(path.Child("runAsUser"), c.RunAsUser),
		groupID(path.Child("runAsGroup"), c.RunAsGroup),
		optionalChoice(path.Child("procMount"), c.ProcMount, v1.DefaultProcMount, v1.UnmaskedProcMount),
		seccompProfile(c.SeccompProfile, path.Child("seccompProfile")),
		appArmorProfile(c.AppArmorProfile, path.Child("appArmorProfile")),
		windowsOptions(c.WindowsOptions, path.Child("windowsOptions")),
	)
	if ownHostUsers && c.ProcMount != nil && *c.ProcMount == v1.UnmaskedProcMount {
		errs = append(errs, field.Invalid(path.Child("procMount"), *c.ProcMount, "needs spec.hostUsers: false"))
	}
	if c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation {
		return errs
	}
	if c.Privileged != nil && *c.Privileged {
		errs = append(errs, field.Invalid(path, "", "must not have privileged: true together with allowPrivilegeEscalation: false"))
	}
	if c.Capabilities != nil {
		for _, capability := range c.Capabilities.Add {
			if capability == "CAP_SYS_ADMIN" {
				errs = append(errs, field.Invalid(path, capability, "must not be added together with allowPrivilegeEscalation: false"))
			}
		}
	}
	return errs
}

// hostUsers has what cannot be shared with the host by a pod that has users of
// its own.
func hostUsers(s *v1.PodSpec, path *field.Path) field.ErrorList {
	if s.HostUsers == nil || *s.HostUsers {
		return nil
	}
	const why = "must not be set where hostUsers is false"
	errs := slices.Concat(
		forbiddenIf(s.HostNetwork, path.Child("hostNetwork"), why),
		forbiddenIf(s.HostPID, path.Child("hostPID"), why),
		forbiddenIf(s.HostIPC, path.Child("hostIPC"), why),
	)
	for at, c := range everyContainer(s, path) {
		errs = append(errs, forbiddenIf(len(c.VolumeDevices) > 0, at.Child("volumeDevices"), why)...)
	}
	return errs
}

func seccompProfile(p *v1.SeccompProfile, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := requiredChoice(path.Child("type"), p.Type,
		v1.SeccompProfileTypeLocalhost, v1.SeccompProfileTypeRuntimeDefault, v1.SeccompProfileTypeUnconfined)
	file := path.Child("localhostProfile")
	switch local := p.Type == v1.SeccompProfileTypeLocalhost; {
	case local && p.LocalhostProfile == nil:
		errs = append(errs, field.Required(file, "must be set where type is Localhost"))
	case local:
		errs = append(errs, relativePath(file, *p.LocalhostProfile)...)
	case p.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(file, *p.LocalhostProfile, "must be set only where type is Localhost"))
	}
	return errs
}

func appArmorProfile(p *v1.AppArmorProfile, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	const longest = 4095 // a path in the kernel, without its end
	name := path.Child("localhostProfile")
	switch p.Type {
	case v1.AppArmorProfileTypeRuntimeDefault, v1.AppArmorProfileTypeUnconfined:
		if p.LocalhostProfile != nil {
			return one(field.Invalid(name, *p.LocalhostProfile, "must be set only where type is Localhost"))
		}
		return nil
	case v1.AppArmorProfileTypeLocalhost:
	default:
		return requiredChoice(path.Child("type"), p.Type,
			v1.AppArmorProfileTypeLocalhost, v1.AppArmorProfileTypeRuntimeDefault, v1.AppArmorProfileTypeUnconfined)
	}
	if p.LocalhostProfile == nil {
		return one(field.Required(name, "must be set where type is Localhost"))
	}
	errs := required(name, *p.LocalhostProfile)
	if strings.TrimSpace(*p.LocalhostProfile) != *p.LocalhostProfile {
		errs = append(errs, field.Invalid(name, *p.LocalhostProfile, "must not begin or end with white space"))
	}
	if len(*p.LocalhostProfile) > longest {
		errs = append(errs, field.TooLong(name, *p.LocalhostProfile, longest))
	}
	return errs
}

// profile is a seccomp or AppArmor profile as a field has it, for comparison
// with the annotation that was there before the field.
type profile struct {
	kind  string
	local *string
}

// matches reports which part of the profile is not what an annotation says: "",
// "type" or "localhostProfile". The annotation has names for runtimeDefault.
func (p profile) differs(annotation string, runtimeDefault ...string) string {
	file, local := strings.CutPrefix(annotation, "localhost/")
	switch p.kind {
	case "Unconfined":
		if annotation != "unconfined" {
			return "type"
		}
	case "RuntimeDefault":
		if !slices.Contains(runtimeDefault, annotation) {
			return "type"
		}
	case "Localhost":
		switch {
		case !local:
			return "type"
		case p.local == nil || *p.local != file:
			return "localhostProfile"
		}
	}
	return ""
}

// seccompAnnotations compares old annotations with the fields that took their
// place, where a pod has both.
func seccompAnnotations(meta *metav1.ObjectMeta, s *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	compare := func(key string, p *v1.SeccompProfile, at *field.Path) {
		annotation, has := meta.Annotations[key]
		if p == nil || !has {
			return
		}
		child := profile{string(p.Type), p.LocalhostProfile}.differs(annotation, "runtime/default", "docker/default")
		if child != "" {
			errs = append(errs, field.Forbidden(at.Child("securityContext", "seccompProfile", child),
				"must be the same as in the annotation "+key))
		}
	}
	if s.SecurityContext != nil {
		compare(v1.SeccompPodAnnotationKey, s.SecurityContext.SeccompProfile, path)
	}
	for at, c := range everyContainer(s, path) {
		if c.SecurityContext != nil {
			compare(v1.SeccompContainerAnnotationKeyPrefix+c.Name, c.SecurityContext.SeccompProfile, at)
		}
	}
	return errs
}

// appArmorAnnotations does the same for AppArmor, whose profile on the pod holds
// for the containers that have none.
func appArmorAnnotations(meta *metav1.ObjectMeta, s *v1.PodSpec, path *field.Path) field.ErrorList {
	if isWindows(s) {
		return nil
	}
	var errs field.ErrorList
	for at, c := range everyContainer(s, path) {
		var p *v1.AppArmorProfile
		switch {
		case c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil:
			p = c.SecurityContext.AppArmorProfile
		case s.SecurityContext != nil:
			p = s.SecurityContext.AppArmorProfile
		}
		key := v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + c.Name
		annotation, has := meta.Annotations[key]
		if p == nil || !has {
			continue
		}
		if child := (profile{string(p.Type), p.LocalhostProfile}).differs(annotation, "runtime/default"); child != "" {
			errs = append(errs, field.Forbidden(at.Child("securityContext", "appArmorProfile", child),
				"must be the same as in the annotation "+key))
		}
	}
	return errs
}

const longestSysctl = 253

// sysctlName is parts of small letters, digits, '-' and '_' with dots or slashes
// between.
var sysctlName = regexp.MustCompile(`^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$`)

func sysctls(s *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, sysctl := range s.SecurityContext.Sysctls {
		at := path.Index(i).Child("name")
		switch {
		case sysctl.Name == "":
			errs = append(errs, required(at, sysctl.Name)...)
		case len(sysctl.Name) > longestSysctl || !sysctlName.MatchString(sysctl.Name):
			errs = append(errs, field.Invalid(at, sysctl.Name, "must be the name of a sysctl, such as net.core.somaxconn, of no more than 253 characters"))
		case seen[sysctl.Name]:
			errs = append(errs, field.Duplicate(at, sysctl.Name))
		}
		seen[sysctl.Name] = true
		switch namespace := sysctlNamespace(sysctl.Name); {
		case s.HostNetwork && namespace == "net":
			errs = append(errs, field.Invalid(at, sysctl.Name, "must not be set where hostNetwork is true: it is the host's"))
		case s.HostIPC && namespace == "ipc":
			errs = append(errs, field.Invalid(at, sysctl.Name, "must not be set where hostIPC is true: it is the host's"))
		}
	}
	return errs
}

// ipcSysctls are those of the namespace besides fs.mqueue.
var ipcSysctls = []string{
	"kernel.sem", "kernel.shm", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
	"kernel.msg", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni",
}

// sysctlNamespace is net, ipc or "" for another. A name may have slashes for the
// dots; then the dots stand for slashes.
func sysctlNamespace(name string) string {
	if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '/' {
		name = strings.NewReplacer(".", "/", "/", ".").Replace(name)
	}
	name, _, _ = strings.Cut(name, "*")
	switch {
	case strings.HasPrefix(name, "net."):
		return "net"
	case strings.HasPrefix(name, "fs.mqueue."), slices.Contains(ipcSysctls, name):
		return "ipc"
	}
	return ""
}
