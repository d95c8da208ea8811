package docker_test

import (
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

// C026.
func TestImageEnvironment(t *testing.T) {
	t.Parallel()
	name := imageName()
	buildImage(t, raw(t), name, `ENV OPTS="-Xa:name=cache,dir=/x y" BASE=img KEEP=1`)
	p := newPods(t, docker.Config{})
	spec := p.spec(p.sandbox(t, nil), "app", name, "env")
	spec.Env = []string{"BASE=pod=1=2", "MULTI=l1\nl2", "BASE2=$(KEEP)", "DUP=2", "EMPTY="}
	got := p.output(t, spec)
	for _, want := range []string{"OPTS=-Xa:name=cache,dir=/x y\n", "\nKEEP=1\n", "\nBASE=pod=1=2\n", "\nMULTI=l1\nl2\n", "\nBASE2=$(KEEP)\n", "\nDUP=2\n", "\nEMPTY=\n"} {
		if strings.Count("\n"+got, want) != 1 {
			t.Errorf("environment lacks %q, or has it twice:\n%s", want, got)
		}
	}
	if strings.Contains(got, "BASE=img") {
		t.Errorf("the image's value was kept:\n%s", got)
	}
}

// C027.
func TestCommandAndArgs(t *testing.T) {
	t.Parallel()
	name := imageName()
	buildImage(t, raw(t), name, `ENTRYPOINT ["/bin/echo","ep"]`, `CMD ["c1","c2"]`)
	p := newPods(t, docker.Config{})
	sandbox := p.sandbox(t, nil)
	for container, test := range map[string]struct {
		command, args []string
		want          string
	}{
		"none":  {nil, nil, "ep c1 c2\n"},
		"args":  {nil, []string{"a1"}, "ep a1\n"},
		"cmd":   {[]string{"/bin/echo", "x"}, nil, "x\n"},
		"both":  {[]string{"/bin/echo", "x"}, []string{"a1"}, "x a1\n"},
		"empty": {[]string{}, []string{}, "ep c1 c2\n"},
	} {
		spec := p.spec(sandbox, container, name, test.command...)
		spec.Args = test.args
		if got := p.output(t, spec); got != test.want {
			t.Errorf("%s: printed %q, want %q", container, got, test.want)
		}
	}
}

// C028, as far as the engine goes: the least that it takes.
func TestSmallestLimits(t *testing.T) {
	t.Parallel()
	p := newPods(t, docker.Config{})
	sandbox := p.sandbox(t, nil)
	for name, want := range map[string]runtime.Resources{
		"tiny":    {CPUShares: 2, CPUPeriod: 100000, CPUQuota: 1000},
		"reqonly": {CPUShares: 256},
		"limonly": {CPUShares: 512, CPUPeriod: 100000, CPUQuota: 50000, Memory: 64 << 20},
		"none":    {CPUShares: 2},
		"pinned":  {CPUShares: 2, CPUSet: "0"},
	} {
		spec := p.spec(sandbox, name, busybox, "sleep", "1000")
		spec.Resources = want
		id := p.start(t, spec)
		c, err := p.Inspect(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.Resources); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		in, err := p.raw.ContainerInspect(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if in.HostConfig.MemorySwap != want.Memory {
			t.Errorf("%s: memory and swap %d, want %d", name, in.HostConfig.MemorySwap, want.Memory)
		}
		if want.CPUSet != "" {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", in.State.Pid))
			if err != nil || !strings.Contains(string(status), "\nCpus_allowed_list:\t0\n") {
				t.Errorf("%s: its process may run elsewhere (%v):\n%s", name, err, status)
			}
		}
		// Limits are lifted in place, all but the CPUs.
		if err := p.UpdateResources(t.Context(), id, runtime.Resources{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c, err = p.Inspect(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		c.Resources.CPUPeriod = 0 // without a quota it says nothing
		if diff := cmp.Diff(runtime.Resources{CPUShares: 1024, CPUSet: want.CPUSet}, c.Resources); diff != "" {
			t.Errorf("%s, lifted (-want +got):\n%s", name, diff)
		}
	}
}

// C138: of an image's own settings only those of a process count.
func TestImageSettings(t *testing.T) {
	t.Parallel()
	name := imageName()
	commitImage(t, raw(t), name, container.Config{Image: busybox, StopSignal: "SIGUSR1"}, `HEALTHCHECK --interval=1s CMD touch /hc && false`, `EXPOSE 7777`, `VOLUME /vol`, `WORKDIR /w`)
	p := newPods(t, docker.Config{})
	script := "trap 'echo usr1; exit 0' USR1; trap 'echo term; exit 0' TERM; pwd > /proc/1/fd/1; touch /ready/it; while :; do sleep 0.1; done"
	spec := p.spec(p.sandbox(t, nil), "app", name, "sh", "-c", script)
	ready := t.TempDir()
	spec.Mounts = []runtime.Mount{{HostPath: ready, ContainerPath: "/ready"}}
	id := p.start(t, spec)
	in, err := p.raw.ContainerInspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if in.State.Health != nil || in.HostConfig.RestartPolicy.Name != "no" || len(in.NetworkSettings.Ports) != 0 {
		t.Errorf("health %v, restart policy %q, ports %v; want none of them", in.State.Health, in.HostConfig.RestartPolicy.Name, in.NetworkSettings.Ports)
	}
	var volume string
	for _, m := range in.Mounts {
		if m.Destination == "/vol" {
			volume = m.Name
		}
	}
	if _, err := p.raw.VolumeInspect(t.Context(), volume); err != nil {
		t.Fatalf("volume of /vol: %v", err)
	}
	waitForFile(t, filepath.Join(ready, "it"))
	if err := p.Stop(t.Context(), id, 20e9); err != nil {
		t.Fatal(err)
	}
	if got, want := p.logs(t, id), "/w\nusr1\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if c, err := p.Inspect(t.Context(), id); err != nil || c.ExitCode != 0 {
		t.Errorf("got %+v, %v; want exit code 0", c, err)
	}
	if err := p.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.raw.VolumeInspect(t.Context(), volume); err == nil {
		t.Errorf("the anonymous volume %s is still there", volume)
	}
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	pollUntil(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	const show = "hostname; for n in net ipc pid; do readlink /proc/self/ns/$n; done"
	host := func(ns string) string {
		text, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for scene, test := range map[string]struct {
		edit func(*runtime.SandboxSpec)
		want []string // hostname and namespaces, "" for one that is not the host's
	}{
		"its own":    {func(*runtime.SandboxSpec) {}, []string{"web-node", "", "", ""}},
		"the host's": {func(s *runtime.SandboxSpec) { s.HostNetwork, s.HostIPC, s.HostPID = true, true, true }, []string{name, host("net"), host("ipc"), host("pid")}},
	} {
		t.Run(scene, func(t *testing.T) {
			p := newPods(t, docker.Config{})
			var hostPID bool
			sandbox := p.sandbox(t, func(s *runtime.SandboxSpec) { test.edit(s); hostPID = s.HostPID })
			var said [2][]string
			for i := range said {
				spec := p.spec(sandbox, fmt.Sprintf("app%d", i), busybox, "sh", "-c", show)
				spec.HostPID = hostPID
				said[i] = strings.Split(strings.TrimSpace(p.output(t, spec)), "\n")
				if len(said[i]) != 4 {
					t.Fatalf("printed %q", said[i])
				}
			}
			// Network and IPC are the pod's, in each of its containers.
			if diff := cmp.Diff(said[0][:3], said[1][:3]); diff != "" {
				t.Errorf("two containers of a pod differ:\n%s", diff)
			}
			for i, want := range test.want {
				got := said[0][i]
				if want != "" && got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				if ns, _, _ := strings.Cut(got, ":"); want == "" && got == host(ns) {
					t.Errorf("got the host's %s", got)
				}
			}
		})
	}
}

// C080: one number for two protocols.
func TestHostPorts(t *testing.T) {
	t.Parallel()
	p := newPods(t, docker.Config{})
	number := freePort(t)
	sandbox := p.sandbox(t, func(s *runtime.SandboxSpec) {
		for _, protocol := range []v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP} {
			s.Ports = append(s.Ports, runtime.Port{ContainerPort: 53, HostPort: number, Protocol: protocol, HostIP: "127.0.0.1"})
		}
	})
	in, err := p.raw.ContainerInspect(t.Context(), sandbox.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"53/tcp", "53/udp"} {
		bound := in.NetworkSettings.Ports[natPort(port)]
		if len(bound) != 1 || bound[0].HostPort != fmt.Sprint(number) || bound[0].HostIP != "127.0.0.1" {
			t.Errorf("%s is bound to %v, want port %d", port, bound, number)
		}
	}
}

func freePort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

func TestMounts(t *testing.T) {
	t.Parallel()
	p := newPods(t, docker.Config{})
	sandbox := p.sandbox(t, nil)
	dir := t.TempDir()
	spec := p.spec(sandbox, "app", busybox, "sh", "-c", "echo hello > /rw/f; echo no > /ro/f; cat /ro/f")
	spec.Mounts = []runtime.Mount{{HostPath: dir, ContainerPath: "/rw"}, {HostPath: dir, ContainerPath: "/ro", ReadOnly: true}}
	if got := p.output(t, spec); !strings.Contains(got, "hello\n") || !strings.Contains(got, "Read-only file system") {
		t.Errorf("printed %q", got)
	}
	// A path that is missing is an error, not made.
	missing := filepath.Join(dir, "missing")
	spec = p.spec(sandbox, "other", busybox, "true")
	spec.Mounts = []runtime.Mount{{HostPath: missing, ContainerPath: "/x"}}
	id, err := p.EnsureContainer(t.Context(), spec)
	if err == nil {
		err = p.Start(t.Context(), id)
	}
	if err == nil || errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("got %v, want an error about the path", err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the engine made %s", missing)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	p := newPods(t, docker.Config{LogMaxSize: 4096, LogMaxFiles: 2})
	spec := p.spec(p.sandbox(t, nil), "app", busybox, "sh", "-c", "for i in $(seq 1000); do echo line $i; done")
	p.output(t, spec)
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		c, err := p.Inspect(t.Context(), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(c.LogPath + "*")
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 1, false: 2}[s.IsSandbox()]; len(files) != want {
			t.Errorf("%s has log files %v, want %d", s.Name, files, want)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.Size() > 3*4096 {
				t.Errorf("%s: %v, %v; want it rotated at 4 KiB", file, info, err)
			}
		}
	}
}

// What a sandbox is told of resolvers is all that its containers get.
func TestResolvConf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dns  runtime.DNS
		want string
	}{
		"servers": {runtime.DNS{Servers: []string{"192.0.2.53"}}, "nameserver 192.0.2.53\noptions ndots:1\n"},
		"all":     {runtime.DNS{Servers: []string{"192.0.2.53", "192.0.2.54"}, Searches: []string{"a.test", "b.test"}, Options: []string{"ndots:3", "edns0"}}, "search a.test b.test\nnameserver 192.0.2.53\nnameserver 192.0.2.54\noptions ndots:3 edns0\n"},
	} {
		p := newPods(t, docker.Config{})
		sandbox := p.sandbox(t, func(s *runtime.SandboxSpec) { s.DNS = &c.dns })
		got := p.output(t, p.spec(sandbox, "app", busybox, "grep", "-v", "^#", "/etc/resolv.conf"))
		if got != c.want {
			t.Errorf("%s: got:\n%s", name, got)
		}
	}
}

// Somebody pauses a container: it runs for all that we know, and can be stopped.
func TestStopPaused(t *testing.T) {
	t.Parallel()
	p := newPods(t, docker.Config{})
	id := p.start(t, p.spec(p.sandbox(t, nil), "app", busybox, "sleep", "1000"))
	if err := p.raw.ContainerPause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if c, err := p.Inspect(t.Context(), id); err != nil || c.State != runtime.Running {
		t.Errorf("paused: %+v, %v", c, err)
	}
	if err := p.Stop(t.Context(), id, 0); err != nil {
		t.Error(err)
	}
	if c, err := p.Inspect(t.Context(), id); err != nil || c.State != runtime.Exited {
		t.Errorf("stopped: %+v, %v", c, err)
	}
}

func TestPullFromLoopback(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(discardLogger())))
	t.Cleanup(server.Close)
	p := newPods(t, docker.Config{})
	name := strings.TrimPrefix(server.URL, "http://") + "/app:1"
	if err := p.Pull(t.Context(), name, runtime.Auth{}, nil); !errors.Is(err, runtime.ErrImageNotFound) {
		t.Errorf("pull of what the registry lacks: %v", err)
	}
	buildImage(t, p.raw.Client, name, "ENV A=1")
	pushed, err := p.raw.ImagePush(t.Context(), name, image.PushOptions{RegistryAuth: "e30="})
	if err != nil {
		t.Fatal(err)
	}
	defer pushed.Close()
	if text, err := readAll(pushed); err != nil || strings.Contains(text, "errorDetail") {
		t.Fatalf("push: %v: %s", err, text)
	}
	removeImage(t, p.raw.Client, name)
	var last runtime.PullProgress
	if err := p.Pull(t.Context(), name, runtime.Auth{}, func(progress runtime.PullProgress) { last = progress }); err != nil {
		t.Fatal(err)
	}
	if last.Image != name || last.Layers == 0 || last.Done != last.Layers {
		t.Errorf("last progress %+v, want all layers done", last)
	}
	if info, err := p.Image(t.Context(), name); err != nil || len(info.Digests) != 1 || !strings.HasPrefix(info.ID, "sha256:") {
		t.Errorf("the image is %+v, %v", info, err)
	}
}
