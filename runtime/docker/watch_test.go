package docker_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

const eventStream = "GET /events"

func event(id, action, name, oldName string, labels map[string]string) string {
	attributes := map[string]string{"name": name, "oldName": oldName}
	for key, value := range labels {
		attributes[key] = value
	}
	data, _ := json.Marshal(events.Message{Type: "container", Action: events.Action(action), Actor: events.Actor{ID: id, Attributes: attributes}})
	return string(data) + "\n"
}

func TestWatch(t *testing.T) {
	id := identity("app")
	ours, theirs, name := id.Labels("/r"), id.Labels("/other"), id.ContainerName()
	stream := event("1", "create", name, "", ours) +
		event("2", "die", name, "", theirs) +
		event("3", "die", "from-a-commit", "", ours) +
		event("4", "rename", "/elsewhere", "/"+name, ours) +
		event("5", "rename", "/"+name, "/elsewhere", ours) +
		event("1", "destroy", name+"_01234567", "", ours)
	engine := newScript(t, map[string][]answer{eventStream: {status(http.StatusOK, stream)}})
	before := time.Now()
	changed, ready := make(chan string, 10), 0
	err := engine.Runtime(t, docker.Config{}).Watch(t.Context(), func() { ready++ }, changed)
	checkClass(t, err, runtime.ErrUnavailable)
	close(changed)
	var got []string
	for id := range changed {
		got = append(got, id)
	}
	if diff := cmp.Diff([]string{"1", "4", "5", "1"}, got); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if ready != 1 {
		t.Errorf("ready was called %d times", ready)
	}

	call, err := url.Parse(strings.TrimPrefix(engine.Calls()[0], "GET "))
	if err != nil {
		t.Fatal(err)
	}
	var asked map[string]map[string]bool
	if err := json.Unmarshal([]byte(call.Query().Get("filters")), &asked); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]bool{
		"label": {"io.podkeeper.root-dir=/r": true},
		"type":  {"container": true},
		"event": {"create": true, "start": true, "die": true, "oom": true, "destroy": true, "rename": true, "update": true, "pause": true, "unpause": true},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("filters (-want +got):\n%s", diff)
	}
	// What happens between the engine's answer and its subscription is not lost.
	seconds, nanos, _ := strings.Cut(call.Query().Get("since"), ".")
	since, err := strconv.ParseInt(seconds+nanos, 10, 64)
	if err != nil || since < before.UnixNano() || since > time.Now().UnixNano() {
		t.Errorf("since %q, want an instant just before the call", call.Query().Get("since"))
	}
}

func TestWatchThatDoesNotBegin(t *testing.T) {
	for scene, reply := range map[string]answer{
		"hangs":     hang,
		"is lost":   lose,
		"is denied": status(http.StatusServiceUnavailable, "starting"),
	} {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			engine := newScript(t, map[string][]answer{eventStream: {reply}})
			err := engine.Runtime(t, docker.Config{CallTimeout: 300 * time.Millisecond}).Watch(t.Context(), func() { t.Error("ready") }, nil)
			checkClass(t, err, runtime.ErrUnavailable)
		})
	}
}
