package docker_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/mount"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

// What an engine can do follows from the version that was agreed on and from what
// it says of itself.
func TestFeatures(t *testing.T) {
	for name, test := range map[string]struct {
		api, info string
		want      runtime.Features
	}{
		"20.10, bare":                        {"1.41", `{"KernelVersion": "6.1.0-13-amd64"}`, runtime.Features{}},
		"20.10, Debian":                      {"1.41", `{"KernelVersion": "6.1.0", "SecurityOptions": ["name=apparmor", "name=seccomp,profile=default", "name=cgroupns"]}`, runtime.Features{AppArmor: true, Seccomp: true}},
		"where its cgroups and its data are": {"1.41", `{"CgroupDriver": "systemd", "CgroupVersion": "2", "DockerRootDir": "/var/lib/docker"}`, runtime.Features{CgroupDriver: runtime.Systemd, CgroupVersion: 2, Root: "/var/lib/docker"}},
		"two runtimes":                       {"1.41", `{"Runtimes": {"runc": {"path": "runc"}, "nvidia": {"path": "nvidia-container-runtime"}}}`, runtime.Features{Handlers: []string{"nvidia", "runc"}}},
		"25":                                 {"1.44", `{"KernelVersion": "5.12.0"}`, runtime.Features{RecursiveReadOnly: true}},
		"25, old kernel":                     {"1.44", `{"KernelVersion": "5.10.0"}`, runtime.Features{}},
		"28, SELinux, mapped users":          {"1.48", `{"KernelVersion": "6.1.0", "SecurityOptions": ["name=selinux", "name=seccomp,profile=builtin", "name=userns"]}`, runtime.Features{RecursiveReadOnly: true, ImageMounts: true, SELinux: true, Seccomp: true, OwnUsers: true}},
	} {
		engine := newScript(t, map[string][]answer{"GET /info": {status(http.StatusOK, test.info)}})
		engine.API = test.api
		got, err := engine.Runtime(t, docker.Config{}).Features(t.Context())
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// A mount that an engine does not know is sent to one that does, exactly so, and
// to no other.
func TestMountsOfNewerEngines(t *testing.T) {
	for name, test := range map[string]struct {
		mount runtime.Mount
		since string // the API version
		want  mount.Mount
	}{
		"recursively read-only": {
			runtime.Mount{HostPath: "/h", ContainerPath: "/c", ReadOnly: true, Recursive: v1.RecursiveReadOnlyEnabled}, "1.44",
			mount.Mount{Type: "bind", Source: "/h", Target: "/c", ReadOnly: true, BindOptions: &mount.BindOptions{Propagation: "rprivate", ReadOnlyForceRecursive: true}},
		},
		"an image": {
			runtime.Mount{Image: "data:1", ContainerPath: "/c"}, "1.48",
			mount.Mount{Type: "image", Source: "data:1", Target: "/c", ReadOnly: true, ImageOptions: &mount.ImageOptions{}},
		},
		"a folder of an image": {
			runtime.Mount{Image: "data:1", ImagePath: "a/b", ContainerPath: "/c", ReadOnly: true}, "1.48",
			mount.Mount{Type: "image", Source: "data:1", Target: "/c", ReadOnly: true, ImageOptions: &mount.ImageOptions{Subpath: "a/b"}},
		},
	} {
		for _, api := range []string{"1.41", "1.43", "1.44", "1.47", "1.48"} {
			engine := newScript(t, map[string][]answer{"POST /containers/create": {status(http.StatusCreated, `{"Id": "new"}`)}})
			engine.API = api
			spec := appSpec()
			spec.Mounts = []runtime.Mount{test.mount}
			_, err := engine.Runtime(t, docker.Config{}).EnsureContainer(t.Context(), spec)
			if slices.Max([]string{api, test.since}) != api { // all of them have as many digits
				if !errors.Is(err, runtime.ErrUnsupported) || len(engine.Calls()) > 0 {
					t.Errorf("%s, API %s: %v, and the engine was asked %v", name, api, err, engine.Calls())
				}
				continue
			}
			var body struct {
				HostConfig struct{ Mounts []mount.Mount }
			}
			if err != nil || json.Unmarshal(engine.Body(), &body) != nil {
				t.Errorf("%s, API %s: %v", name, api, err)
			}
			if diff := cmp.Diff([]mount.Mount{test.want}, body.HostConfig.Mounts); diff != "" {
				t.Errorf("%s, API %s (-want +got):\n%s", name, api, diff)
			}
		}
	}
}

// A pod with users of its own is made by an engine that maps them all, and by no
// other.
func TestOwnUsers(t *testing.T) {
	for info, want := range map[string]error{`{"SecurityOptions": ["name=userns"]}`: nil, `{}`: runtime.ErrUnsupported} {
		engine := newScript(t, map[string][]answer{
			"GET /info":               {status(http.StatusOK, info)},
			"POST /containers/create": {status(http.StatusCreated, `{"Id": "new"}`)},
		})
		r := engine.Runtime(t, docker.Config{PauseImage: "pause:1"})
		app := appSpec()
		app.Users = runtime.OwnUsers
		_, err := r.EnsureContainer(t.Context(), app)
		if !errors.Is(err, want) {
			t.Errorf("container, %s: %v, want %v", info, err, want)
		}
		made := slices.ContainsFunc(engine.Calls(), func(call string) bool { return call != "GET /info" })
		if made != (want == nil) {
			t.Errorf("%s: the engine was asked %v", info, engine.Calls())
		}
		if _, err := r.EnsureSandbox(t.Context(), runtime.SandboxSpec{Identity: identity("POD"), Users: runtime.OwnUsers}); want != nil && !errors.Is(err, want) {
			t.Errorf("sandbox, %s: %v, want %v", info, err, want)
		}
	}
}
