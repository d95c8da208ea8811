package validate

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ports has the rules within one container.
func ports(list []v1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, port := range list {
		at := path.Index(i)
		if port.Name != "" {
			wrong := malformed(at.Child("name"), port.Name, validation.IsValidPortName(port.Name))
			if len(wrong) == 0 && names[port.Name] {
				wrong = one(field.Duplicate(at.Child("name"), port.Name))
			}
			names[port.Name] = true
			errs = append(errs, wrong...)
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), "must be set"))
		} else {
			errs = append(errs, portNumber(at.Child("containerPort"), port.ContainerPort)...)
		}
		if port.HostPort != 0 {
			errs = append(errs, portNumber(at.Child("hostPort"), port.HostPort)...)
		}
		errs = append(errs, requiredChoice(at.Child("protocol"), port.Protocol,
			v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP)...)
	}
	return errs
}

func portNumber(path *field.Path, number int32) field.ErrorList {
	return malformed(path, number, validation.IsValidPortNum(int(number)))
}

// uniqueHostPorts reports host ports that are in taken, and adds to it. The same
// number may be used once for each protocol and host address.
func uniqueHostPorts(list []v1.ContainerPort, taken map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, port := range list {
		if port.HostPort == 0 {
			continue
		}
		key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
		if taken[key] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("hostPort"), key))
		}
		taken[key] = true
	}
	return errs
}

func network(s *v1.PodSpec, path *field.Path) field.ErrorList {
	return slices.Concat(
		hostNetworkPorts(s, path.Child("containers")),
		dns(s, path),
		hostAliases(s.HostAliases, path.Child("hostAliases")),
		optional(path.Child("hostname"), s.Hostname, validation.IsDNS1123Label),
		optional(path.Child("subdomain"), s.Subdomain, validation.IsDNS1123Label),
		hostnameOverride(s, path.Child("hostnameOverride")),
	)
}

// hostNetworkPorts reports ports of the host's network under another number than
// they have: nothing translates them there.
func hostNetworkPorts(s *v1.PodSpec, path *field.Path) field.ErrorList {
	if !s.HostNetwork {
		return nil
	}
	var errs field.ErrorList
	for i := range s.Containers {
		for j, port := range s.Containers[i].Ports {
			if port.HostPort != port.ContainerPort {
				errs = append(errs, field.Invalid(path.Index(i).Child("ports").Index(j).Child("hostPort"), port.HostPort,
					"must be the same as containerPort where hostNetwork is true"))
			}
		}
	}
	return errs
}

// What a resolver of libc takes from resolv.conf.
const (
	mostNameservers     = 3
	mostSearchDomains   = 32
	longestSearchDomain = 2048 // of all together, with the spaces between
)

func dns(s *v1.PodSpec, path *field.Path) field.ErrorList {
	errs := requiredChoice(path.Child("dnsPolicy"), s.DNSPolicy,
		v1.DNSClusterFirstWithHostNet, v1.DNSClusterFirst, v1.DNSDefault, v1.DNSNone)
	path = path.Child("dnsConfig")
	config := s.DNSConfig
	if s.DNSPolicy == v1.DNSNone {
		switch {
		case config == nil:
			return append(errs, field.Required(path, "must be set where dnsPolicy is None"))
		case len(config.Nameservers) == 0:
			return append(errs, field.Required(path.Child("nameservers"), "must have one at least where dnsPolicy is None"))
		}
	}
	if config == nil {
		return errs
	}
	if n := len(config.Nameservers); n > mostNameservers {
		errs = append(errs, field.Invalid(path.Child("nameservers"), config.Nameservers,
			fmt.Sprintf("must not have more than %d, has %d", mostNameservers, n)))
	}
	for i, server := range config.Nameservers {
		errs = append(errs, address(path.Child("nameservers").Index(i), server)...)
	}
	errs = append(errs, searchDomains(config.Searches, path.Child("searches"))...)
	for i, option := range config.Options {
		errs = append(errs, required(path.Child("options").Index(i), option.Name)...)
	}
	return errs
}

func searchDomains(list []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(list) > mostSearchDomains {
		errs = append(errs, field.Invalid(path, list,
			fmt.Sprintf("must not have more than %d, has %d", mostSearchDomains, len(list))))
	}
	if n := len(strings.Join(list, " ")); n > longestSearchDomain {
		errs = append(errs, field.Invalid(path, list,
			fmt.Sprintf("must not be longer than %d characters together with the spaces between, is %d", longestSearchDomain, n)))
	}
	for i, domain := range list {
		if domain == "." {
			continue
		}
		domain = strings.TrimSuffix(domain, ".")
		errs = append(errs, malformed(path.Index(i), domain, validation.IsDNS1123SubdomainWithUnderscore(domain))...)
	}
	return errs
}

// address reports what is not an IP address in its usual form: those that some
// parsers read as something else, such as 010.0.0.1, are refused too.
func address(path *field.Path, value string) field.ErrorList {
	return validation.IsValidIPForLegacyField(path, value, true, nil)
}

func hostAliases(list []v1.HostAlias, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, alias := range list {
		errs = append(errs, address(path.Index(i).Child("ip"), alias.IP)...)
		for j, name := range alias.Hostnames {
			errs = append(errs, malformed(path.Index(i).Child("hostnames").Index(j), name,
				validation.IsDNS1123Subdomain(name))...)
		}
	}
	return errs
}

// longestHostname is what the kernel's sethostname takes.
const longestHostname = 64

func hostnameOverride(s *v1.PodSpec, path *field.Path) field.ErrorList {
	name := s.HostnameOverride
	if name == nil {
		return nil
	}
	errs := slices.Concat(
		forbiddenIf(s.SetHostnameAsFQDN != nil && *s.SetHostnameAsFQDN, path, "must not be set together with setHostnameAsFQDN"),
		forbiddenIf(s.HostNetwork, path, "must not be set where hostNetwork is true"),
	)
	if len(*name) > longestHostname {
		errs = append(errs, field.TooLong(path, *name, longestHostname))
	}
	return append(errs, malformed(path, *name, validation.IsDNS1123Subdomain(*name))...)
}
