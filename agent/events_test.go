package agent_test

import (
	"slices"
	"testing"

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
			if e.InvolvedObject.Name != "web-node" || e.InvolvedObject.FieldPath != "spec.containers{app}" || e.Source.Host != "node" {
				t.Errorf("about %+v of %+v", e.InvolvedObject, e.Source)
			}
			reasons = append(reasons, e.Reason)
		}
	}
	if want := []string{"Created", "Started", "Killing"}; !slices.Equal(reasons, want) {
		t.Errorf("%v, want %v", reasons, want)
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
