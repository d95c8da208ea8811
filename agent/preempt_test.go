package agent_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// TestPreemption has a critical pod take the place of another, which gets it back.
func TestPreemption(t *testing.T) {
	w := newWorld(t)
	w.cfg.Admission.MaxPods = 1
	w.write("norm.yaml", manifest("{name: norm}", sleeping("a")))
	w.start()
	w.await("it has the node for itself", running("norm"))
	w.write("critical.yaml", strings.Replace(manifest("{name: critical}", sleeping("a")), "spec:\n", "spec:\n  priorityClassName: system-node-critical\n", 1))
	w.await("it makes room", running("critical"), blocked("norm", "OutOfpods"))
	events, err := server.NewClient(w.cfg.Socket).Events(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(events.Items, func(e v1.Event) bool {
		return e.Reason == "Preempting" && e.InvolvedObject.Name == "norm-node" && e.Message == "Preempted in order to admit critical pod default/critical-node"
	}) {
		t.Error("nobody told why")
	}
	w.restart()
	w.await("it waits for the next agent, too", running("critical"), blocked("norm", "OutOfpods"))
	w.remove("critical.yaml")
	w.await("it is there again", running("norm"))
}
