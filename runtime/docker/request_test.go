package docker_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

var update = flag.Bool("update", false, "rewrite testdata/requests")

// The bodies in testdata/requests are what an engine is sent, without the fields
// that say nothing.
func TestRequests(t *testing.T) {
	// Where the test runs, a negative oom_score_adj may not be possible.
	const adj = 7
	for name, test := range map[string]struct {
		cfg     docker.Config
		sandbox *runtime.SandboxSpec
		app     *runtime.ContainerSpec
	}{
		"sandbox": {
			cfg:     docker.Config{LogMaxSize: 1 << 20, LogMaxFiles: 2},
			sandbox: &runtime.SandboxSpec{Identity: identity("POD"), Hostname: "web-node", Security: runtime.Security{Seccomp: runtime.SeccompDefault}},
		},
		"sandbox_ports": { // C080
			cfg: docker.Config{Network: "pods"},
			sandbox: &runtime.SandboxSpec{Identity: identity("POD"), Hostname: "web-node", Security: runtime.Security{Seccomp: runtime.SeccompDefault}, Ports: []runtime.Port{
				{ContainerPort: 53, HostPort: 5353, Protocol: v1.ProtocolTCP},
				{ContainerPort: 53, HostPort: 5353, Protocol: v1.ProtocolUDP},
				{ContainerPort: 80, HostPort: 8053},
				{ContainerPort: 80, HostPort: 8054, Protocol: v1.ProtocolTCP, HostIP: "127.0.0.1"},
				{ContainerPort: 9, HostPort: 9, Protocol: v1.ProtocolSCTP, HostIP: "::1"},
			}},
		},
		"sandbox_full": {
			sandbox: &runtime.SandboxSpec{
				Identity: identity("POD"), Hostname: "web", Domainname: "example", Users: runtime.HostUsers,
				DNS:      &runtime.DNS{Servers: []string{"192.0.2.1"}, Options: []string{"ndots:2"}},
				Sysctls:  map[string]string{"net.core.somaxconn": "512"},
				Security: runtime.Security{Seccomp: runtime.SeccompDefault, SELinux: v1.SELinuxOptions{Level: "s0"}},
			},
		},
		"sandbox_host": {
			sandbox: &runtime.SandboxSpec{
				Identity: identity("POD"), Hostname: "web-node", Security: runtime.Security{Seccomp: runtime.SeccompDefault}, HostNetwork: true, HostPID: true, HostIPC: true,
				Ports: []runtime.Port{{ContainerPort: 80, HostPort: 80}},
			},
		},
		"container": {app: &runtime.ContainerSpec{Identity: identity("app"), Image: "app:1", OOMScoreAdj: adj}},
		"container_full": {app: &runtime.ContainerSpec{
			Identity: identity("app"), Image: "app:1", OOMScoreAdj: adj,
			Command: []string{"/bin/echo", "x"}, Args: []string{"a1"}, Env: []string{"A=1=2", "B=l1\nl2"}, WorkingDir: "/w",
			Stdin: true, StdinOnce: true, TTY: true, HostPID: true, Handler: "nvidia",
			Mounts:    []runtime.Mount{{HostPath: "/h/rw", ContainerPath: "/c/rw"}, {HostPath: "/h/ro", ContainerPath: "/c/ro", ReadOnly: true}},
			Resources: runtime.Resources{CPUShares: 512, CPUPeriod: 100000, CPUQuota: 50000, Memory: 64 << 20, CPUSet: "2-3"},
		}},
		"container_secure": {app: &runtime.ContainerSpec{
			Identity: identity("app"), Image: "app:1", OOMScoreAdj: adj, SharePID: true, StopSignal: "SIGUSR1",
			Security: runtime.Security{
				User: "1000:2000", Groups: []int64{3000, 4000}, NoNewPrivileges: true, ReadOnlyRoot: true,
				AddCapabilities: []string{"NET_ADMIN"}, DropCapabilities: []string{"ALL"},
				Seccomp: `{"defaultAction": "SCMP_ACT_ALLOW"}`, AppArmor: "mine", UnmaskedProc: true,
				SELinux: v1.SELinuxOptions{User: "u", Role: "r", Type: "t", Level: "s0:c1,c2"},
			},
		}},
		"container_privileged": {app: &runtime.ContainerSpec{
			Identity: identity("app"), Image: "app:1", OOMScoreAdj: adj, Users: runtime.HostUsers,
			Security: runtime.Security{Privileged: true, Seccomp: runtime.SeccompDefault, AppArmor: "unconfined"},
		}},
		"container_mounts": {app: &runtime.ContainerSpec{
			Identity: identity("app"), Image: "app:1", OOMScoreAdj: adj,
			Mounts: []runtime.Mount{
				{HostPath: "/h/slave", ContainerPath: "/c/slave", Propagation: v1.MountPropagationHostToContainer},
				{HostPath: "/h/shared", ContainerPath: "/c/shared", Propagation: v1.MountPropagationBidirectional},
				{HostPath: "/h/none", ContainerPath: "/c/none", Propagation: v1.MountPropagationNone, ReadOnly: true, Recursive: v1.RecursiveReadOnlyDisabled},
				{HostPath: "/h/maybe", ContainerPath: "/c/maybe", ReadOnly: true, Recursive: v1.RecursiveReadOnlyIfPossible},
			},
			Resources: runtime.Resources{Pids: 100},
		}},
		"container_devices": {app: &runtime.ContainerSpec{
			Identity: identity("app"), Image: "app:1", OOMScoreAdj: adj,
			Mounts: []runtime.Mount{
				{HostPath: "/dev/ttyUSB0", ContainerPath: "/dev/modem", Device: true},
				{HostPath: "/dev/sda", ContainerPath: "/dev/disk", Device: true, ReadOnly: true},
			},
		}},
		"container_command": {app: &runtime.ContainerSpec{Identity: identity("app"), Image: "app:1", Command: []string{"/bin/echo"}, Args: []string{}}}, // C027
		"container_args":    {app: &runtime.ContainerSpec{Identity: identity("app"), Image: "app:1", Command: []string{}, Args: []string{"a1"}}},        // C027
		"container_tiny":    {app: &runtime.ContainerSpec{Identity: identity("app"), Image: "app:1", Resources: runtime.Resources{CPUShares: 1, CPUPeriod: 100000, CPUQuota: 1000}}},
	} {
		t.Run(name, func(t *testing.T) {
			engine := newScript(t, map[string][]answer{
				"POST /containers/create": {status(http.StatusCreated, `{"Id": "new"}`)},
			})
			// It ends at the start of the sandbox, which is not in the script.
			test.cfg.PauseImage = "pause:1"
			r := engine.Runtime(t, test.cfg)
			if test.sandbox != nil {
				r.EnsureSandbox(t.Context(), *test.sandbox)
			} else {
				r.EnsureContainer(t.Context(), *test.app)
			}
			var body any
			if err := json.Unmarshal(engine.Body(), &body); err != nil {
				t.Fatalf("the engine was sent %q: %v", engine.Body(), err)
			}
			host := body.(map[string]any)["HostConfig"].(map[string]any)
			if score := host["OomScoreAdj"].(float64); test.sandbox != nil && score != -998 && score != float64(ownOOMScoreAdj(t)) {
				t.Errorf("oom_score_adj %v, want -998 or the lowest that this machine allows", score)
			} else if test.sandbox != nil {
				delete(host, "OomScoreAdj")
			}
			body, _ = telling(body)
			var got bytes.Buffer
			encoder := json.NewEncoder(&got)
			encoder.SetIndent("", "  ")
			if err := encoder.Encode(body); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "requests", name+".json")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func ownOOMScoreAdj(t *testing.T) (adj int) {
	data, err := os.ReadFile("/proc/self/oom_score_adj")
	if err == nil {
		err = json.Unmarshal(bytes.TrimSpace(data), &adj)
	}
	if err != nil {
		t.Fatal(err)
	}
	return adj
}

// telling drops what is null, empty, zero or false, but what false says in Init
// and an empty list of paths.
func telling(v any) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		value := reflect.ValueOf(v)
		return v, v != nil && !value.IsZero() && (value.Kind() != reflect.Slice || value.Len() > 0) && !reflect.DeepEqual(v, []any{0.0, 0.0})
	}
	for key, field := range m {
		kept, telling := telling(field)
		m[key] = kept
		if !telling && key != "Init" && !(strings.HasSuffix(key, "Paths") && field != nil) {
			delete(m, key)
		}
	}
	// An exposed port is an empty object: the key tells.
	return m, true
}

// C088: names of containers follow from long pod names and stay valid.
func TestLongNames(t *testing.T) {
	engine := newScript(t, map[string][]answer{"POST /containers/create": {status(http.StatusCreated, `{"Id": "new"}`)}})
	id := identity("app")
	id.Key.Name = strings.Repeat("a", 253)
	if _, err := engine.Runtime(t, docker.Config{}).EnsureContainer(t.Context(), runtime.ContainerSpec{Identity: id, Image: "app:1"}); err != nil {
		t.Fatal(err)
	}
	if got, want := engine.Calls(), []string{"POST /containers/create?name=" + id.ContainerName()}; !cmp.Equal(got, want) {
		t.Errorf("asked %v, want %v", got, want)
	}
}

// What the engine leaves out of a request, it says, and so does the log: once.
func TestWarningsOfTheEngine(t *testing.T) {
	engine := newScript(t, map[string][]answer{
		"POST /containers/create": {status(http.StatusCreated, `{"Id": "new", "Warnings": ["no memory limits here", "nor swap"]}`)},
	})
	var log strings.Builder
	r, err := docker.New(docker.Config{Host: engine.Host, RootDir: "/r"}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for range 2 {
		if _, err := r.EnsureContainer(t.Context(), appSpec()); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"no memory limits here", "nor swap", identity("app").ContainerName()} {
		want := 1
		if text == identity("app").ContainerName() {
			want = 2
		}
		if got := strings.Count(log.String(), text); got != want {
			t.Errorf("%q is logged %d times, want %d: %s", text, got, want, log.String())
		}
	}
}
