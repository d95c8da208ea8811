package reconcile

import (
	"bytes"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

const etcHosts = "/etc/hosts"

// What the kernel takes for a host name, without and with the terminating zero.
const (
	maxHostname = 63
	maxFQDN     = 64
)

// hostname returns the name of a pod's host, cut as the kubelet cuts it, and the
// domain that it has where the pod names a subdomain.
func hostname(p *v1.Pod, clusterDomain string) (name, domain string) {
	name = p.Name
	switch {
	case p.Spec.HostnameOverride != nil:
		return cutHostname(*p.Spec.HostnameOverride), ""
	case p.Spec.Hostname != "":
		name = p.Spec.Hostname
	}
	if p.Spec.Subdomain != "" {
		domain = p.Spec.Subdomain + "." + p.Namespace + ".svc"
		if clusterDomain != "" {
			domain += "." + clusterDomain
		}
	}
	return cutHostname(name), domain
}

func cutHostname(name string) string {
	if len(name) <= maxHostname {
		return name
	}
	return strings.TrimRight(name[:maxHostname], "-.")
}

// kernelHostname returns the name that uname tells the pod's processes. It fails
// where setHostnameAsFQDN asks for one that the kernel does not take.
func kernelHostname(p *v1.Pod, clusterDomain string) (string, error) {
	name, domain := hostname(p, clusterDomain)
	if p.Spec.SetHostnameAsFQDN == nil || !*p.Spec.SetHostnameAsFQDN || domain == "" {
		return name, nil
	}
	fqdn := name + "." + domain
	if len(fqdn) > maxFQDN {
		return "", fmt.Errorf("the FQDN %s, which setHostnameAsFQDN asks for, is too long: %d characters is the most, it has %d", fqdn, maxFQDN, len(fqdn))
	}
	return fqdn, nil
}

// hostsFile returns a pod's /etc/hosts, to the byte as the kubelet writes it. A
// pod in the host's network gets the node's file.
func hostsFile(p *v1.Pod, clusterDomain string, ips []string, node string) []byte {
	var b bytes.Buffer
	if p.Spec.HostNetwork {
		b.WriteString("# Kubernetes-managed hosts file (host network).\n")
		b.WriteString(node)
	} else {
		b.WriteString("# Kubernetes-managed hosts file.\n" +
			"127.0.0.1\tlocalhost\n" +
			"::1\tlocalhost ip6-localhost ip6-loopback\n" +
			"fe00::0\tip6-localnet\n" +
			"fe00::0\tip6-mcastprefix\n" +
			"fe00::1\tip6-allnodes\n" +
			"fe00::2\tip6-allrouters\n")
		names, domain := hostname(p, clusterDomain)
		if domain != "" {
			names = names + "." + domain + "\t" + names
		}
		for _, ip := range ips {
			fmt.Fprintf(&b, "%s\t%s\n", ip, names)
		}
	}
	if len(p.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
		for _, alias := range p.Spec.HostAliases {
			fmt.Fprintf(&b, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
		}
	}
	return b.Bytes()
}

// managesHosts reports whether a container gets the pod's /etc/hosts: one that
// mounts its own there does not.
func managesHosts(c *v1.Container) bool {
	for _, m := range c.VolumeMounts {
		if m.MountPath == etcHosts {
			return false
		}
	}
	return true
}
