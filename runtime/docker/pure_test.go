package docker_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

func TestEngineHost(t *testing.T) {
	for host, ok := range map[string]bool{
		"unix:///run/docker.sock":    true,
		"tcp://127.0.0.1:2375":       true,
		"tcp://127.8.8.8:2375":       true,
		"tcp://[::1]:2375":           true,
		"tcp://localhost:2375":       true,
		"unix://docker.sock":         false,
		"tcp://192.0.2.1:2375":       false,
		"tcp://0.0.0.0:2375":         false,
		"tcp://localhost.example:1":  false,
		"tcp://docker:2376":          false,
		"ssh://root@127.0.0.1":       false,
		"http://127.0.0.1:2375":      false,
		"npipe:////./pipe/docker":    false,
		"/run/docker.sock":           false,
		"tcp://127.0.0.1@192.0.2.1:": false,
	} {
		for how, try := range map[string]func() error{
			"by flag": func() error {
				_, err := docker.New(docker.Config{Host: host, RootDir: "/r"}, slog.New(slog.DiscardHandler))
				return err
			},
			"by DOCKER_HOST": func() error {
				t.Setenv("DOCKER_HOST", host)
				_, err := docker.New(docker.Config{RootDir: "/r"}, slog.New(slog.DiscardHandler))
				return err
			},
		} {
			err := try()
			if (err == nil) != ok {
				t.Errorf("%s %s: got %v, want accepted: %t", host, how, err, ok)
			}
			if err != nil && !strings.Contains(err.Error(), host) {
				t.Errorf("%s %s: the error does not name it: %v", host, how, err)
			}
		}
	}
}

func TestNetworks(t *testing.T) {
	for network, want := range map[string]struct{ refused, warned bool }{
		"":             {},
		"bridge":       {},
		"none":         {},
		"pods":         {warned: true},
		"host":         {refused: true},
		"container:id": {refused: true},
	} {
		var log bytes.Buffer
		_, err := docker.New(docker.Config{RootDir: "/r", Network: network}, slog.New(slog.NewTextHandler(&log, nil)))
		if (err != nil) != want.refused {
			t.Errorf("network %q: %v, want refused: %t", network, err, want.refused)
		}
		if warned := strings.Contains(log.String(), "dnsPolicy"); warned != want.warned {
			t.Errorf("network %q: logged %q, want a warning: %t", network, log.String(), want.warned)
		}
	}
}

