package docker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/pause"
)

// EnsureSandbox implements [runtime.Runtime]. A missing pause image is loaded
// (or pulled, where it is not the built-in one).
func (r *Runtime) EnsureSandbox(ctx context.Context, spec runtime.SandboxSpec) (runtime.Container, error) {
	c, err := r.ensureSandbox(ctx, spec)
	if err != nil && ctx.Err() == nil && !spec.HostNetwork && !errors.Is(err, runtime.ErrUnavailable) {
		err = r.networkless(ctx, err)
	}
	if err != nil {
		return runtime.Container{}, fmt.Errorf("sandbox of %s: %w", spec.Key, err)
	}
	return c, nil
}

// networkless classes an error where the network of pods is not there.
func (r *Runtime) networkless(ctx context.Context, err error) error {
	e, noEngine := r.engine(ctx)
	if noEngine != nil {
		return err
	}
	ctx, cancel := r.limit(ctx, inspectTimeout)
	defer cancel()
	if _, missing := e.NetworkInspect(ctx, r.cfg.Network, network.InspectOptions{}); errdefs.IsNotFound(missing) {
		return class(runtime.ErrNoNetwork, missing)
	}
	return err
}

func (r *Runtime) ensureSandbox(ctx context.Context, spec runtime.SandboxSpec) (runtime.Container, error) {
	e, err := r.engine(ctx)
	if err != nil {
		return runtime.Container{}, err
	}
	if err := r.mapped(ctx, e, spec.Users); err != nil {
		return runtime.Container{}, err
	}
	image := pauseImage{ref: r.cfg.PauseImage}
	if image.ref == "" {
		if image.ref, image.archive, err = pause.Image(e.arch); err != nil {
			return runtime.Container{}, err
		}
	}
	req := sandboxRequest(r.settings, spec, image.ref, e.oomFloor)
	id, err := r.create(ctx, e, req)
	if errors.Is(err, runtime.ErrNotFound) {
		if err := r.provide(ctx, e, image); err != nil {
			return runtime.Container{}, fmt.Errorf("pause image %s: %w", image.ref, err)
		}
		if id, err = r.create(ctx, e, req); errors.Is(err, runtime.ErrNotFound) {
			err = notOurNotFound(err)
		}
	}
	if err != nil {
		return runtime.Container{}, fmt.Errorf("create: %w", err)
	}
	if err := r.start(ctx, e, id); err != nil {
		return runtime.Container{}, fmt.Errorf("start %s: %w", short(id), err)
	}
	c, err := r.inspect(ctx, e, id)
	if err != nil {
		return runtime.Container{}, fmt.Errorf("inspect %s: %w", short(id), err)
	}
	return c, nil
}

// EnsureContainer implements [runtime.Runtime].
func (r *Runtime) EnsureContainer(ctx context.Context, spec runtime.ContainerSpec) (string, error) {
	e, err := r.engine(ctx)
	if err == nil {
		err = cmp.Or(e.mountable(spec.Mounts), r.mapped(ctx, e, spec.Users))
	}
	if err != nil {
		return "", fmt.Errorf("create container %s of %s: %w", spec.Name, spec.Key, err)
	}
	id, err := r.create(ctx, e, containerRequest(r.settings, spec, e.oomFloor))
	if err != nil && ctx.Err() == nil && !errors.Is(err, runtime.ErrUnavailable) {
		err = r.missing(ctx, e, spec, err)
	}
	if err != nil {
		return "", fmt.Errorf("create container %s of %s: %w", spec.Name, spec.Key, err)
	}
	return id, nil
}

// missing finds out what a refused create lacked. Engines of different age
// answer with different codes where the sandbox is gone.
func (r *Runtime) missing(ctx context.Context, e *engine, spec runtime.ContainerSpec, refused error) error {
	ctx, cancel := r.limit(ctx, inspectTimeout)
	defer cancel()
	if _, err := e.ContainerInspect(ctx, spec.Sandbox.ID); errdefs.IsNotFound(err) {
		return class(runtime.ErrNotFound, err)
	}
	images := []string{spec.Image}
	for _, m := range spec.Mounts {
		if m.Image != "" {
			images = append(images, m.Image)
		}
	}
	for _, image := range images {
		if _, err := e.ImageInspect(ctx, image); errdefs.IsNotFound(err) {
			return class(runtime.ErrImageNotFound, err)
		}
	}
	if errors.Is(refused, runtime.ErrNotFound) {
		return notOurNotFound(refused)
	}
	return refused
}

