package agent_test

import (
	"slices"
	"testing"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// Law 5: a pod that is stopped by hand stays so over a restart of the agent and an
// edit, with its volumes and logs, and then runs as its manifest says.
func TestStopByHand(t *testing.T) {
	w := newWorld(t)
	text := func(more string) string {
		return manifest("{name: web}", sleeping("app", "volumeMounts: [{name: e, mountPath: /e}]"+more), sleeping("side")) +
			"  volumes: [{name: e, emptyDir: {}}]\n"
	}
	w.write("web.yaml", text(""))
	w.start()
	w.await("it runs", running("web"))
	before := w.ids()
	key := pod.Key{Namespace: "default", Name: "web-node"}
	client := server.NewClient(w.cfg.Socket)
	if err := client.Stop(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	stopped := func(s server.State) bool {
		p := find(s, "web")
		if p == nil || p.Held.IsZero() || !p.Settled() || p.Blocked == nil || p.Blocked.Reason != "Stopped" {
			return false
		}
		_, sandbox := w.ids()["web-node/POD/0"]
		return !sandbox && !w.inspect(before["web-node/app/0"]).State.Running && !w.inspect(before["web-node/side/0"]).State.Running
	}
	w.await("it is stopped", stopped)
	w.write("web.yaml", text(`, env: [{name: A, value: "1"}]`))
	w.restart()
	w.await("it is stopped after a restart of the agent", stopped)
	if err := client.Restart(t.Context(), key, ""); err == nil {
		t.Error("it is restarted although it is held")
	}
	if err := client.Start(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	w.await("it runs again", runs("web", "app", 1), runs("web", "side", 1))
	var reasons []string
	for after := uint64(0); !slices.Contains(reasons, "StartedByHand"); {
		found, err := client.Events(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		after = found.Revision
		for _, e := range found.Items {
			reasons = append(reasons, e.Reason)
		}
	}
}

// A container that is restarted by hand is the only one that is.
func TestRestartOfAContainerByHand(t *testing.T) {
	w := newWorld(t)
	w.write("web.yaml", manifest("{name: web}", sleeping("app"), sleeping("side")))
	w.start()
	w.await("it runs", running("web"))
	before := w.ids()
	client, key := server.NewClient(w.cfg.Socket), pod.Key{Namespace: "default", Name: "web-node"}
	if err := client.Restart(t.Context(), key, "app"); err != nil {
		t.Fatal(err)
	}
	w.await("it runs again", runs("web", "app", 1), func(s server.State) bool { return find(s, "web").Settled() })
	w.same(before, "web-node/POD/0", "web-node/side/0")
	if err := client.Restart(t.Context(), key, "nope"); err == nil || err.Error() != `no such pod: pod default/web-node has no container "nope"` {
		t.Errorf("got %v", err)
	}
	if _, again := w.ids()["web-node/app/2"]; again {
		t.Error("it was restarted twice")
	}
}