func TestLowestOOMScoreAdj(t *testing.T) {
	const (
		all     = "Name:\tdockerd\nCapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\n"
		without = "Name:\tdockerd\nCapPrm:\t000001ffffffffff\nCapEff:\t000001fffeffffff\n"
		initial = "         0          0 4294967295\n"
		nested  = "         0     100000      65536\n"
	)
	for name, test := range map[string]struct {
		status, uidMap, adj string
		want                int
	}{
		"with CAP_SYS_RESOURCE any":                    {all, initial, "0\n", -1000},
		"without it, not below its own":                {without, initial, "-500\n", -500},
		"its own may be high":                          {without, initial, "968\n", 968},
		"a capability in a user namespace counts less": {all, nested, "0\n", 0},
		"unknown is treated as forbidden":              {"", "", "", 0},
	} {
		if got := docker.OOMFloor(test.status, test.uidMap, test.adj); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

// inspected is what an engine says of a container of ours; change edits it.
func inspected(t *testing.T, id runtime.Identity, change string) container.InspectResponse {
	t.Helper()
	labels, err := json.Marshal(id.Labels("/r"))
	if err != nil {
		t.Fatal(err)
	}
	var in container.InspectResponse
	for _, text := range []string{`{
		"Id": "abc", "Name": "/` + id.ContainerName() + `", "Created": "2026-01-02T03:04:05.6Z", "Image": "sha256:1", "LogPath": "/l",
		"State": {"Status": "created", "StartedAt": "0001-01-01T00:00:00Z", "FinishedAt": "0001-01-01T00:00:00Z"},
		"Config": {"Image": "busybox", "Labels": ` + string(labels) + `},
		"HostConfig": {"NetworkMode": "bridge", "LogConfig": {"Type": "json-file", "Config": {"max-size": "9", "max-file": "5"}}}, "NetworkSettings": {}}`, change} {
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

func TestObserve(t *testing.T) {
	const started, finished = `"StartedAt": "2026-01-02T03:04:06.000000001Z"`, `"FinishedAt": "2026-01-02T03:05:00Z"`
	const start = "2026-01-02T03:04:06.000000001Z"
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	running := func(c *runtime.Container) {
		c.State, c.Started, c.Start = runtime.Running, at(start), start
	}
	exited := func(c *runtime.Container) {
		running(c)
		c.State, c.Finished = runtime.Exited, at("2026-01-02T03:05:00Z")
	}
	for name, test := range map[string]struct {
		sandbox bool
		change  string
		want    func(*runtime.Container)
	}{
		"created":                {false, `{}`, func(c *runtime.Container) {}},
		"running":                {false, `{"State": {"Status": "running", ` + started + `}}`, running},
		"running again":          {false, `{"State": {"Status": "running", ` + started + `, "FinishedAt": "2026-01-01T00:00:00Z"}}`, running},
		"paused runs":            {false, `{"State": {"Status": "paused", ` + started + `}}`, running},
		"restarting runs":        {false, `{"State": {"Status": "restarting", ` + started + `}}`, running},
		"exited":                 {false, `{"State": {"Status": "exited", ` + started + `, ` + finished + `}}`, exited},
		"being removed is over":  {false, `{"State": {"Status": "removing", ` + started + `, ` + finished + `}}`, exited},
		"dead is over":           {false, `{"State": {"Status": "dead", ` + started + `, ` + finished + `}}`, exited},
		"a state that is new":    {false, `{"State": {"Status": "molten", ` + started + `, ` + finished + `}}`, exited},
		"ended before it began?": {false, `{"State": {"Status": "exited", ` + started + `, "FinishedAt": "2026-01-02T03:04:06Z"}}`, func(c *runtime.Container) { exited(c); c.Finished = c.Started }},
		"C119: the flag is reported as it is": {
			false, `{"State": {"Status": "exited", ` + started + `, ` + finished + `, "OOMKilled": true, "ExitCode": 143}}`,
			func(c *runtime.Container) { exited(c); c.OOMKilled, c.ExitCode = true, 143 },
		},
		"where it runs": {
			false, `{"State": {"Status": "running", "Pid": 12, ` + started + `}, "GraphDriver": {"Name": "overlay2", "Data": {"UpperDir": "/o/diff"}}}`,
			func(c *runtime.Container) { running(c); c.PID, c.Writable = 12, "/o/diff" },
		},
		"one that ended runs nowhere": {
			false, `{"State": {"Status": "exited", "Pid": 12, ` + started + `, ` + finished + `}}`, exited,
		},
		"a failed start stays created": {
			false, `{"State": {"Status": "created", "ExitCode": 127, "Error": "no such file"}}`,
			func(c *runtime.Container) { c.ExitCode, c.Error = 127, "no such file" },
		},
		"limits": {
			false, `{"HostConfig": {"CpuShares": 2, "CpuPeriod": 100000, "CpuQuota": 1000, "Memory": 64, "CpusetCpus": "0-1"}}`,
			func(c *runtime.Container) {
				c.Resources = runtime.Resources{CPUShares: 2, CPUPeriod: 100000, CPUQuota: 1000, Memory: 64, CPUSet: "0-1"}
			},
		},
		"limits that were lifted": {
			false, `{"HostConfig": {"CpuShares": 1024, "CpuQuota": -1, "Memory": 9223372036854771712}}`,
			func(c *runtime.Container) { c.Resources = runtime.Resources{CPUShares: 1024} },
		},
		"a sandbox has addresses": {
			true, `{"State": {"Status": "running", ` + started + `}, "NetworkSettings": {"Networks": {
				"b": {"IPAddress": "192.0.2.2"}, "a": {"IPAddress": "192.0.2.1", "GlobalIPv6Address": "2001:db8::1"}, "c": null}}}`,
			func(c *runtime.Container) { running(c); c.IPs = []string{"192.0.2.1", "2001:db8::1", "192.0.2.2"} },
		},
		"one that ended has none": {
			true, `{"State": {"Status": "exited", ` + started + `, ` + finished + `}, "NetworkSettings": {"Networks": {"b": {"IPAddress": "192.0.2.2"}}}}`,
			exited,
		},
		"the host's network": {
			true, `{"State": {"Status": "running", ` + started + `}, "HostConfig": {"NetworkMode": "host"}, "NetworkSettings": {"Networks": {"host": {"IPAddress": ""}}}}`,
			func(c *runtime.Container) { running(c); c.HostNetwork = true },
		},
	} {
		t.Run(name, func(t *testing.T) {
			id := identity("app")
			if test.sandbox {
				id = identity(runtime.SandboxName)
			}
			want := runtime.Container{
				ID: "abc", Identity: id, State: runtime.Created, Created: at("2026-01-02T03:04:05.6Z"), Start: "0001-01-01T00:00:00Z",
				Image: "busybox", ImageID: "sha256:1", LogPath: "/l",
			}
			test.want(&want)
			got, ok := docker.Observe("/r", "bridge", "", "9", inspected(t, id, test.change))
			if !ok {
				t.Fatal("taken for somebody else's")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A changed setting restarts nothing; what was made with another is named.
func TestDrift(t *testing.T) {
	sandbox, app := identity(runtime.SandboxName), identity("app")
	for name, test := range map[string]struct {
		id                         runtime.Identity
		network, pause, size, made string
		want                       []string
	}{
		"none":                            {sandbox, "bridge", "", "9", `{}`, nil},
		"log limits":                      {app, "bridge", "", "10", `{}`, []string{`container logs: app made with "json-file 9 x 5", now "json-file 10 x 5"`}},
		"network":                         {sandbox, "pods", "", "9", `{}`, []string{`docker network: POD made with "bridge", now "pods"`}},
		"the host's network is the pod's": {sandbox, "pods", "", "9", `{"HostConfig": {"NetworkMode": "host"}}`, nil},
		"an image instead of ours":        {sandbox, "bridge", "pause:1", "9", `{}`, []string{`pause image: POD made with "busybox", now "pause:1"`}},
		"containers have no network":      {app, "pods", "", "9", `{"HostConfig": {"NetworkMode": "container:abc"}}`, nil},
	} {
		got, ok := docker.Observe("/r", test.network, test.pause, test.size, inspected(t, test.id, test.made))
		if diff := cmp.Diff(test.want, got.Drift); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Law 6.
func TestObserveNotOurs(t *testing.T) {
	for name, change := range map[string]string{
		"another root dir": `{"Config": {"Labels": {"io.podkeeper.root-dir": "/other"}}}`,
		"another name":     `{"Name": "/somebody"}`,
	} {
		if c, ok := docker.Observe("/r", "bridge", "", "9", inspected(t, identity("app"), change)); ok {
			t.Errorf("one with %s is taken for ours: %+v", name, c)
		}
	}
	if _, ok := docker.Observe("/r", "bridge", "", "9", container.InspectResponse{}); ok {
		t.Error("an empty answer is taken for a container")
	}
}
