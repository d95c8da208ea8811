package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"

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
