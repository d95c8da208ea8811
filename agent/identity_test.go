package agent_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// network is a container that shows what it knows of names, and lives on.
func network(name string, more ...string) string {
	return shell(name, "cat /etc/hosts; echo ---; cat /etc/resolv.conf; echo ---; uname -n; cat /etc/hostname; trap 'exit 0' TERM; sleep 3600 & wait", more...)
}

// names returns what network shows: hosts file, resolv.conf, the kernel's name
// and /etc/hostname.
func (w *world) names(key string) (hosts, resolv, kernel, file string) {
	w.t.Helper()
	id := w.ids()[key]
	var parts []string
	w.poll(key+" has looked", func() bool {
		parts = strings.Split(w.output(id), "---\n")
		return len(parts) == 3 && strings.Count(parts[2], "\n") == 2
	})
	kernel, file, _ = strings.Cut(parts[2], "\n")
	return parts[0], parts[1], kernel, strings.TrimSpace(file)
}

const managedHosts = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
	"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"

func TestHostsFile(t *testing.T) {
	w := newWorld(t)
	w.cfg.ClusterDNS.Domain = "d.test"
	const aliases = "\n# Entries added by HostAliases.\n192.0.2.9\tdb\tdb.example.com\n"
	const asked = "  hostAliases: [{ip: 192.0.2.9, hostnames: [db, db.example.com]}]\n"
	w.write("plain.yaml", manifest("{name: plain}", network("a"),
		sleeping("own", "volumeMounts: [{name: h, mountPath: /etc/hosts}]"))+
		"  volumes: [{name: h, hostPath: {path: "+w.path("hosts")+"}}]\n")
	writeFile(t, w.path("hosts"), "my own\n")
	w.write("sub.yaml", manifest("{name: sub}", network("a"))+"  hostname: web\n  subdomain: sub\n"+asked)
	w.write("fqdn.yaml", manifest("{name: fqdn}", network("a"))+"  hostname: web\n  subdomain: sub\n  setHostnameAsFQDN: true\n")
	w.write("over.yaml", manifest("{name: over}", network("a"))+"  hostname: web\n  subdomain: sub\n  hostnameOverride: db.example.com\n")
	w.write("host.yaml", manifest("{name: host}", network("a"))+"  hostNetwork: true\n"+asked)
	w.write("long.yaml", manifest("{name: long}", network("a"))+"  hostname: "+strings.Repeat("a", 60)+"\n  subdomain: sub\n  setHostnameAsFQDN: true\n")
	w.start()
	s := w.await("they run", running("plain"), running("sub"), running("fqdn"), running("over"), running("host"), blocked("long", "FailedCreatePodSandBox"))
	if message := find(s, "long").Blocked.Message; !strings.Contains(message, "too long: 64 characters") || w.ids()["long-node/POD/0"] != "" {
		t.Errorf("an FQDN that is too long: %q", message)
	}
	node, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ names, after, kernel string }{
		"plain": {"plain-node", "", "plain-node"},
		"sub":   {"web.sub.default.svc.d.test\tweb", aliases, "web"},
		"fqdn":  {"web.sub.default.svc.d.test\tweb", "", "web.sub.default.svc.d.test"},
		"over":  {"db.example.com", "", "db.example.com"},
	} {
		hosts, _, kernel, file := w.names(name + "-node/a/0")
		diff(t, name, hosts, managedHosts+find(s, name).Pod.Status.PodIP+"\t"+want.names+"\n"+want.after)
		if kernel != want.kernel || file != want.kernel {
			t.Errorf("%s is called %s, and %s in /etc/hostname, want %s", name, kernel, file, want.kernel)
		}
	}
	hosts, _, kernel, _ := w.names("host-node/a/0")
	diff(t, "host", hosts, "# Kubernetes-managed hosts file (host network).\n"+readFile(t, "/etc/hosts")+aliases)
	if kernel != node {
		t.Errorf("in the host's network it is called %s, want %s", kernel, node)
	}
	for _, m := range w.inspect(w.ids()["plain-node/own/0"]).Mounts {
		if m.Destination == "/etc/hosts" && m.Source != w.path("hosts") {
			t.Errorf("a container that mounts its own has %s", m.Source)
		}
	}

	// The address is another after the sandbox: so is the file.
	w.kill(w.ids()["sub-node/POD/0"])
	s = w.await("sub is whole again", runs("sub", "a", 1))
	hosts, _, _, _ = w.names("sub-node/a/1")
	diff(t, "sub in another sandbox", hosts, managedHosts+find(s, "sub").Pod.Status.PodIP+"\tweb.sub.default.svc.d.test\tweb\n"+aliases)
}

