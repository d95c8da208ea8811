package server_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// full is a state with every field set.
func full() server.State {
	folder := pod.SourceID{Kind: pod.FileSource, Name: "/m"}
	file := pod.Origin{Source: folder, Name: "/m/web.yaml"}
	key := pod.Key{Namespace: "default", Name: "web-n"}
	return server.State{
		Revision: 7, Version: "v1", Ready: true, Online: true, NodeName: "n", RootDir: "/r",
		Pods: []server.Pod{{
			Pod:    &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n", UID: "u"}},
			Origin: file, Line: 3,
			Steps: []server.Step{{
				Verb: "stop-container", Container: "app", Attempt: 1, ID: "c", Image: "i", Reason: "Removed", Message: "m", Wave: 2, Text: "t",
			}},
			Blocked: &server.Waiting{Reason: "NodePorts", Message: "port 80"}, Kept: "k",
			Busy: true, Removing: true, Drift: []string{"--docker-network"},
		}},
		Sources: []pod.Source{{
			ID: folder, Spoken: true, Present: true, Problem: "p", Read: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Origins: []pod.OriginStatus{{Origin: file, Pods: []pod.Key{key}, Stale: true, Problems: []pod.Problem{{
				Severity: pod.Error, File: "/m/web.yaml", Line: 1, Column: 2, Field: "spec", Object: "Pod default/web", Message: "bad",
			}}}},
			Skipped: []pod.Skipped{{Path: "/m/x~", Reason: "r"}},
		}},
		Conflicts: []pod.Conflict{{Key: key, Winner: file, Loser: file, UID: "u", Holder: key, Line: 9}},
	}
}

// Clients and agents of different versions meet: the names on the wire stay.
func TestStateOnTheWire(t *testing.T) {
	got, err := json.MarshalIndent(full(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/state.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("state.json (-want +got):\n%s", diff)
	}
	var back server.State
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full(), back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestSettled(t *testing.T) {
	for name, test := range map[string]struct {
		pod  server.Pod
		want bool
	}{
		"nothing is to be done":               {server.Pod{}, true},
		"a pod that waits for a port":         {server.Pod{Blocked: &server.Waiting{Reason: "NodePorts"}}, true},
		"a step is to be taken":               {server.Pod{Steps: []server.Step{{Verb: "create-sandbox"}}}, false},
		"steps are under way, and none known": {server.Pod{Busy: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.pod.Settled(); got != test.want {
				t.Errorf("Settled = %v, want %v", got, test.want)
			}
		})
	}
}
