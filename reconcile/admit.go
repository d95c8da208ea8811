package reconcile

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
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
	// former: of a version that is on its way out.
	former bool
}

// Admit gives the pod the host ports that it asks for, or says who has them.
// What the pod's own key holds is no obstacle: a pod that is being replaced
// gives its ports to its successor. Nor is what another pod gives up with the
// version that it asks for, as asking has it, where that one can be admitted
// too, and so on round about: all of them are admitted, and returned. A refused
// pod holds nothing new.
func (l *Ledger) Admit(p *pod.Pod, asking map[pod.Key]*pod.Pod) (admitted []*pod.Pod, refusal Waiting) {
	admitted, refusal = l.together(p, asking)
	l.take(admitted)
	return admitted, refusal
}

// take gives pods that are admitted together their ports.
func (l *Ledger) take(admitted []*pod.Pod) {
	for _, q := range admitted {
		l.retire(q.Key())
	}
	for _, q := range admitted {
		l.Hold(q)
	}
}

// together returns the pods that have to be admitted with p, p first: the fewest
// whose new ports are free once each has given up its old ones.
func (l *Ledger) together(p *pod.Pod, asking map[pod.Key]*pod.Pod) ([]*pod.Pod, Waiting) {
	group := []*pod.Pod{p}
	refusal := Waiting{}
	for i := 0; i < len(group); i++ {
		for _, port := range hostPorts(group[i].Object) {
			for _, holder := range l.obstacles(group[i].Key(), port, false) {
				if refusal == (Waiting{}) {
					refusal = Waiting{NodePorts, fmt.Sprintf("host port %s is in use by pod %s", portName(port), holder)}
				}
				in := func(q *pod.Pod) bool { return q.Key() == holder }
				switch next := asking[holder]; {
				case slices.ContainsFunc(group, in):
				case next == nil:
					return nil, refusal
				default:
					group = append(group, next)
				}
			}
		}
	}
	for i, q := range group {
		for _, o := range group[:i] {
			if clash(q, o) {
				return nil, refusal
			}
		}
	}
	return group, Waiting{}
}

// obstacles returns the other pods that have a port, with the version admitted
// or with a former one.
func (l *Ledger) obstacles(key pod.Key, port v1.ContainerPort, former bool) []pod.Key {
	var holders []pod.Key
	for _, c := range l.claims[portKey{port.Protocol, port.HostPort}] {
		if c.holder != key && c.former == former && overlap(c.hostIP, port.HostIP) {
			holders = append(holders, c.holder)
		}
	}
	return holders
}

func clash(p, q *pod.Pod) bool {
	return slices.ContainsFunc(hostPorts(p.Object), func(a v1.ContainerPort) bool {
		return slices.ContainsFunc(hostPorts(q.Object), func(b v1.ContainerPort) bool {
			return a.Protocol == b.Protocol && a.HostPort == b.HostPort && overlap(a.HostIP, b.HostIP)
		})
	})
}

// Awaits says which port of an admitted pod a former version of another still
// has; zero where all are free.
func (l *Ledger) Awaits(p *pod.Pod) Waiting {
	for _, port := range hostPorts(p.Object) {
		for _, holder := range l.obstacles(p.Key(), port, true) {
			return Waiting{ContainerCreating, fmt.Sprintf("waits until pod %s has given up host port %s", holder, portName(port))}
		}
	}
	return Waiting{}
}

// Hold notes ports that a pod has in fact, whoever else asks for them. It returns
// the others that have one of them.
func (l *Ledger) Hold(p *pod.Pod) (rivals []pod.Key) {
	for _, port := range hostPorts(p.Object) {
		rivals = append(rivals, l.obstacles(p.Key(), port, false)...)
		l.note(p.Key(), portKey{port.Protocol, port.HostPort}, port.HostIP)
	}
	return rivals
}

// HoldListed notes ports that the engine lists of a pod of which nothing else says
// that it has them.
func (l *Ledger) HoldListed(key pod.Key, ports []runtime.Port) {
	for _, port := range ports {
		l.note(key, portKey{port.Protocol, port.HostPort}, port.HostIP)
	}
}

func (l *Ledger) note(key pod.Key, at portKey, hostIP string) {
	claim := portClaim{anyAddress(hostIP), key, false}
	if !slices.Contains(l.claims[at], claim) {
		l.claims[at] = append(l.claims[at], claim)
		l.of[key] = append(l.of[key], at)
	}
}

// retire turns what a key holds into what its former version has.
func (l *Ledger) retire(key pod.Key) {
	for _, at := range l.of[key] {
		for i := range l.claims[at] {
			if l.claims[at][i].holder == key {
				l.claims[at][i].former = true
			}
		}
	}
}

// Clear takes back what former versions of a key had, and reports whether they
// had any.
func (l *Ledger) Clear(key pod.Key) bool {
	return l.drop(key, func(c portClaim) bool { return c.former })
}

// Release takes all ports of a key back, and reports whether it had any.
func (l *Ledger) Release(key pod.Key) bool {
	return l.drop(key, func(portClaim) bool { return true })
}

func (l *Ledger) drop(key pod.Key, which func(portClaim) bool) (had bool) {
	l.of[key] = slices.DeleteFunc(l.of[key], func(at portKey) bool {
		n := len(l.claims[at])
		l.claims[at] = slices.DeleteFunc(l.claims[at], func(c portClaim) bool { return c.holder == key && which(c) })
		had = had || len(l.claims[at]) < n
		if len(l.claims[at]) == 0 {
			delete(l.claims, at)
		}
		return !slices.ContainsFunc(l.claims[at], func(c portClaim) bool { return c.holder == key })
	})
	if len(l.of[key]) == 0 {
		delete(l.of, key)
	}
	return had
}

// hostPorts returns the ports of the host that a pod takes; those of a pod in
// the host's network are defaulted to its container ports.
func hostPorts(p *v1.Pod) []v1.ContainerPort {
	var ports []v1.ContainerPort
	for _, m := range members(p) {
		for _, port := range m.Ports {
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
