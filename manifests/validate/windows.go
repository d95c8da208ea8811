package validate

import (
	"fmt"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func isWindows(s *v1.PodSpec) bool { return s.OS != nil && s.OS.Name == v1.Windows }

// operatingSystem checks spec.os, and that nothing is set which belongs to the
// other one.
func operatingSystem(s *v1.PodSpec, path *field.Path) field.ErrorList {
	if s.OS == nil {
		return nil
	}
	switch s.OS.Name {
	case v1.Linux:
		return linuxOnly(s, path)
	case v1.Windows:
		return windowsOnly(s, path)
	case "":
		return required(path.Child("os", "name"), s.OS.Name)
	}
	return choice(path.Child("os"), s.OS.Name, v1.Linux, v1.Windows)
}

func linuxOnly(s *v1.PodSpec, path *field.Path) field.ErrorList {
	const why = "must not be set for a pod of Linux"
	var errs field.ErrorList
	if c := s.SecurityContext; c != nil {
		errs = forbiddenIf(c.WindowsOptions != nil, path.Child("securityContext", "windowsOptions"), why)
	}
	for at, c := range everyContainer(s, path) {
		if c.SecurityContext != nil {
			errs = append(errs, forbiddenIf(c.SecurityContext.WindowsOptions != nil,
				at.Child("securityContext", "windowsOptions"), why)...)
		}
	}
	return errs
}

func windowsOnly(s *v1.PodSpec, path *field.Path) field.ErrorList {
	errs := linuxFields(path, []setField{
		{"hostUsers", s.HostUsers != nil},
		{"hostPID", s.HostPID},
		{"hostIPC", s.HostIPC},
		{"shareProcessNamespace", s.ShareProcessNamespace != nil},
	})
	if c := s.SecurityContext; c != nil {
		errs = append(errs, linuxFields(path.Child("securityContext"), []setField{
			{"appArmorProfile", c.AppArmorProfile != nil},
			{"seLinuxOptions", c.SELinuxOptions != nil},
			{"seccompProfile", c.SeccompProfile != nil},
			{"fsGroup", c.FSGroup != nil},
			{"fsGroupChangePolicy", c.FSGroupChangePolicy != nil},
			{"sysctls", len(c.Sysctls) > 0},
			{"runAsUser", c.RunAsUser != nil},
			{"runAsGroup", c.RunAsGroup != nil},
			{"supplementalGroups", c.SupplementalGroups != nil},
			{"supplementalGroupsPolicy", c.SupplementalGroupsPolicy != nil},
			{"seLinuxChangePolicy", c.SELinuxChangePolicy != nil},
		})...)
	}
	for at, container := range everyContainer(s, path) {
		if c := container.SecurityContext; c != nil {
			errs = append(errs, linuxFields(at.Child("securityContext"), []setField{
				{"appArmorProfile", c.AppArmorProfile != nil},
				{"seLinuxOptions", c.SELinuxOptions != nil},
				{"seccompProfile", c.SeccompProfile != nil},
				{"capabilities", c.Capabilities != nil},
				{"readOnlyRootFilesystem", c.ReadOnlyRootFilesystem != nil},
				{"privileged", c.Privileged != nil},
				{"allowPrivilegeEscalation", c.AllowPrivilegeEscalation != nil},
				{"procMount", c.ProcMount != nil},
				{"runAsUser", c.RunAsUser != nil},
				{"runAsGroup", c.RunAsGroup != nil},
			})...)
		}
	}
	return errs
}

type setField struct {
	name string
	set  bool
}

// linuxFields refuses those that are set.
func linuxFields(path *field.Path, fields []setField) field.ErrorList {
	var errs field.ErrorList
	for _, f := range fields {
		errs = append(errs, forbiddenIf(f.set, path.Child(f.name), "must not be set for a pod of Windows")...)
	}
	return errs
}

// hostProcess: either all containers are processes of the host or none, and a
// container does not contradict its pod.
func hostProcess(s *v1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var ofPod *bool
	if s.SecurityContext != nil && s.SecurityContext.WindowsOptions != nil {
		ofPod = s.SecurityContext.WindowsOptions.HostProcess
	}
	some, all := false, true
	for at, c := range everyContainer(s, path) {
		is := ofPod
		if c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil && c.SecurityContext.WindowsOptions.HostProcess != nil {
			is = c.SecurityContext.WindowsOptions.HostProcess
			if ofPod != nil && *is != *ofPod {
				errs = append(errs, field.Invalid(at.Child("securityContext", "windowsOptions", "hostProcess"), *is,
					"must be the same as that of the pod"))
			}
		}
		host := is != nil && *is
		some, all = some || host, all && host
	}
	if some && !all {
		errs = append(errs, field.Invalid(path, "", "must have hostProcess for all containers or for none"))
	}
	if some && !s.HostNetwork {
		errs = append(errs, field.Invalid(path.Child("hostNetwork"), false, "must be true for containers that are processes of the host"))
	}
	return errs
}

func windowsOptions(o *v1.WindowsSecurityContextOptions, path *field.Path) field.ErrorList {
	const longestSpec = 64 << 10
	if o == nil {
		return nil
	}
	var errs field.ErrorList
	if name := o.GMSACredentialSpecName; name != nil {
		errs = append(errs, malformed(path.Child("gmsaCredentialSpecName"), *name, validation.IsDNS1123Subdomain(*name))...)
	}
	if spec := o.GMSACredentialSpec; spec != nil && (*spec == "" || len(*spec) > longestSpec) {
		errs = append(errs, field.Invalid(path.Child("gmsaCredentialSpec"), fmt.Sprintf("%d bytes", len(*spec)),
			"must not be empty or longer than 64 KiB"))
	}
	if o.RunAsUserName != nil {
		errs = append(errs, malformed(path.Child("runAsUserName"), *o.RunAsUserName, windowsUser(*o.RunAsUserName))...)
	}
	return errs
}

const (
	longestWindowsDomain = 255
	longestWindowsUser   = 104
)

var (
	controls     = regexp.MustCompile(`[[:cntrl:]]`)
	netBIOSName  = regexp.MustCompile(`^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$`)
	windowsHosts = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`)
)

// windowsUser says what is wrong with a name of the form user or domain\user.
func windowsUser(name string) []string {
	switch {
	case name == "":
		return []string{"must not be empty"}
	case controls.MatchString(name):
		return []string{"must not have control characters"}
	case strings.Count(name, `\`) > 1:
		return []string{`must not have more than one '\'`}
	}
	var wrong []string
	domain, user, hasDomain := strings.Cut(name, `\`)
	if !hasDomain {
		domain, user = "", name
	}
	if len(domain) > longestWindowsDomain {
		wrong = append(wrong, "must have a domain of no more than 255 characters")
	}
	if hasDomain && !netBIOSName.MatchString(domain) && !windowsHosts.MatchString(domain) {
		wrong = append(wrong, "must have a domain of NetBIOS or DNS")
	}
	if user == "" || len(user) > longestWindowsUser {
		wrong = append(wrong, "must have a user of 1 to 104 characters")
	}
	if user != "" && strings.Trim(user, ". ") == "" {
		wrong = append(wrong, "must have a user of more than dots and spaces")
	}
	if strings.ContainsAny(user, `"/\:;|=,+*?<>@[]`) {
		wrong = append(wrong, `must have a user without any of "/\:;|=,+*?<>@[]`)
	}
	return wrong
}
