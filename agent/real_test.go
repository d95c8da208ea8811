package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// The manifests of testdata/manifests/real are those that people have, with
// stand-ins for the images. They all come up, unchanged but for what tests that
// run beside each other cannot share: paths and ports of the host.
func TestRealManifests(t *testing.T) {
	w := newWorld(t)
	paths, err := filepath.Glob("../testdata/manifests/real/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	host := strings.NewReplacer("{path: /etc/", "{path: "+w.path("etc")+"/", "{path: /usr/", "{path: "+w.path("usr")+"/", "{path: /var/", "{path: "+w.path("var")+"/")
	mkdir(t, w.path("etc/kubernetes"))
	mkdir(t, w.path("var/log"))
	var ready []condition
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(host.Replace(string(data)), "initialDelaySeconds: 10", "initialDelaySeconds: 1")
		for _, port := range []string{"2381", "6443", "10257", "10259", "8081"} {
			if strings.Contains(text, "127.0.0.1:"+port+" ") {
				text = strings.ReplaceAll(text, port, freePort(t))
			}
		}
		for _, port := range []string{"5353", "8053"} {
			if strings.Contains(text, "hostPort: "+port) {
				text = strings.ReplaceAll(text, "hostPort: "+port, "hostPort: "+freePort(t))
			}
		}
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		namespace := "kube-system"
		for _, other := range []string{"logging", "monitoring", "pihole"} {
			if strings.Contains(text, "namespace: "+other) {
				namespace = other
			}
		}
		w.write(filepath.Base(path), text)
		ready = append(ready, readyIn(namespace, name))
	}
	w.start()
	s := w.await("all of them are ready", ready...)
	for _, src := range s.Sources {
		for _, o := range src.Origins {
			if o.Failed() {
				t.Errorf("%s has errors: %v", o.Origin.Name, o.Problems)
			}
		}
	}
	w.poll("kube-vip has said what it has", func() bool {
		said := strings.Fields(w.output(w.ids()["kube-vip-node/kube-vip/0"]))
		return fmt.Sprint(said) == "[node 192.0.2.100 CapEff: 0000000000003000 127.0.0.1 kubernetes]"
	})
	w.poll("pihole has said what it has", func() bool {
		said := w.output(w.ids()["pihole-node/pihole/0"])
		return said == "pihole Europe/Berlin 12 https://lists.example/hosts address=/home.example/192.0.2.10 999\n"
	})
}

// The examples come up as they are, but for the ports of the host.
func TestExamples(t *testing.T) {
	w := newWorld(t)
	paths, err := filepath.Glob("../manifests/examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	ports := strings.NewReplacer("hostPort: 18080", "hostPort: "+freePort(t), "hostPort: 18081", "hostPort: "+freePort(t))
	var ready []condition
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		w.write(filepath.Base(path), ports.Replace(string(data)))
		ready = append(ready, readyIn("default", strings.TrimSuffix(filepath.Base(path), ".yaml")))
	}
	w.start()
	w.await("all of them are ready", ready...)
}

// readyIn: the pod has the condition Ready.
func readyIn(namespace, name string) condition {
	return func(s server.State) bool {
		p := findIn(s, namespace, name)
		if p == nil {
			return false
		}
		for _, c := range p.Pod.Status.Conditions {
			if c.Type == v1.PodReady {
				return c.Status == v1.ConditionTrue
			}
		}
		return false
	}
}
