package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// Issue 5, section 3: /events on the socket has what happened, as Kubernetes' objects.
func TestEventsAreOnTheSocket(t *testing.T) {
	happened := v1.Event{Reason: "Started", Message: "Started container app", Count: 2}
	happened.Name, happened.Namespace = "web.1", "default"
	path := filepath.Join(t.TempDir(), "s")
	l, err := server.Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	asked := make(chan uint64, 2)
	go func() {
		ended <- server.Serve(ctx, l, server.Handler(server.Answers{Events: func(_ context.Context, after uint64) (server.Events, error) {
			asked <- after
			return server.Events{Revision: 7, Items: []v1.Event{happened}}, nil
		}}), quiet)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	got, err := server.NewClient(path).Events(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(server.Events{Revision: 7, Items: []v1.Event{happened}}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	resp, err := overSocket(path).Get("http://agent/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list v1.EventList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET /events: %s, %v", resp.Status, err)
	}
	if diff := cmp.Diff([]v1.Event{happened}, list.Items); diff != "" {
		t.Errorf("/events as Kubernetes' types read it (-want +got):\n%s", diff)
	}
	if first, then := <-asked, <-asked; first != 3 || then != 0 {
		t.Errorf("asked for what comes after %d and %d, want 3 and 0", first, then)
	}
}
