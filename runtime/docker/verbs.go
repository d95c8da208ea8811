package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/podkeeper/podkeeper/runtime"
)

// List implements [runtime.Runtime] with one call.
func (r *Runtime) List(ctx context.Context) ([]runtime.Summary, error) {
	e, err := r.engine(ctx)
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	ctx, cancel := r.limit(ctx, listTimeout)
	defer cancel()
	age := r.ours.begin()
	listed, err := e.ContainerList(ctx, container.ListOptions{All: true, Filters: r.ownerFilter()})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", classify(err))
	}
	var ours []runtime.Summary
	for _, in := range listed {
		if summary, ok := summarize(r.cfg.RootDir, in); ok {
			r.ours.add(summary.ID)
			ours = append(ours, summary)
		}
	}
	r.ours.keep(age)
	r.cleared.Range(func(id, _ any) bool {
		if !r.ours.has(id.(string)) {
			r.cleared.Delete(id)
		}
		return true
	})
	return ours, nil
}

func (r *Runtime) ownerFilter() filters.Args {
	return filters.NewArgs(filters.Arg("label", runtime.LabelOwner+"="+r.cfg.RootDir))
}

// Inspect implements [runtime.Runtime].
func (r *Runtime) Inspect(ctx context.Context, id string) (runtime.Container, error) {
	e, err := r.engine(ctx)
	if err == nil {
		var c runtime.Container
		if c, err = r.inspect(ctx, e, id); err == nil {
			return c, nil
		}
	}
	return runtime.Container{}, fmt.Errorf("inspect container %s: %w", short(id), err)
}

func (r *Runtime) inspect(ctx context.Context, e *engine, id string) (runtime.Container, error) {
	in, err := r.lookup(ctx, e, id)
	if err != nil {
		return runtime.Container{}, classify(err)
	}
	c, ok := observe(r.settings, in)
	if !ok {
		return runtime.Container{}, errNotOurs
	}
	r.ours.add(c.ID)
	return c, nil
}

// errNotOurs makes a foreign container one that is not there (law 6).
var errNotOurs = fmt.Errorf("%w: the container is not ours", runtime.ErrNotFound)

// own returns the connection to act on a container that is ours. Only an id that
// did not come from this Runtime costs an inspect.
func (r *Runtime) own(ctx context.Context, id string) (*engine, error) {
	e, err := r.engine(ctx)
	if err != nil || r.ours.has(id) {
		return e, err
	}
	c, err := r.inspect(ctx, e, id)
	if err == nil && c.ID != id {
		err = fmt.Errorf("%w: no container has this id", runtime.ErrNotFound) // a name, or a part of an id
	}
	return e, err
}

// Start implements [runtime.Runtime].
func (r *Runtime) Start(ctx context.Context, id string) error {
	e, err := r.own(ctx, id)
	if err == nil {
		err = r.start(ctx, e, id)
	}
	if err != nil {
		return fmt.Errorf("start container %s: %w", short(id), err)
	}
	return nil
}

func (r *Runtime) start(ctx context.Context, e *engine, id string) error {
	limited, cancel := r.limit(ctx, defaultCallTimeout)
	defer cancel()
	err := e.ContainerStart(limited, id, container.StartOptions{})
	if !errdefs.IsNotFound(err) {
		return classify(err)
	}
	// Something that the start needs may be missing instead.
	if _, lookup := r.lookup(ctx, e, id); lookup == nil {
		return engineText(err)
	}
	return classify(err)
}

// Stop implements [runtime.Runtime].
func (r *Runtime) Stop(ctx context.Context, id string, grace time.Duration) error {
	e, err := r.own(ctx, id)
	if err == nil {
		err = r.stop(ctx, e, id, grace)
	}
	if err != nil && !errors.Is(err, runtime.ErrNotFound) {
		return fmt.Errorf("stop container %s: %w", short(id), err)
	}
	return nil
}

func (r *Runtime) stop(ctx context.Context, e *engine, id string, grace time.Duration) error {
	grace = max(grace, 0) // to the engine a negative one means for ever
	seconds := int((grace + time.Second - 1) / time.Second)
	ctx, cancel := context.WithTimeout(ctx, grace+min(stopSlack, r.cfg.CallTimeout))
	defer cancel()
	return classify(e.ContainerStop(ctx, id, container.StopOptions{Timeout: &seconds}))
}

// Remove implements [runtime.Runtime].
func (r *Runtime) Remove(ctx context.Context, id string) error {
	e, err := r.own(ctx, id)
	if err == nil {
		err = r.remove(ctx, e, id)
	}
	if err != nil && !errors.Is(err, runtime.ErrNotFound) {
		return fmt.Errorf("remove container %s: %w", short(id), err)
	}
	r.ours.remove(id)
	r.cleared.Delete(id)
	return nil
}

func (r *Runtime) remove(ctx context.Context, e *engine, id string) error {
	ctx, cancel := r.limit(ctx, defaultCallTimeout)
	defer cancel()
	err := e.ContainerRemove(ctx, id, container.RemoveOptions{RemoveVolumes: true})
	if !errdefs.IsConflict(err) {
		return classify(err)
	}
	// It runs, or somebody else is removing it already.
	in, lookup := r.lookup(ctx, e, id)
	switch {
	case lookup != nil:
		return classify(lookup)
	case in.State == nil || in.State.Status != container.StateRemoving:
		return classify(err)
	}
	gone, failed := e.ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case <-gone:
		return nil
	case err := <-failed:
		return classify(err)
	}
}

// UpdateResources implements [runtime.Runtime].
func (r *Runtime) UpdateResources(ctx context.Context, id string, res runtime.Resources) error {
	e, err := r.own(ctx, id)
	if err == nil {
		ctx, cancel := r.limit(ctx, defaultCallTimeout)
		defer cancel()
		_, err = e.ContainerUpdate(ctx, id, container.UpdateConfig{Resources: updatedResources(res)})
		err = classify(err)
	}
	if err != nil {
		return fmt.Errorf("update resources of container %s: %w", short(id), err)
	}
	return nil
}
