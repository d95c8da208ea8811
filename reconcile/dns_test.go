package reconcile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

func TestParseResolvConf(t *testing.T) {
	got := reconcile.ParseResolvConf(`# nameserver 192.0.2.99
nameserver 192.0.2.1
nameserver fe80::1%eth0
  nameserver	2001:db8::1
nameserver host
search old.test
search a.test. b.test .
options ndots:1 edns0
options ndots:3
`)
	want := runtime.DNS{Servers: []string{"192.0.2.1", "2001:db8::1"}, Searches: []string{"a.test", "b.test"}, Options: []string{"ndots:3", "edns0"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resolv.conf (-want +got):\n%s", diff)
	}
}

func TestNodeDNS(t *testing.T) {
	const behind = "# real\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\nnameserver 2001:db8::1\nsearch a.test\noptions edns0\n"
	real := runtime.DNS{Servers: []string{"192.0.2.1", "2001:db8::1"}, Searches: []string{"a.test"}, Options: []string{"edns0"}}
	for name, c := range map[string]struct {
		etc, behind string
		want        runtime.DNS
		own         bool
	}{
		"a resolver that pods can reach":       {"nameserver 192.0.2.9\n", behind, runtime.DNS{Servers: []string{"192.0.2.9"}}, true},
		"a local one beside another":           {"nameserver 127.0.0.1\nnameserver 192.0.2.9\n", behind, runtime.DNS{Servers: []string{"192.0.2.9"}}, true},
		"a local one, and what is behind it":   {"nameserver 127.0.0.53\nsearch x.test\n", behind, real, false},
		"no file":                              {"", behind, runtime.DNS{}, true},
		"a local one alone":                    {"nameserver ::1\n", "", runtime.DNS{}, true},
		"local ones alone":                     {"nameserver 127.0.0.1\n", "nameserver 127.0.0.2\n", runtime.DNS{}, true},
		"an address with a zone does not help": {"nameserver 127.0.0.1\n", "nameserver fe80::1%eth0\n", runtime.DNS{}, true},
		"nonsense is no server, nor fatal":     {"nameserver\nnameserver x\n;c\nfoo bar\nnameserver 127.0.0.1", "nameserver y", runtime.DNS{}, true},
	} {
		got, own := reconcile.NodeDNS(reconcile.ParseResolvConf(c.etc), reconcile.ParseResolvConf(c.behind))
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" || own != c.own {
			t.Errorf("%s: own %v, want %v (-want +got):\n%s", name, own, c.own, diff)
		}
	}
}

// C087: dnsPolicy and dnsConfig, with and without a cluster's resolver.
func TestPodDNS(t *testing.T) {
	node := runtime.DNS{Servers: []string{"192.0.2.1", "192.0.2.2"}, Searches: []string{"node.test"}, Options: []string{"ndots:1", "trust-ad"}}
	cluster := reconcile.ClusterDNS{Servers: []string{"10.96.0.10"}, Domain: "cluster.local"}
	inCluster := runtime.DNS{
		Servers: []string{"10.96.0.10"}, Searches: []string{"ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "node.test"}, Options: []string{"ndots:5"},
	}
	two := "2"
	config := &v1.PodDNSConfig{
		Nameservers: []string{"192.0.2.2", "192.0.2.3", "192.0.2.4"}, Searches: []string{"a.test", "node.test"},
		Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: &two}, {Name: "edns0"}},
	}
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("d%d.test", i))
	}
	long := strings.Repeat("a", 60) + strings.Repeat("."+strings.Repeat("b", 60), 3) // 243
	var lines []string
	for i := range 9 {
		lines = append(lines, fmt.Sprintf("%d%s", i, long))
	}
	for name, c := range map[string]struct {
		spec    v1.PodSpec
		cluster reconcile.ClusterDNS
		want    runtime.DNS
	}{
		"Default is the node's":              {v1.PodSpec{DNSPolicy: v1.DNSDefault}, cluster, node},
		"ClusterFirst without one is too":    {v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, reconcile.ClusterDNS{Domain: "cluster.local"}, node},
		"ClusterFirst":                       {v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, cluster, inCluster},
		"ClusterFirst in the host's network": {v1.PodSpec{DNSPolicy: v1.DNSClusterFirst, HostNetwork: true}, cluster, node},
		"ClusterFirstWithHostNet":            {v1.PodSpec{DNSPolicy: v1.DNSClusterFirstWithHostNet, HostNetwork: true}, cluster, inCluster},
		"a cluster without a domain":         {v1.PodSpec{DNSPolicy: v1.DNSClusterFirst}, reconcile.ClusterDNS{Servers: []string{"10.96.0.10"}}, runtime.DNS{Servers: []string{"10.96.0.10"}, Searches: []string{"node.test"}, Options: []string{"ndots:5"}}},
		"None is dnsConfig alone": {v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: config}, cluster, runtime.DNS{
			Servers: []string{"192.0.2.2", "192.0.2.3", "192.0.2.4"}, Searches: []string{"a.test", "node.test"}, Options: []string{"ndots:2", "edns0"},
		}},
		"dnsConfig comes after the node's, its options win, three servers count": {v1.PodSpec{DNSPolicy: v1.DNSDefault, DNSConfig: config}, cluster, runtime.DNS{
			Servers: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, Searches: []string{"node.test", "a.test"}, Options: []string{"ndots:2", "trust-ad", "edns0"},
		}},
		"32 search domains count": {v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{Searches: many}}, cluster, runtime.DNS{Searches: many[:32]}},
		"and 2048 characters":     {v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{Searches: lines}}, cluster, runtime.DNS{Searches: lines[:8]}},
		"a domain too long for a resolver is left out": {v1.PodSpec{DNSPolicy: v1.DNSNone, DNSConfig: &v1.PodDNSConfig{Searches: []string{strings.Repeat("a", 254), "b"}}}, cluster, runtime.DNS{
			Searches: []string{"b"},
		}},
	} {
		if diff := cmp.Diff(c.want, reconcile.PodDNS(podOf("p", c.spec), node, c.cluster)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"192.0.2.1", "192.0.2.2"}, node.Servers); diff != "" {
		t.Errorf("what the node says was changed: %s", diff)
	}
}
