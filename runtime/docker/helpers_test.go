package docker_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/docker/go-connections/nat"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

// pollUntil waits for what a process in a container does, of which nobody tells.
func pollUntil(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(20 * time.Second); !done(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("nothing happened within 20 s")
		}
	}
}

func natPort(port string) nat.Port { return nat.Port(port) }

func discardLogger() *log.Logger { return log.New(io.Discard, "", 0) }

func readAll(r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	return string(data), err
}

// pods makes pods with an identity of its own on the real engine.
type pods struct {
	*docker.Runtime
	raw somebody
	uid types.UID
}

func newPods(t testing.TB, cfg docker.Config) pods {
	t.Helper()
	r, _ := newRuntime(t, cfg)
	return pods{Runtime: r, raw: somebody{raw(t)}, uid: types.UID(uuid.NewString())}
}

func (p pods) identity(name string) runtime.Identity {
	id := identity(name)
	id.UID, id.Grace, id.Sandbox = p.uid, 0, runtime.SandboxRef{}
	return id
}

func (p pods) sandbox(t testing.TB, edit func(*runtime.SandboxSpec)) runtime.Container {
	t.Helper()
	spec := runtime.SandboxSpec{Identity: p.identity(runtime.SandboxName), Hostname: "web-node", Security: runtime.Security{Seccomp: runtime.SeccompDefault}}
	if edit != nil {
		edit(&spec)
	}
	sandbox, err := p.EnsureSandbox(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return sandbox
}

func (p pods) start(t testing.TB, spec runtime.ContainerSpec) string {
	t.Helper()
	id, err := p.EnsureContainer(t.Context(), spec)
	if err == nil {
		err = p.Start(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (p pods) spec(sandbox runtime.Container, name, image string, command ...string) runtime.ContainerSpec {
	spec := runtime.ContainerSpec{Identity: p.identity(name), Image: image, Command: command}
	spec.Sandbox = sandbox.Ref()
	return spec
}

// output runs a container to its end.
func (p pods) output(t *testing.T, spec runtime.ContainerSpec) string {
	t.Helper()
	id := p.start(t, spec)
	ended, failed := p.raw.ContainerWait(t.Context(), id, container.WaitConditionNotRunning)
	select {
	case <-ended:
	case err := <-failed:
		t.Fatal(err)
	}
	return p.logs(t, id)
}

func (p pods) logs(t *testing.T, id string) string {
	t.Helper()
	stream, err := p.raw.ContainerLogs(t.Context(), id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &out, stream); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// buildImage makes an image from busybox without a build: by commit. It is
// called before newPods, so that the containers go before it does.
func buildImage(t *testing.T, cli *client.Client, name string, changes ...string) {
	t.Helper()
	commitImage(t, cli, name, container.Config{Image: busybox}, changes...)
}

// commitImage makes one from a container with that configuration.
func commitImage(t *testing.T, cli *client.Client, name string, config container.Config, changes ...string) {
	t.Helper()
	base, err := cli.ContainerCreate(t.Context(), &config, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer discard(t, cli, base.ID)
	if _, err := cli.ContainerCommit(t.Context(), base.ID, container.CommitOptions{Reference: name, Changes: changes}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeImage(t, cli, name) })
}

func removeImage(t *testing.T, cli *client.Client, name string) {
	if _, err := cli.ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{Force: true}); err != nil {
		t.Errorf("remove image %s: %v", name, err)
	}
}

// imageName is unlike that of any other test, in whatever process.
func imageName() string { return "registry.local/app:" + uuid.NewString()[:8] }
