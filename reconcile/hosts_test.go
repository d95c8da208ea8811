package reconcile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/reconcile"
)

func podOf(name string, spec v1.PodSpec) *v1.Pod {
	p := &v1.Pod{Spec: spec}
	p.Namespace, p.Name = "ns", name
	return p
}

// C088: host names are cut as the kubelet cuts them.
func TestHostname(t *testing.T) {
	long := strings.Repeat("a", 62) + "-bbbbbbb"
	override := "db.example.com"
	for name, c := range map[string]struct {
		name         string
		spec         v1.PodSpec
		want, domain string
	}{
		"the 63rd character is a dash":        {long, v1.PodSpec{}, strings.Repeat("a", 62), ""},
		"62 characters":                       {long[:62], v1.PodSpec{}, long[:62], ""},
		"dots stay":                           {"a.b.c", v1.PodSpec{}, "a.b.c", ""},
		"spec.hostname wins":                  {long, v1.PodSpec{Hostname: "web"}, "web", ""},
		"a subdomain gives it a domain":       {"p", v1.PodSpec{Subdomain: "sub"}, "p", "sub.ns.svc.cluster.local"},
		"hostnameOverride wins, and has none": {"p", v1.PodSpec{Hostname: "web", Subdomain: "sub", HostnameOverride: &override}, "db.example.com", ""},
	} {
		got, domain := reconcile.Hostname(podOf(c.name, c.spec), "cluster.local")
		if got != c.want || domain != c.domain {
			t.Errorf("%s: %q, %q, want %q, %q", name, got, domain, c.want, c.domain)
		}
	}
}

func TestKernelHostname(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		name string
		spec v1.PodSpec
		want string // "": it cannot be had
	}{
		"the short one":                          {"p", v1.PodSpec{Subdomain: "sub"}, "p"},
		"the whole one, where it is asked for":   {"p", v1.PodSpec{Subdomain: "sub", SetHostnameAsFQDN: &yes}, "p.sub.ns.svc.d"},
		"asked for, and there is no domain":      {"p", v1.PodSpec{SetHostnameAsFQDN: &yes}, "p"},
		"64 characters are taken":                {strings.Repeat("a", 51), v1.PodSpec{Subdomain: "sub", SetHostnameAsFQDN: &yes}, strings.Repeat("a", 51) + ".sub.ns.svc.d"},
		"65 characters are not, and are not cut": {strings.Repeat("a", 52), v1.PodSpec{Subdomain: "sub", SetHostnameAsFQDN: &yes}, ""},
	} {
		got, err := reconcile.KernelHostname(podOf(c.name, c.spec), "d")
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestHostsFile(t *testing.T) {
	aliases := []v1.HostAlias{{IP: "192.0.2.9", Hostnames: []string{"db", "db.example.com"}}, {IP: "2001:db8::9", Hostnames: []string{"six"}}}
	const managed = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
	const added = "\n# Entries added by HostAliases.\n192.0.2.9\tdb\tdb.example.com\n2001:db8::9\tsix\n"
	for name, c := range map[string]struct {
		spec v1.PodSpec
		ips  []string
		want string
	}{
		"one address":         {v1.PodSpec{}, []string{"10.0.0.1"}, managed + "10.0.0.1\tp\n"},
		"one of each kind":    {v1.PodSpec{}, []string{"10.0.0.1", "fd00::1"}, managed + "10.0.0.1\tp\nfd00::1\tp\n"},
		"with a domain":       {v1.PodSpec{Hostname: "web", Subdomain: "sub"}, []string{"10.0.0.1"}, managed + "10.0.0.1\tweb.sub.ns.svc.d\tweb\n"},
		"with aliases":        {v1.PodSpec{HostAliases: aliases}, []string{"10.0.0.1"}, managed + "10.0.0.1\tp\n" + added},
		"the host's":          {v1.PodSpec{HostNetwork: true}, nil, "# Kubernetes-managed hosts file (host network).\n127.0.0.1 node\n"},
		"the host's and more": {v1.PodSpec{HostNetwork: true, HostAliases: aliases}, nil, "# Kubernetes-managed hosts file (host network).\n127.0.0.1 node\n" + added},
	} {
		got := reconcile.HostsFile(podOf("p", c.spec), "d", c.ips, "127.0.0.1 node\n")
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