// notOurNotFound takes the class off an error: what the engine could not find is
// neither image nor container, so ErrNotFound would lead a caller astray.
func notOurNotFound(err error) error { return fmt.Errorf("the engine lacks something: %v", err) }

// maxNames is how often a create is tried: each time, somebody else's container
// had the name, or nobody had it any more.
const maxNames = 4

// create makes the container once, whatever becomes of the engine's answers:
// one of the same name that is ours is the one that was asked for.
func (r *Runtime) create(ctx context.Context, e *engine, req request) (string, error) {
	name := req.name
	var err error
	for range maxNames {
		var id string
		id, err = r.post(ctx, e, req, name)
		if err == nil {
			r.ours.add(id)
			return id, nil
		}
		if ctx.Err() != nil || !lost(err) && !errdefs.IsConflict(err) {
			return "", classify(err)
		}
		holder, lookup := r.lookup(ctx, e, name)
		if errdefs.IsNotFound(lookup) {
			// Nobody has it: the request never arrived, or who had the name is gone
			// by now, or who takes it is not done yet.
			err = unavailable(err)
			continue
		}
		if lookup != nil {
			return "", classify(err)
		}
		c, ours := observe(r.settings, holder)
		if ours {
			return r.takeOver(req, holder, c)
		}
		// The suffix follows from the holder, so that a lost answer to this
		// create, too, is found again.
		err = fmt.Errorf("name %s is held by container %s, which is not ours", name, short(holder.ID))
		name = req.name + "_" + suffix(holder.ID)
	}
	return "", err
}

func (r *Runtime) post(ctx context.Context, e *engine, req request, name string) (string, error) {
	ctx, cancel := r.limit(ctx, defaultCallTimeout)
	defer cancel()
	created, err := e.ContainerCreate(ctx, req.config, req.host, nil, nil, name)
	for _, text := range created.Warnings {
		// A limit that the kernel does not know is left out, and only said.
		if _, known := r.warned.LoadOrStore(text, true); !known {
			r.log.Warn("the engine does not do all that is asked", "container", name, "warning", text)
		}
	}
	return created.ID, err
}

func (r *Runtime) lookup(ctx context.Context, e *engine, name string) (container.InspectResponse, error) {
	ctx, cancel := r.limit(ctx, inspectTimeout)
	defer cancel()
	return e.ContainerInspect(ctx, name)
}

// takeOver accepts a container of ours for the one that was to be created.
// Labels say what it was made from; with others it is an older attempt, which
// the next look at the engine shows.
func (r *Runtime) takeOver(req request, holder container.InspectResponse, c runtime.Container) (string, error) {
	for label, want := range req.config.Labels {
		if got := holder.Config.Labels[label]; got != want {
			return "", fmt.Errorf("name %s is held by another attempt of ours, %s: its label %s is %q, want %q", req.name, short(c.ID), label, got, want)
		}
	}
	if goingAway(holder) {
		return "", unavailable(fmt.Errorf("container %s, which has the name %s, is being removed", short(c.ID), req.name))
	}
	r.ours.add(c.ID)
	return c.ID, nil
}

func goingAway(in container.InspectResponse) bool {
	return in.State.Status == container.StateRemoving || in.State.Status == container.StateDead
}

func suffix(holderID string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(holderID)))[:8]
}

func short(id string) string { return id[:min(len(id), 12)] }

// pauseImage has an archive where it is the built-in one.
type pauseImage struct {
	ref     string
	archive []byte
}

// provide gets the pause image into the engine, for one caller at a time: the
// others find it there.
func (r *Runtime) provide(ctx context.Context, e *engine, image pauseImage) error {
	select {
	case r.loading <- struct{}{}:
		defer func() { <-r.loading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if there, err := r.hasImage(ctx, e, image.ref); there || err != nil {
		return err
	}
	if image.archive == nil {
		return r.Pull(ctx, image.ref, runtime.Auth{}, nil)
	}
	ctx, cancel := r.limit(ctx, defaultCallTimeout)
	defer cancel()
	loaded, err := e.ImageLoad(ctx, bytes.NewReader(image.archive))
	if err != nil {
		return classify(err)
	}
	defer loaded.Body.Close()
	if loaded.JSON {
		return classify(readPull(loaded.Body, func(pullMessage) {}))
	}
	_, err = io.Copy(io.Discard, loaded.Body)
	return classify(err)
}
