package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podkeeper/podkeeper/server"
)

// rich is a state of two pods, one of which says a lot.
func rich() server.State {
	s := full()
	began := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	grace, yes := int64(0), true
	object := s.Pods[0].Pod
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	object.Labels, object.DeletionTimestamp = map[string]string{"app": "web"}, &began
	object.Spec = v1.PodSpec{
		TerminationGracePeriodSeconds: &grace, ShareProcessNamespace: &yes,
		Volumes: []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		Containers: []v1.Container{{
			Name: "app", Image: "i", Command: []string{"sh", "-c", "a\nb"}, Env: []v1.EnvVar{{Name: "E", Value: ""}},
			Ports:         []v1.ContainerPort{{ContainerPort: 80, HostIP: "::1"}},
			Resources:     v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")}},
			LivenessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromString("http")}}},
		}},
	}
	object.Status = v1.PodStatus{
		Phase: v1.PodRunning, StartTime: &began, PodIPs: []v1.PodIP{{IP: "10.0.0.1"}},
		Conditions:        []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: began}},
		ContainerStatuses: []v1.ContainerStatus{{Name: "app", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: began}}, Started: &yes}},
	}
	s.Pods = append(s.Pods, server.Pod{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other-n"}}, Line: 9})
	return s
}

// asJSON is what programs read; it knows no difference between nil and empty.
func asJSON(t *testing.T, s server.State) string {
	t.Helper()
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// served returns a client of a handler, and what was asked for and written last.
func served(t *testing.T, h http.Handler) (c *server.Client, accepted, written *string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := server.Listen(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	accepted, written = new(string), new(string)
	s := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*accepted = r.Header.Get("Accept")
		h.ServeHTTP(w, r)
		*written = w.Header().Get("Content-Type")
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() { s.Close(); <-ended })
	return server.NewClient(path), accepted, written
}

// Clients and agents of different versions meet: each reads the other's form.
func TestStateInBothForms(t *testing.T) {
	want := asJSON(t, rich())
	agent := server.Handler(server.Answers{State: func(context.Context, uint64) (server.State, error) { return rich(), nil }})
	client, accepted, written := served(t, agent)
	got, err := client.State(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, asJSON(t, got)); diff != "" {
		t.Errorf("the compact form (-want +got):\n%s", diff)
	}
	if *written != *accepted || *accepted == "" {
		t.Errorf("the client asked for %q and got %q", *accepted, *written)
	}

	older, _, _ := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, want)
	}))
	if got, err = older.State(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, asJSON(t, got)); diff != "" {
		t.Errorf("an agent that writes JSON alone (-want +got):\n%s", diff)
	}

	for _, accept := range []string{"", "*/*", "application/json"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/state", nil)
		r.Header.Set("Accept", accept)
		agent.ServeHTTP(w, r)
		var back server.State
		if err := json.Unmarshal(w.Body.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, asJSON(t, back)); diff != "" {
			t.Errorf("Accept %q (-want +got):\n%s", accept, diff)
		}
	}
}

func TestStateThatIsBroken(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":                      "",
		"a pod without its object":     `{"revision":1,"pods":[{"line":1}]}` + "\n",
		"an object without its pod":    `{"revision":1,"pods":[]}` + "\n\x0a\x00\x12\x00",
		"objects that are cut off":     `{"revision":1,"pods":[{"line":1}]}` + "\n\x12\x09",
		"a line that is cut off":       `{"revision":1,"po`,
		"what is not a state":          "<html>\n",
		"objects that are none at all": `{"revision":1,"pods":[{"line":1}]}` + "\nhello",
	} {
		t.Run(name, func(t *testing.T) {
			client, _, _ := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", r.Header.Get("Accept"))
				io.WriteString(w, body)
			}))
			if s, err := client.State(t.Context(), 0); err == nil {
				t.Errorf("no error, and %d pods", len(s.Pods))
			}
		})
	}
}
