package agent_test

import (
	"context"
	"net"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// C082: the pod that runs keeps its port, whatever the order of files.
func TestTwoPodsWithOneHostPort(t *testing.T) {
	w := newWorld(t)
	port := freePort(t)
	text := func(name string) string {
		return manifest("{name: "+name+"}", sleeping("a", "ports: [{containerPort: 80, hostPort: "+port+"}]"))
	}
	w.start()
	w.write("p-old.yaml", text("p-old"))
	w.await("p-old runs", running("p-old"))
	before := w.ids()
	w.write("a-new.yaml", text("a-new"))
	check := func() {
		t.Helper()
		s := w.await("a-new waits", blocked("a-new", "NodePorts"), running("p-old"))
		p := find(s, "a-new")
		if message := p.Blocked.Message; !strings.Contains(message, port) || !strings.Contains(message, "p-old") || p.Pod.Status.Phase != v1.PodPending {
			t.Errorf("it is %s: %s; want Pending, and a message that names port and holder", p.Pod.Status.Phase, message)
		}
		w.same(before, "p-old-node/POD/0", "p-old-node/a/0")
		if _, ok := w.containers()["a-new-node/POD/0"]; ok {
			t.Error("a-new has a sandbox")
		}
	}
	check()
	w.restart()
	check()
	w.remove("p-old.yaml")
	w.await("a-new runs", running("a-new"), gone("p-old"))
}

// C089: whatever happens to a sandbox, the pod ends up whole in one.
func TestSandboxThatIsTamperedWith(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	ports := make(map[string]string)
	for _, name := range []string{"killed", "removed", "restarted"} {
		ports[name] = freePort(t)
		w.write(name+".yaml", manifest("{name: "+name+"}",
			shell("web", "trap 'exit 0' TERM; (while :; do nc -l -p 80 -e echo hello; done) & wait", "ports: [{containerPort: 80, hostPort: "+ports[name]+"}]"),
			sleeping("side")))
	}
	w.start()
	w.await("they run", running("killed"), running("removed"), running("restarted"))
	before := w.ids()
	w.kill(before["killed-node/POD/0"])
	if err := w.engine.ContainerRemove(ctx, before["removed-node/POD/0"], container.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.engine.ContainerRestart(ctx, before["restarted-node/POD/0"], container.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, port := range ports {
		w.await(name+" is whole", runs(name, "web", 1), runs(name, "side", 1))
		w.poll(name+" answers", func() bool { return answer(port) == "hello" })
		w.whole(name)
	}

	before = w.ids()
	w.stopContainer(before["killed-node/side/1"])
	w.await("one container alone is replaced", runs("killed", "side", 2), running("killed"))
	for key := range before {
		if key != "killed-node/side/1" {
			w.same(before, key)
		}
	}
	w.whole("killed")
}

// whole checks that all of a pod that runs shares the network of one sandbox.
func (w *world) whole(name string) {
	w.t.Helper()
	namespaces := make(map[string][]string)
	for key, id := range w.ids() {
		if strings.HasPrefix(key, name+"-node/") {
			ns, err := os.Readlink("/proc/" + strconv.Itoa(w.inspect(id).State.Pid) + "/ns/net")
			if err != nil {
				w.t.Fatal(err)
			}
			namespaces[ns] = append(namespaces[ns], key)
		}
	}
	for ns, keys := range namespaces {
		if len(namespaces) != 1 || len(keys) != 3 {
			w.t.Errorf("%s: %v run in %s, want one sandbox and two containers in one", name, keys, ns)
		}
	}
	for key, c := range w.containers() {
		if strings.HasPrefix(key, name+"-node/POD/") && c.State != "running" {
			w.t.Errorf("%s is left, %s", key, c.State)
		}
	}
}

// C080: one number for TCP and UDP, on addresses of both families.
func TestHostPortsOfAllKinds(t *testing.T) {
	w := newWorld(t)
	port, local, six := freePort(t), freePort(t), freePort(t)
	w.write("dns.yaml", manifest("{name: dns}", shell("app",
		"trap 'exit 0' TERM; (while :; do nc -l -p 53 -e echo hello; done) & wait",
		"ports: [{containerPort: 53, hostPort: "+port+"}, {containerPort: 53, hostPort: "+port+", protocol: UDP}, "+
			"{containerPort: 53, hostPort: "+local+", hostIP: 127.0.0.1}, {containerPort: 53, hostPort: "+six+", hostIP: '::1'}]")))
	w.start()
	w.await("it runs", running("dns"))
	for address, want := range map[string]bool{
		"127.0.0.1:" + port: true, "[::1]:" + port: true, "127.0.0.1:" + local: true, "[::1]:" + six: true,
		"[::1]:" + local: false, "127.0.0.1:" + six: false,
	} {
		if want {
			w.poll(address+" answers", func() bool { return answerAt(address) == "hello" })
		} else if got := answerAt(address); got != "" {
			t.Errorf("%s answers %q", address, got)
		}
	}
	conn, err := net.Dial("udp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	heard := w.listenIn(w.ids()["dns-node/POD/0"], ":53")
	w.poll("a datagram arrives in the pod", func() bool {
		_, _ = conn.Write([]byte("hello"))
		_ = heard.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		text := make([]byte, 10)
		n, _, _ := heard.ReadFrom(text)
		return string(text[:n]) == "hello"
	})
	// The address of the pod is known as soon as it runs, and stays.
	ip := find(w.await("it runs still", running("dns")), "dns").Pod.Status.PodIP
	if net.ParseIP(ip) == nil || answerAt(ip+":53") != "hello" {
		t.Errorf("at the pod's address %s it says %q", ip, answerAt(ip+":53"))
	}
	w.kill(w.ids()["dns-node/app/0"])
	if again := find(w.await("it runs again", runs("dns", "app", 1)), "dns").Pod.Status.PodIP; again != ip {
		t.Errorf("after a restart of its container the pod has the address %s, was %s", again, ip)
	}
}

// listenIn listens for datagrams in the network of a container.
func (w *world) listenIn(id, address string) net.PacketConn {
	w.t.Helper()
	type result struct {
		conn net.PacketConn
		err  error
	}
	pid := w.inspect(id).State.Pid
	results := make(chan result)
	go func() {
		goruntime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		var r result
		ns, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/net")
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			ns.Close()
		}
		if r.err = err; err == nil {
			r.conn, r.err = net.ListenPacket("udp", address)
		}
		results <- r
	}()
	r := <-results
	if r.err != nil {
		w.t.Fatal(r.err)
	}
	w.t.Cleanup(func() { r.conn.Close() })
	return r.conn
}
