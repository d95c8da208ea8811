package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/podkeeper/podkeeper/runtime"
)

// registry is one of images, on loopback.
type registry struct {
	t       *testing.T
	address string
	config  string
	said    transcript // its access log
	cmd     *exec.Cmd
}

// newRegistry starts one that holds nothing; more is added to its configuration.
func (w *world) newRegistry(more ...string) *registry {
	w.t.Helper()
	r := &registry{t: w.t, address: "127.0.0.1:" + freePort(w.t), config: w.path("registry.yml")}
	writeFile(w.t, r.config, fmt.Sprintf("version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", w.path("registry"), r.address)+strings.Join(more, ""))
	w.t.Cleanup(r.stop)
	r.start()
	return r
}

func (r *registry) start() {
	r.t.Helper()
	r.cmd = exec.Command("docker-registry", "serve", r.config)
	r.cmd.Stdout, r.cmd.Stderr = &r.said, &r.said
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := startBound(r.t, r.cmd); err != nil {
		r.t.Fatalf("%v (scripts/test-tools.sh installs it)", err)
	}
	poll(r.t, "the registry answers", func() bool {
		conn, err := net.Dial("tcp", r.address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func (r *registry) stop() {
	if r.cmd.Process != nil && r.cmd.ProcessState == nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
}

// asked returns how often somebody asked which image a name is.
func (r *registry) asked(repository string) int {
	return len(r.said.lines("/v2/"+repository+"/manifests/", `http.response.status=200`))
}

// push makes an image whose layer nobody has, puts it into the registry, and
// takes it off the engine.
func (w *world) push(name string) {
	w.t.Helper()
	w.pushAs(name, "e30=")
}

// pushAs pushes with a login in the engine's encoding.
func (w *world) pushAs(name, login string) {
	w.t.Helper()
	ctx := context.Background()
	base, err := w.engine.ContainerCreate(ctx, &container.Config{
		Image: "busybox:stable", Cmd: []string{"dd", "if=/dev/urandom", "of=/blob", "bs=1M", "count=2"},
	}, nil, nil, nil, "")
	if err != nil {
		w.t.Fatal(err)
	}
	defer w.engine.ContainerRemove(ctx, base.ID, container.RemoveOptions{Force: true})
	done, failed := w.engine.ContainerWait(ctx, base.ID, container.WaitConditionNextExit)
	if err := w.engine.ContainerStart(ctx, base.ID, container.StartOptions{}); err != nil {
		w.t.Fatal(err)
	}
	select {
	case <-done:
	case err := <-failed:
		w.t.Fatal(err)
	}
	if _, err := w.engine.ContainerCommit(ctx, base.ID, container.CommitOptions{Reference: name, Changes: []string{sleepCommand}}); err != nil {
		w.t.Fatal(err)
	}
	stream, err := w.engine.ImagePush(ctx, name, image.PushOptions{RegistryAuth: login})
	if err == nil {
		err = streamError(stream)
	}
	if err != nil {
		w.t.Fatalf("push %s: %v", name, err)
	}
	w.removeImage(name)
}

func streamError(stream io.ReadCloser) error {
	defer stream.Close()
	for lines := json.NewDecoder(stream); ; {
		var line struct{ Error string }
		err := lines.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case line.Error != "":
			return errors.New(line.Error)
		}
	}
}

// An image is pulled once, or for each start where the policy says so; while
// the registry is away the container waits, and it starts when it is back.
func TestPullFromARegistry(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	layers := make(map[string]int)
	w.cfg.Progress = func(p runtime.PullProgress) {
		mu.Lock()
		defer mu.Unlock()
		layers[p.Image] = max(layers[p.Image], p.Done)
	}
	r := w.newRegistry()
	lazy, eager, later := r.address+"/lazy:1", r.address+"/eager:1", r.address+"/later:1"
	for _, name := range []string{lazy, eager, later} {
		w.push(name)
		w.images = append(w.images, name)
	}
	pushed := map[string]int{"lazy": r.asked("lazy"), "eager": r.asked("eager")}
	w.start()
	w.write("pull.yaml", manifest("{name: pull}", of("lazy", lazy), of("eager", eager, "imagePullPolicy: Always")))
	w.await("both run", running("pull"))
	mu.Lock()
	if layers[lazy] == 0 || layers[eager] == 0 {
		t.Errorf("progress was told of %v layers, want some of both", layers)
	}
	mu.Unlock()
	pulled := map[string]int{"lazy": r.asked("lazy"), "eager": r.asked("eager")}
	if pulled["lazy"] <= pushed["lazy"] || pulled["eager"] <= pushed["eager"] {
		t.Errorf("the registry was asked %v times after %v: the images came from elsewhere", pulled, pushed)
	}
	before := w.ids()
	w.kill(before["pull-node/lazy/0"])
	w.kill(before["pull-node/eager/0"])
	w.await("both run again", runs("pull", "lazy", 1), runs("pull", "eager", 1))
	if got := r.asked("lazy"); got != pulled["lazy"] {
		t.Errorf("the registry was asked %d times more for an image that is there", got-pulled["lazy"])
	}
	if got := r.asked("eager"); got <= pulled["eager"] {
		t.Error("the registry was not asked at the second start of a container that always pulls")
	}

	r.stop()
	w.write("later.yaml", manifest("{name: later}", of("app", later)))
	w.await("it waits", waits("later", "app", "ErrImagePull", "ImagePullBackOff"))
	w.await("the pause is shown", waits("later", "app", "ImagePullBackOff"))
	r.start()
	w.await("it runs when the registry is back", running("later"))
	if got := len(w.said.lines("image cannot be had", later)); got > 2 {
		t.Errorf("it was tried in vain %d times within seconds", got)
	}
}

// An image by digest is the one with that digest, whatever its tag stands for now,
// and keeps the name that the manifest has for it.
func TestImagesByDigest(t *testing.T) {
	w := newWorld(t)
	r := w.newRegistry()
	name := r.address + "/pinned"
	w.push(name + ":1")
	digest := r.digest("pinned", "1")
	w.push(name + ":1") // another one
	if r.digest("pinned", "1") == digest {
		t.Fatal("both images are one")
	}
	w.images = append(w.images, name+"@"+digest)
	w.write("pin.yaml", manifest("{name: pin}", of("alone", name+"@"+digest), of("tagged", name+":1@"+digest)))
	w.start()
	s := w.await("it runs", running("pin"))
	for container, image := range map[string]string{"alone": name + "@" + digest, "tagged": name + ":1@" + digest} {
		if got := w.imageOf("pin-node/" + container + "/0"); got != image {
			t.Errorf("%s runs %s, want %s", container, got, image)
		}
		c := status(s, "pin", container)
		if c.Image != image || !strings.Contains(c.ImageID, "sha256:") {
			t.Errorf("the status of %s says %s, %s", container, c.Image, c.ImageID)
		}
	}
	ids := w.ids()
	if a, b := w.inspect(ids["pin-node/alone/0"]).Image, w.inspect(ids["pin-node/tagged/0"]).Image; a != b {
		t.Errorf("they run %s and %s, want one image", a, b)
	}
}

// digest asks the registry what a tag stands for.
func (r *registry) digest(repository, tag string) string {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodHead, "http://"+r.address+"/v2/"+repository+"/manifests/"+tag, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.docker.distribution.manifest.v2+json")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	reply.Body.Close()
	return reply.Header.Get("Docker-Content-Digest")
}
