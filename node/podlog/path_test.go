package podlog_test

import (
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/node/podlog"
	"github.com/podkeeper/podkeeper/pod"
)

func TestPaths(t *testing.T) {
	cfg := podlog.Config{PodsDir: "/var/log/pods", ContainersDir: "/var/log/containers/", Owner: "/var/lib/podkeeper"}
	id := strings.Repeat("0123456789abcdef", 4)
	long := strings.Repeat("n", 63)
	tests := map[string]struct {
		link                podlog.Link
		podPath, containers string
	}{
		"the first attempt": {
			podlog.Link{Key: pod.Key{Namespace: "ops", Name: "chatty-node1"}, UID: "6f-1", Container: "app", ID: id},
			"/var/log/pods/ops_chatty-node1_6f-1/app/0.log",
			"/var/log/containers/chatty-node1_ops_app-" + id + ".log",
		},
		"a later one": {
			podlog.Link{Key: pod.Key{Namespace: "ops", Name: "x"}, UID: "u", Container: "app", Attempt: 12, ID: "ab"},
			"/var/log/pods/ops_x_u/app/12.log",
			"/var/log/containers/x_ops_app-ab.log",
		},
		"a name cut to 255 bytes, in the id": {
			podlog.Link{Key: pod.Key{Namespace: long, Name: long}, UID: "u", Container: long, ID: id},
			"/var/log/pods/" + long + "_" + long + "_u/" + long + "/0.log",
			"/var/log/containers/" + long + "_" + long + "_" + long + "-" + id[:59] + ".log",
		},
		"a name that is cut before its id": {
			podlog.Link{Key: pod.Key{Namespace: "default", Name: strings.Repeat("p", 253)}, UID: "u", Container: "c", ID: id},
			"/var/log/pods/default_" + strings.Repeat("p", 253) + "_u/c/0.log",
			"/var/log/containers/" + strings.Repeat("p", 251) + ".log",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := podlog.PodPath(cfg, tt.link); got != tt.podPath {
				t.Errorf("PodPath\n got %s\nwant %s", got, tt.podPath)
			}
			if got := podlog.ContainerPath(cfg, tt.link); got != tt.containers {
				t.Errorf("ContainerPath\n got %s\nwant %s", got, tt.containers)
			}
		})
	}
}
