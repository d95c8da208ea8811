package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"

	"github.com/podkeeper/podkeeper/runtime"
)

// Image implements [runtime.Runtime].
func (r *Runtime) Image(ctx context.Context, ref string) (runtime.ImageInfo, error) {
	e, err := r.engine(ctx)
	var info runtime.ImageInfo
	if err == nil {
		info, err = r.image(ctx, e, ref)
	}
	if err != nil {
		return runtime.ImageInfo{}, fmt.Errorf("inspect image %s: %w", ref, err)
	}
	return info, nil
}

func (r *Runtime) image(ctx context.Context, e *engine, ref string) (runtime.ImageInfo, error) {
	ctx, cancel := r.limit(ctx, inspectTimeout)
	defer cancel()
	in, err := e.ImageInspect(ctx, ref)
	switch {
	case errdefs.IsNotFound(err):
		return runtime.ImageInfo{}, class(runtime.ErrImageNotFound, err)
	case err != nil:
		return runtime.ImageInfo{}, classify(err)
	}
	info := runtime.ImageInfo{ID: in.ID, Digests: in.RepoDigests}
	if in.Config != nil {
		info.User, info.StopSignal = in.Config.User, in.Config.StopSignal
	}
	return info, nil
}

func (r *Runtime) hasImage(ctx context.Context, e *engine, ref string) (bool, error) {
	_, err := r.image(ctx, e, ref)
	if errors.Is(err, runtime.ErrImageNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Images implements [runtime.Runtime] with two calls.
func (r *Runtime) Images(ctx context.Context) ([]runtime.StoredImage, error) {
	e, err := r.engine(ctx)
	var list []runtime.StoredImage
	if err == nil {
		list, err = r.storedImages(ctx, e)
	}
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	return list, nil
}

func (r *Runtime) storedImages(ctx context.Context, e *engine) ([]runtime.StoredImage, error) {
	ctx, cancel := r.limit(ctx, listTimeout)
	defer cancel()
	// The images first: what a container that comes meanwhile needs is then in use
	// at least where it was there before.
	images, err := e.ImageList(ctx, image.ListOptions{All: true})
	if err != nil {
		return nil, classify(err)
	}
	containers, err := e.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, classify(err)
	}
	return storedImages(images, containers), nil
}

func storedImages(images []image.Summary, containers []container.Summary) []runtime.StoredImage {
	used := make(map[string]bool) // by ID, and by name where a mount has no more
	for _, c := range containers {
		used[c.ImageID] = true
		for _, m := range c.Mounts {
			if m.Type == mount.TypeImage {
				used[m.Source], used[m.Name] = true, true
			}
		}
	}
	for _, i := range images {
		used[i.ParentID] = true
	}
	list := make([]runtime.StoredImage, 0, len(images))
	for _, i := range images {
		stored := runtime.StoredImage{ID: i.ID, Names: known(i.RepoTags), Digests: known(i.RepoDigests), Size: i.Size}
		if i.Created > 0 {
			stored.Built = time.Unix(i.Created, 0)
		}
		stored.InUse = used[i.ID] || slices.ContainsFunc(slices.Concat(stored.Names, stored.Digests), func(name string) bool { return used[name] })
		list = append(list, stored)
	}
	return list
}

// known leaves out how engines spell that there is no name.
func known(refs []string) []string {
	var out []string
	for _, ref := range refs {
		if !strings.HasPrefix(ref, "<none>") {
			out = append(out, ref)
		}
	}
	return out
}

// RemoveImage implements [runtime.Runtime].
func (r *Runtime) RemoveImage(ctx context.Context, id string) error {
	e, err := r.engine(ctx)
	if err == nil {
		err = r.removeImage(ctx, e, id)
	}
	if err != nil && !errors.Is(err, runtime.ErrImageNotFound) {
		return fmt.Errorf("remove image %s: %w", id, err)
	}
	return nil
}

// removeImage never forces: that would take an image from a container that does
// not run. By its ID an engine refuses one that is in use, and also one with
// several names, with the same code.
func (r *Runtime) removeImage(ctx context.Context, e *engine, id string) error {
	refused := r.deleteImage(ctx, e, id)
	if !errors.Is(refused, runtime.ErrInUse) {
		return refused
	}
	list, err := r.storedImages(ctx, e)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(i runtime.StoredImage) bool { return i.ID == id })
	switch {
	case at < 0:
		return nil
	case list[at].InUse:
		return refused
	}
	surplus := surplusNames(list[at])
	for i, name := range surplus {
		if err := r.deleteImage(ctx, e, name); err != nil && !errors.Is(err, runtime.ErrImageNotFound) {
			return errors.Join(err, r.nameAgain(ctx, e, id, surplus[:i]))
		}
	}
	if err := r.deleteImage(ctx, e, id); err != nil {
		return errors.Join(err, r.nameAgain(ctx, e, id, surplus)) // somebody was faster
	}
	return nil
}

// surplusNames are those without which a removal by ID is not refused: that takes
// one name with it, and the digest that goes with this name.
func surplusNames(i runtime.StoredImage) []string {
	if len(i.Names) == 0 {
		return i.Digests[min(1, len(i.Digests)):]
	}
	kept := i.Names[0]
	repository := kept[:max(strings.LastIndexByte(kept, ':'), 0)]
	same := slices.IndexFunc(i.Digests, func(d string) bool { return strings.HasPrefix(d, repository+"@") })
	digests := slices.Clone(i.Digests)
	if same >= 0 {
		digests = slices.Delete(digests, same, same+1)
	}
	return slices.Concat(i.Names[1:], digests)
}

func (r *Runtime) deleteImage(ctx context.Context, e *engine, ref string) error {
	ctx, cancel := r.limit(ctx, defaultCallTimeout)
	defer cancel()
	// PruneChildren would take its nameless parents along, which nobody asked for.
	_, err := e.ImageRemove(ctx, ref, image.RemoveOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return class(runtime.ErrImageNotFound, err)
	case errdefs.IsConflict(err):
		return class(runtime.ErrInUse, err)
	}
	return classify(err)
}

// nameAgain gives an image that stays its names back. A digest cannot be given.
func (r *Runtime) nameAgain(ctx context.Context, e *engine, id string, names []string) error {
	var errs []error
	for _, name := range names {
		if strings.Contains(name, "@") {
			continue
		}
		ctx, cancel := r.limit(context.WithoutCancel(ctx), inspectTimeout)
		errs = append(errs, classify(e.ImageTag(ctx, id, name)))
		cancel()
	}
	return errors.Join(errs...)
}
