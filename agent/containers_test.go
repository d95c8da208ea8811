package agent_test

import (
	"bytes"
	"context"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/google/uuid"

	"github.com/podkeeper/podkeeper/runtime"
)

// containers returns what the engine has of this world, by pod, name in the pod
// and attempt.
func (w *world) containers() map[string]container.Summary {
	w.t.Helper()
	found := make(map[string]container.Summary)
	for _, c := range w.list() {
		found[c.Labels["io.kubernetes.pod.name"]+"/"+c.Labels["io.kubernetes.container.name"]+"/"+c.Labels["io.podkeeper.attempt"]] = c
	}
	return found
}

func (w *world) list() []container.Summary {
	w.t.Helper()
	list, err := w.engine.ContainerList(context.Background(), container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", runtime.LabelOwner+"="+w.cfg.RootDir)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// ids returns the id of each container that runs.
func (w *world) ids() map[string]string {
	w.t.Helper()
	ids := make(map[string]string)
	for name, c := range w.containers() {
		if c.State == "running" {
			ids[name] = c.ID
		}
	}
	return ids
}

func (w *world) inspect(id string) container.InspectResponse {
	w.t.Helper()
	c, err := w.engine.ContainerInspect(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// output returns what a container wrote.
func (w *world) output(id string) string {
	w.t.Helper()
	stream, err := w.engine.ContainerLogs(context.Background(), id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		w.t.Fatal(err)
	}
	defer stream.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &out, stream); err != nil {
		w.t.Fatal(err)
	}
	return out.String()
}

func (w *world) kill(id string) {
	w.t.Helper()
	if err := w.engine.ContainerKill(context.Background(), id, "KILL"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) removeContainer(id string) {
	w.t.Helper()
	if err := w.engine.ContainerRemove(context.Background(), id, container.RemoveOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stopContainer(id string) {
	w.t.Helper()
	seconds := 0
	if err := w.engine.ContainerStop(context.Background(), id, container.StopOptions{Timeout: &seconds}); err != nil {
		w.t.Fatal(err)
	}
}

// image makes an image of busybox with changes as a Dockerfile has them, under a
// name that no other test has.
func (w *world) image(changes ...string) string {
	w.t.Helper()
	name := "registry.local/" + uuid.NewString()[:8] + ":1"
	w.imageAs(name, changes...)
	return name
}

// imageThatRan makes one of what a script leaves of busybox.
func (w *world) imageThatRan(script string) string {
	w.t.Helper()
	name := "registry.local/" + uuid.NewString()[:8] + ":1"
	w.images = append(w.images, name)
	ctx := context.Background()
	base, err := w.engine.ContainerCreate(ctx, &container.Config{Image: "busybox:stable", Cmd: []string{"sh", "-c", script}}, nil, nil, nil, "")
	if err != nil {
		w.t.Fatal(err)
	}
	defer w.engine.ContainerRemove(ctx, base.ID, container.RemoveOptions{Force: true})
	done, failed := w.engine.ContainerWait(ctx, base.ID, container.WaitConditionNextExit)
	err = w.engine.ContainerStart(ctx, base.ID, container.StartOptions{})
	if err == nil {
		select {
		case <-done:
		case err = <-failed:
		}
	}
	if err == nil {
		_, err = w.engine.ContainerCommit(ctx, base.ID, container.CommitOptions{Reference: name})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return name
}

func (w *world) imageAs(name string, changes ...string) {
	w.t.Helper()
	w.imageFrom(container.Config{Image: "busybox:stable"}, name, changes...)
}

// imageFrom makes one from a container with that configuration.
func (w *world) imageFrom(config container.Config, name string, changes ...string) {
	w.t.Helper()
	ctx := context.Background()
	base, err := w.engine.ContainerCreate(ctx, &config, nil, nil, nil, "")
	if err != nil {
		w.t.Fatal(err)
	}
	defer w.engine.ContainerRemove(ctx, base.ID, container.RemoveOptions{Force: true})
	if _, err := w.engine.ContainerCommit(ctx, base.ID, container.CommitOptions{Reference: name, Changes: changes}); err != nil {
		w.t.Fatal(err)
	}
	w.images = append(w.images, name)
}

// same checks that containers which ran before run still.
func (w *world) same(before map[string]string, names ...string) {
	w.t.Helper()
	after := w.ids()
	for _, name := range names {
		if before[name] == "" || after[name] != before[name] {
			w.t.Errorf("%s was %.12q and is %.12q: it was restarted", name, before[name], after[name])
		}
	}
}

func (w *world) removeImage(name string) {
	w.t.Helper()
	if _, err := w.engine.ImageRemove(context.Background(), name, image.RemoveOptions{Force: true}); err != nil {
		w.t.Errorf("remove image %s: %v", name, err)
	}
}

// imageOf returns the image that a container runs, as its manifest named it.
func (w *world) imageOf(name string) string {
	w.t.Helper()
	c, ok := w.containers()[name]
	if !ok || c.State != "running" {
		w.t.Errorf("%s does not run", name)
		return ""
	}
	return w.inspect(c.ID).Config.Image
}
