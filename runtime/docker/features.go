package docker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/docker/docker/api/types/versions"

	"github.com/podkeeper/podkeeper/runtime"
)

// The first API versions that know a kind of mount.
const (
	recursiveReadOnlyAPI = "1.44"
	imageMountAPI        = "1.48"
)

// Features implements [runtime.Runtime].
func (r *Runtime) Features(ctx context.Context) (runtime.Features, error) {
	e, err := r.engine(ctx)
	var f runtime.Features
	if err == nil {
		f, err = r.features(ctx, e)
	}
	if err != nil {
		return runtime.Features{}, fmt.Errorf("ask the engine what it can do: %w", err)
	}
	return f, nil
}

func (r *Runtime) features(ctx context.Context, e *engine) (runtime.Features, error) {
	ctx, cancel := r.limit(ctx, inspectTimeout)
	defer cancel()
	info, err := e.Info(ctx)
	if err != nil {
		return runtime.Features{}, classify(err)
	}
	f := runtime.Features{
		Version:           info.ServerVersion,
		RecursiveReadOnly: e.knows(recursiveReadOnlyAPI) && kernelSetsMountAttributes(info.KernelVersion),
		ImageMounts:       e.knows(imageMountAPI),
		Handlers:          slices.Sorted(maps.Keys(info.Runtimes)),
		CgroupDriver:      runtime.CgroupDriver(info.CgroupDriver),
		Root:              info.DockerRootDir,
	}
	f.CgroupVersion, _ = strconv.Atoi(info.CgroupVersion)
	for _, option := range info.SecurityOptions {
		name, _, _ := strings.Cut(strings.TrimPrefix(option, "name="), ",")
		switch name {
		case "apparmor":
			f.AppArmor = true
		case "selinux":
			f.SELinux = true
		case "seccomp":
			f.Seccomp = true
		case "userns":
			f.OwnUsers = true
		}
	}
	return f, nil
}

// kernelSetsMountAttributes reports whether a kernel can change the flags of a
// whole tree of mounts at once, as it can from 5.12 on.
func kernelSetsMountAttributes(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 12)
}

func (e *engine) knows(api string) bool {
	return versions.GreaterThanOrEqualTo(e.ClientVersion(), api)
}

// mountable reports what of the mounts the engine does not know.
func (e *engine) mountable(mounts []runtime.Mount) error {
	for _, m := range mounts {
		switch {
		case m.Image != "" && !e.knows(imageMountAPI):
			return fmt.Errorf("%w: mount of image %s: it takes API %s, this engine has %s", runtime.ErrUnsupported, m.Image, imageMountAPI, e.ClientVersion())
		case m.Recursive == v1.RecursiveReadOnlyEnabled && !e.knows(recursiveReadOnlyAPI):
			return fmt.Errorf("%w: recursive read-only mount at %s: it takes API %s, this engine has %s", runtime.ErrUnsupported, m.ContainerPath, recursiveReadOnlyAPI, e.ClientVersion())
		}
	}
	return nil
}

// mapped reports whether the engine maps users, where a pod needs that.
func (r *Runtime) mapped(ctx context.Context, e *engine, users runtime.UserNamespace) error {
	if users != runtime.OwnUsers {
		return nil
	}
	f, err := r.features(ctx, e)
	if err == nil && !f.OwnUsers {
		err = fmt.Errorf("%w: users of its own: the engine is not set up to map them (userns-remap)", runtime.ErrUnsupported)
	}
	return err
}
