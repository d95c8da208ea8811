package reconcile

import (
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// Where the node says how names are resolved.
const (
	etcResolvConf = "/etc/resolv.conf"
	// realResolvConf is where systemd-resolved writes the resolvers that its
	// loopback one forwards to.
	realResolvConf = "/run/systemd/resolve/resolv.conf"
)

// What a resolver of libc takes from resolv.conf. An overlong domain makes some
// of them abort.
const (
	maxNameservers   = 3
	maxSearches      = 32
	maxSearchLine    = 2048 // of all together, with the spaces between
	maxSearchDomain  = 253
	clusterDNSOption = "ndots:5"
)

// ClusterDNS is the resolver of a cluster that pods with the policy ClusterFirst
// ask; without servers there is none.
type ClusterDNS struct {
	Servers []string
	// Domain is what the names of pods and Services end in; "" is nothing.
	Domain string
}

// parseResolvConf reads a resolv.conf as the C library does: the last search (or
// domain) line counts, options add up, the last of one name wins.
func parseResolvConf(text string) runtime.DNS {
	var dns runtime.DNS
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			// An address with a zone means an interface, and a pod has others.
			if addr, err := netip.ParseAddr(fields[1]); err == nil && addr.Zone() == "" {
				dns.Servers = append(dns.Servers, fields[1])
			}
		case "search":
			dns.Searches = domains(fields[1:])
		case "domain":
			dns.Searches = domains(fields[1:2])
		case "options":
			dns.Options = mergeOptions(dns.Options, fields[1:])
		}
	}
	return dns
}

// domains drops the final dot, so that a domain counts once in either spelling.
func domains(list []string) []string {
	var out []string
	for _, d := range list {
		if d = strings.TrimSuffix(d, "."); d != "" {
			out = append(out, d)
		}
	}
	return out
}

// nodeDNS chooses what the node's files say for a pod with a network of its own:
// it has another loopback, so a resolver there is replaced by the ones behind it.
// own tells that it is /etc/resolv.conf, where no other is of more use.
func nodeDNS(etc, behind runtime.DNS) (dns runtime.DNS, own bool) {
	pick := func(dns runtime.DNS) runtime.DNS {
		dns.Servers = slices.DeleteFunc(slices.Clone(dns.Servers), isLoopback)
		return dns
	}
	if !slices.ContainsFunc(etc.Servers, reachable) && slices.ContainsFunc(behind.Servers, reachable) && len(etc.Servers) > 0 {
		return pick(behind), false
	}
	return pick(etc), true
}

func reachable(server string) bool { return !isLoopback(server) }

func isLoopback(server string) bool {
	addr, err := netip.ParseAddr(server)
	return err == nil && addr.IsLoopback()
}

// podDNS returns what a pod's resolv.conf says; node is what the node's says for
// it. The merge is the kubelet's: what dnsPolicy starts from first, then
// dnsConfig, whose options win over those of the same name.
func podDNS(p *v1.Pod, node runtime.DNS, cluster ClusterDNS) runtime.DNS {
	dns := node
	switch {
	case p.Spec.DNSPolicy == v1.DNSNone:
		dns = runtime.DNS{}
	case asksCluster(p) && len(cluster.Servers) > 0:
		dns = runtime.DNS{Servers: cluster.Servers, Searches: node.Searches, Options: []string{clusterDNSOption}}
		if cluster.Domain != "" {
			service := "svc." + cluster.Domain
			dns.Searches = slices.Concat([]string{p.Namespace + "." + service, service, cluster.Domain}, node.Searches)
		}
	}
	if c := p.Spec.DNSConfig; c != nil {
		dns.Servers = slices.Concat(dns.Servers, c.Nameservers)
		dns.Searches = slices.Concat(dns.Searches, c.Searches)
		var options []string
		for _, o := range c.Options {
			option := o.Name
			if o.Value != nil && *o.Value != "" {
				option += ":" + *o.Value
			}
			options = append(options, option)
		}
		dns.Options = mergeOptions(dns.Options, options)
	}
	dns.Servers = firstOf(unique(dns.Servers), maxNameservers)
	dns.Searches = fitSearches(unique(dns.Searches))
	return dns
}

// asksCluster reports whether the policy asks for the cluster's resolver. In the
// host's network only ClusterFirstWithHostNet does.
func asksCluster(p *v1.Pod) bool {
	return p.Spec.DNSPolicy == v1.DNSClusterFirstWithHostNet || p.Spec.DNSPolicy == v1.DNSClusterFirst && !p.Spec.HostNetwork
}

// fitSearches leaves out what resolvers do not take: whole domains, the last first.
func fitSearches(list []string) []string {
	list = slices.DeleteFunc(firstOf(list, maxSearches), func(d string) bool { return len(d) > maxSearchDomain })
	for len(strings.Join(list, " ")) > maxSearchLine {
		list = list[:len(list)-1]
	}
	return list
}

func firstOf(list []string, n int) []string { return list[:min(len(list), n)] }

// unique returns a list of its own with the first of equal items.
func unique(list []string) []string {
	var out []string
	for _, item := range list {
		if !slices.Contains(out, item) {
			out = append(out, item)
		}
	}
	return out
}

// mergeOptions lets an option take the place of an earlier one of its name.
func mergeOptions(list, more []string) []string {
	out := slices.Clone(list)
	for _, option := range more {
		name, _, _ := strings.Cut(option, ":")
		same := func(o string) bool { return o == name || strings.HasPrefix(o, name+":") }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i] = option
		} else {
			out = append(out, option)
		}
	}
	return out
}
