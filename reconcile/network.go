package reconcile

import (
	"errors"
	"fmt"
	"io/fs"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// dns returns what the pod's resolv.conf is to say; nil leaves it to the engine,
// whose choice is the node's file.
func (j job) dns() (*runtime.DNS, error) {
	p := j.pod.Object
	node, ownFile, err := j.nodeDNS()
	if err != nil {
		return nil, err
	}
	asked := p.Spec.DNSPolicy == v1.DNSNone || p.Spec.DNSConfig != nil || asksCluster(p) && len(j.node.ClusterDNS.Servers) > 0
	if !asked && ownFile {
		return nil, nil
	}
	dns := podDNS(p, node, j.node.ClusterDNS)
	return &dns, nil
}

// nodeDNS returns what the node's files say for the pod, and whether that is its
// /etc/resolv.conf. They are read each time: DHCP rewrites them.
func (j job) nodeDNS() (dns runtime.DNS, ownFile bool, err error) {
	if j.node.ResolvConf != "" {
		text, err := j.deps.NodeFile(j.node.ResolvConf)
		return parseResolvConf(string(text)), false, err
	}
	etc, err := j.optionalFile(etcResolvConf)
	if err != nil {
		return dns, false, err
	}
	file := parseResolvConf(etc)
	if j.pod.Object.Spec.HostNetwork {
		return file, true, nil // the host's loopback is its own
	}
	behind, err := j.optionalFile(realResolvConf)
	if err != nil {
		return dns, false, err
	}
	dns, ownFile = nodeDNS(file, parseResolvConf(behind))
	if len(dns.Servers) == 0 && len(file.Servers) > 0 {
		j.deps.Log.Warn("resolv.conf names only loopback resolvers, and there is no other to hand to the pod: it gets the engine's fallback",
			"pod", j.pod.Key(), "file", etcResolvConf)
	}
	return dns, ownFile, nil
}

func (j job) optionalFile(path string) (string, error) {
	text, err := j.deps.NodeFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// hostsMount writes the pod's hosts file and returns how a container sees it.
func (j job) hostsMount(about surroundings) (runtime.Mount, error) {
	var node string
	if j.pod.Object.Spec.HostNetwork {
		var err error
		if node, err = j.optionalFile(etcHosts); err != nil {
			return runtime.Mount{}, err
		}
	}
	j.mounting.Lock()
	defer j.mounting.Unlock()
	path, err := j.deps.Volumes.Hosts(about.uid, hostsFile(j.pod.Object, j.node.ClusterDNS.Domain, about.ips(), node))
	if err != nil {
		return runtime.Mount{}, fmt.Errorf("write hosts file: %w", err)
	}
	return runtime.Mount{HostPath: path, ContainerPath: etcHosts}, nil
}
