package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dockernet "github.com/docker/docker/api/types/network"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// What happens to a pod can be read from the agent while it happens.
func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.write("web.yaml", manifest("{name: web}", `{name: app, image: "busybox:stable", command: `+sleeper+`}`))
	w.start()
	w.await("it runs", runs("web", "app", 0))
	w.remove("web.yaml")
	w.await("it is gone", gone("web"))
	client := server.NewClient(w.cfg.Socket)
	var reasons []string
	for after := uint64(0); !slices.Contains(reasons, "Killing"); {
		found, err := client.Events(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		after = found.Revision
		for _, e := range found.Items {
			if e.InvolvedObject.Kind == "Node" {
				continue
			}
			if e.InvolvedObject.Name != "web-node" || e.InvolvedObject.FieldPath != "spec.containers{app}" || e.Source.Host != "node" {
				t.Errorf("about %+v of %+v", e.InvolvedObject, e.Source)
			}
			reasons = append(reasons, e.Reason)
		}
	}
	if want := []string{"Pulled", "Created", "Started", "Killing"}; !slices.Equal(reasons, want) {
		t.Errorf("%v, want %v", reasons, want)
	}
}

// A network that the engine does not have is told of in the words of the kubelet, and pods
// run as soon as it is there.
func TestNetworkNotReady(t *testing.T) {
	w := newWorld(t)
	name := filepath.Base(w.tmp)
	w.cfg.Docker.Network = name
	w.write("web.yaml", manifest("{name: web}", sleeping("app")))
	w.start()
	w.await("it waits for its network", blocked("web", "NetworkNotReady"))
	found, err := server.NewClient(w.cfg.Socket).Events(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(found.Items, func(e v1.Event) bool { return e.Reason == "NetworkNotReady" })
	if at < 0 || found.Items[at].Type != v1.EventTypeWarning || !strings.Contains(found.Items[at].Message, "network is not ready: network "+name) {
		t.Errorf("events %+v", found.Items)
	}
	if _, err := w.engine.NetworkCreate(t.Context(), name, dockernet.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // when the world's containers are gone
		if err := w.engine.NetworkRemove(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	w.await("it runs", runs("web", "app", 0))
	w.stop()
	if err := agent.DeleteAll(t.Context(), w.cfg, w.log); err != nil { // before the network goes
		t.Error(err)
	}
}

// A pod that is restarted by hand is another one, in another sandbox.
func TestRestartByHand(t *testing.T) {
	w := newWorld(t)
	w.write("web.yaml", manifest("{name: web}", `{name: app, image: "busybox:stable", command: `+sleeper+`}`))
	w.start()
	w.await("it runs", runs("web", "app", 0))
	before := w.ids()
	if err := server.NewClient(w.cfg.Socket).Restart(t.Context(), pod.Key{Namespace: "default", Name: "web-node"}, ""); err != nil {
		t.Fatal(err)
	}
	w.await("it runs again", runs("web", "app", 0), func(s server.State) bool {
		return w.ids()["web-node/POD/0"] != before["web-node/POD/0"]
	})
}

// A start is told of, and that the machine did between two: once, and not of the first.
func TestEventsOfAStart(t *testing.T) {
	w := newWorld(t)
	told := func() (reasons []string) {
		w.await("it is up", func(s server.State) bool { return s.Ready })
		e, err := server.NewClient(w.cfg.Socket).Events(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range e.Items {
			if one.InvolvedObject.Kind == "Node" && one.InvolvedObject.Name == "node" {
				reasons = append(reasons, one.Reason)
			}
		}
		return reasons
	}
	w.start()
	if got := told(); !slices.Equal(got, []string{"Starting", "NodeReady"}) {
		t.Errorf("at first: %v", got)
	}
	w.restart()
	if got := told(); !slices.Equal(got, []string{"Starting", "NodeReady"}) {
		t.Errorf("at a restart: %v", got)
	}
	w.stop()
	if err := os.WriteFile(filepath.Join(w.cfg.RootDir, "boot_id"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"Starting", "Rebooted", "NodeReady"}, {"Starting", "NodeReady"}} {
		w.restart()
		if got := told(); !slices.Equal(got, want) {
			t.Errorf("after the machine's start: %v, want %v", got, want)
		}
	}
}
