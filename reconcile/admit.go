package reconcile

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
)

// Ledger is which pod holds which port of the host.
type Ledger struct {
	claims map[portKey][]portClaim
	of     map[pod.Key][]portKey
}

// NewLedger returns a ledger in which every port is free.
func NewLedger() *Ledger {
	return &Ledger{claims: make(map[portKey][]portClaim), of: make(map[pod.Key][]portKey)}
}

type portKey struct {
	protocol v1.Protocol
	port     int32
}

type portClaim struct {
	hostIP string // "" is every address
	holder pod.Key
}

// Admit gives the pod the host ports that it asks for, or says who has them.
// What the pod's own key holds is no obstacle: a pod that is being replaced
// gives its ports to its successor. A refused pod holds nothing new.
func (l *Ledger) Admit(p *pod.Pod) (Waiting, bool) {
	key := p.Key()
	for _, port := range hostPorts(p.Object) {
		for _, c := range l.claims[portKey{port.Protocol, port.HostPort}] {
			if c.holder != key && overlap(c.hostIP, port.HostIP) {
				return Waiting{NodePorts, fmt.Sprintf("host port %s is in use by pod %s", portName(port), c.holder)}, false
			}
		}
	}
	l.Release(key)
	l.Hold(p)
	return Waiting{}, true
}

// Hold notes ports that a pod has in fact, whoever else asks for them.
func (l *Ledger) Hold(p *pod.Pod) {
	for _, port := range hostPorts(p.Object) {
		at, claim := portKey{port.Protocol, port.HostPort}, portClaim{anyAddress(port.HostIP), p.Key()}
		if !slices.Contains(l.claims[at], claim) {
			l.claims[at] = append(l.claims[at], claim)
			l.of[p.Key()] = append(l.of[p.Key()], at)
		}
	}
}

// Release takes all ports of a key back, and reports whether it had any.
func (l *Ledger) Release(key pod.Key) bool {
	held := l.of[key]
	for _, at := range held {
		l.claims[at] = slices.DeleteFunc(l.claims[at], func(c portClaim) bool { return c.holder == key })
		if len(l.claims[at]) == 0 {
			delete(l.claims, at)
		}
	}
	delete(l.of, key)
	return len(held) > 0
}

// hostPorts returns the ports of the host that a pod takes; those of a pod in
// the host's network are defaulted to its container ports.
func hostPorts(p *v1.Pod) []v1.ContainerPort {
	var ports []v1.ContainerPort
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

func anyAddress(ip string) string {
	if ip == "0.0.0.0" || ip == "::" {
		return ""
	}
	return ip
}

func overlap(a, b string) bool {
	a, b = anyAddress(a), anyAddress(b)
	return a == "" || b == "" || a == b
}

func portName(p v1.ContainerPort) string {
	if ip := anyAddress(p.HostIP); ip != "" {
		return fmt.Sprintf("%s:%d/%s", ip, p.HostPort, p.Protocol)
	}
	return fmt.Sprintf("%d/%s", p.HostPort, p.Protocol)
}