// C087: dnsPolicy and dnsConfig. The node's file stands for the machine's.
func TestResolvers(t *testing.T) {
	w := newWorld(t)
	writeFile(t, w.path("resolv.conf"), "nameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch node.test\noptions ndots:1 attempts:3\n")
	w.cfg.ResolvConf = w.path("resolv.conf")
	w.cfg.ClusterDNS.Servers, w.cfg.ClusterDNS.Domain = []string{"10.96.0.10"}, "d.test"
	const config = "  dnsConfig:\n    nameservers: [192.0.2.2, 192.0.2.3, 192.0.2.4]\n    searches: [a.test, node.test]\n    options: [{name: ndots, value: '2'}, {name: edns0}]\n"
	const nodes = "nameserver 192.0.2.1|nameserver 192.0.2.2|search node.test|options ndots:1 attempts:3"
	const cluster = "nameserver 10.96.0.10|search default.svc.d.test svc.d.test d.test node.test|options ndots:5"
	pods := map[string]struct{ spec, want string }{
		"default": {"  dnsPolicy: Default\n", nodes},
		"merged":  {"  dnsPolicy: Default\n" + config, "nameserver 192.0.2.1|nameserver 192.0.2.2|nameserver 192.0.2.3|search node.test a.test|options ndots:2 attempts:3 edns0"},
		"none":    {"  dnsPolicy: None\n" + config, "nameserver 192.0.2.2|nameserver 192.0.2.3|nameserver 192.0.2.4|search a.test node.test|options ndots:2 edns0"},
		// One option is that which resolvers have anyway: the engine cannot be told none.
		"bare":  {"  dnsPolicy: None\n  dnsConfig: {nameservers: [192.0.2.9]}\n", "nameserver 192.0.2.9|options ndots:1"},
		"first": {"", cluster},
		"host":  {"  hostNetwork: true\n", nodes},
		"both":  {"  hostNetwork: true\n  dnsPolicy: ClusterFirstWithHostNet\n", cluster},
	}
	var run []condition
	for name, p := range pods {
		w.write(name+".yaml", manifest("{name: "+name+"}", network("a"), network("b"))+p.spec)
		run = append(run, running(name))
	}
	w.start()
	w.await("they run", run...)
	for name, p := range pods {
		for _, container := range []string{"a", "b"} {
			_, resolv, _, _ := w.names(name + "-node/" + container + "/0")
			var lines []string
			for line := range strings.Lines(resolv) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
					lines = append(lines, line)
				}
			}
			slices.Sort(lines) // engines write them in orders of their own
			diff(t, name+"/"+container, lines, slices.Sorted(strings.SplitSeq(p.want, "|")))
		}
	}
}

// C087: without a cluster's resolver ClusterFirst is the node's, as Default is.
func TestResolversWithoutACluster(t *testing.T) {
	w := newWorld(t)
	writeFile(t, w.path("resolv.conf"), "nameserver 192.0.2.1\n")
	w.cfg.ResolvConf = w.path("resolv.conf")
	w.write("dns.yaml", manifest("{name: dns}", network("a"))+"  dnsPolicy: ClusterFirst\n")
	w.start()
	w.await("it runs", phase("dns", v1.PodRunning))
	if _, resolv, _, _ := w.names("dns-node/a/0"); !strings.Contains(resolv, "nameserver 192.0.2.1\n") || strings.Contains(resolv, "svc") {
		t.Errorf("resolv.conf is %q", resolv)
	}
}
