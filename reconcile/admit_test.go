package reconcile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
)

func tcp(port int32, ip string) v1.ContainerPort {
	return v1.ContainerPort{ContainerPort: 80, HostPort: port, Protocol: v1.ProtocolTCP, HostIP: ip}
}

// C080, C082, C033: who gets a host port.
func TestLedger(t *testing.T) {
	udp := tcp(53, "")
	udp.Protocol = v1.ProtocolUDP
	l := reconcile.NewLedger()
	admit := func(p *pod.Pod, want string) {
		t.Helper()
		admitted, w := l.Admit(p, nil)
		if w.Message != want || (len(admitted) == 1) != (want == "") {
			t.Errorf("%s: %q, want %q", p.Key(), w.Message, want)
		}
	}
	admit(portPod("dns", tcp(53, ""), udp), "")
	admit(portPod("other", tcp(53, "127.0.0.1")), "host port 127.0.0.1:53/TCP is in use by pod default/dns")
	admit(portPod("dns", tcp(53, "")), "") // its own ports are no obstacle
	admit(portPod("udp", udp), "")         // and what it gives up will be free
	if w := l.Awaits(portPod("udp", udp)); w.Message != "waits until pod default/dns has given up host port 53/UDP" {
		t.Errorf("udp awaits %q", w.Message)
	}
	if !l.Clear(pod.Key{Namespace: "default", Name: "dns"}) || l.Awaits(portPod("udp", udp)) != (reconcile.Waiting{}) {
		t.Errorf("udp awaits %v once it is gone", l.Awaits(portPod("udp", udp)))
	}
	admit(portPod("other", tcp(53, "127.0.0.1")), "host port 127.0.0.1:53/TCP is in use by pod default/dns")
	admit(portPod("a", tcp(80, "127.0.0.1")), "")
	admit(portPod("b", tcp(80, "127.0.0.2")), "")
	admit(portPod("c", tcp(80, "0.0.0.0")), "host port 80/TCP is in use by pod default/a")
	l.Release(pod.Key{Namespace: "default", Name: "a"})
	admit(portPod("c", tcp(80, "0.0.0.0")), "host port 80/TCP is in use by pod default/b")
	l.Release(pod.Key{Namespace: "default", Name: "b"})
	admit(portPod("c", tcp(80, "0.0.0.0")), "")
}

// Edits that are in each other's way, and in nobody else's, are admitted together.
func TestLedgerAdmitsTogether(t *testing.T) {
	for name, c := range map[string]struct {
		// Pods by name, a digit for each of their ports: what they have, and what they
		// ask for. The last of asks is the one that is decided.
		has, asks string
		want      string // who is admitted
		refusal   string
	}{
		"a free port":                          {has: "a1", asks: "b2", want: "b"},
		"a port whose holder gives nothing up": {has: "a1 b2", asks: "b1", refusal: "host port 1/TCP is in use by pod default/a"},
		"a port that its holder gives up":      {has: "a1 b2", asks: "a3 b1", want: "b a"},
		"a swap":                               {has: "a1 b2", asks: "a2 b1", want: "b a"},
		"a ring":                               {has: "a1 b2 c3", asks: "a2 b3 c1", want: "c a b"},
		"a chain":                              {has: "a1 b2 c3", asks: "a4 b1 c2", want: "c b a"},
		"a chain whose end is held":            {has: "a1 b2 c3", asks: "b1 c2", refusal: "host port 2/TCP is in use by pod default/b"},
		"a ring that somebody else is in the way": {has: "a1 b2 x5", asks: "a25 b1", refusal: "host port 1/TCP is in use by pod default/a"},
		"a holder that keeps the port":            {has: "a1 b2", asks: "a12 b1", refusal: "host port 1/TCP is in use by pod default/a"},
		"two holders":                             {has: "a1 b2 c3", asks: "a3 b3 c12", refusal: "host port 1/TCP is in use by pod default/a"},
		"two holders, and room":                   {has: "a1 b2 c3", asks: "a3 b4 c12", want: "c a b"},
		"only who is in the way goes along":       {has: "a1 b2 c3 d4", asks: "c4 d3 a2 b1", want: "b a"},
	} {
		t.Run(name, func(t *testing.T) {
			parse := func(text string) (list []*pod.Pod) {
				for _, word := range strings.Fields(text) {
					var ports []v1.ContainerPort
					for _, digit := range word[1:] {
						ports = append(ports, tcp(int32(digit-'0'), ""))
					}
					list = append(list, portPod(word[:1], ports...))
				}
				return list
			}
			l, asking := reconcile.NewLedger(), map[pod.Key]*pod.Pod{}
			for _, p := range parse(c.has) {
				l.Hold(p)
			}
			asks := parse(c.asks)
			for _, p := range asks[:len(asks)-1] {
				asking[p.Key()] = p
			}
			admitted, refusal := l.Admit(asks[len(asks)-1], asking)
			var got []string
			for _, p := range admitted {
				got = append(got, p.Key().Name)
				for _, q := range parse(c.has) {
					l.Clear(q.Key())
				}
				if w := l.Awaits(p); w != (reconcile.Waiting{}) {
					t.Errorf("%s still waits: %s", p.Key(), w)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" || refusal.Message != c.refusal {
				t.Errorf("refused %q, want %q; admitted (-want +got):\n%s", refusal.Message, c.refusal, diff)
			}
		})
	}
}
