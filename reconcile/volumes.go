package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// errMount classes what a volume needs and does not find.
type errMount struct{ err error }

func (e errMount) Error() string { return e.err.Error() }
func (e errMount) Unwrap() error { return e.err }

// VolumeKey names a volume of a generation of a pod.
type VolumeKey struct {
	UID  types.UID
	Name string
}

// ensureVolumes sets volumes up, and notes the content that it gave them. In a
// pod that runs already, one whose objects are gone keeps what it has.
func (j job) ensureVolumes(ctx context.Context, about surroundings, volumes []v1.Volume, runs bool) error {
	j.mounting.Lock()
	defer j.mounting.Unlock()
	for _, v := range volumes {
		if v.Image != nil {
			continue // the engine mounts it
		}
		request := volumeRequest(j.pod, about.uid, v)
		request.Claim = about.claim(v)
		files, shown, err := about.content(v)
		if err != nil && runs {
			continue
		}
		if err == nil {
			request.Files = files
			err = j.deps.Volumes.Ensure(ctx, request)
		}
		if err != nil {
			return errMount{err}
		}
		if shown {
			j.wrote[VolumeKey{about.uid, v.Name}] = files
		}
	}
	return nil
}

// maxEnvFile bounds what is read of a file with variables.
const maxEnvFile = 64 << 10

// envFile reads a file with variables in a volume of the pod.
func (j job) envFile(uid types.UID, name, path string) (text string, found bool, err error) {
	v, _ := volumeOf(j.pod.Object, name)
	j.mounting.Lock()
	defer j.mounting.Unlock()
	data, err := j.deps.Volumes.ReadFile(volumeRequest(j.pod, uid, v), path, maxEnvFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(data), err == nil, err
}

// fileMode returns the permissions of a file, by default those of Kubernetes.
func fileMode(bits *int32) fs.FileMode {
	if bits == nil {
		return fs.FileMode(v1.ConfigMapVolumeSourceDefaultMode)
	}
	return fs.FileMode(*bits)
}

// mounts returns what the engine is asked to mount in a container. What a subPath
// leads to is made ready for it.
func (j job) mounts(uid types.UID, c *v1.Container, env environ) ([]runtime.Mount, error) {
	var list []runtime.Mount
	for i, m := range c.VolumeMounts {
		v, ok := volumeOf(j.pod.Object, m.Name)
		if !ok {
			continue
		}
		mount := mountOf(v, m)
		path, err := subPath(m, env.lookup)
		switch {
		case err == nil && v.Image != nil:
			mount = runtime.Mount{Image: v.Image.Reference, ImagePath: path, ContainerPath: m.MountPath, ReadOnly: true}
		case err == nil:
			mount, err = j.mountFrom(mount, volumeRequest(j.pod, uid, v), volume.Part{Container: c.Name, Index: i, Path: path, Options: m.BindMountOptions})
		}
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.MountPath, err)
		}
		list = append(list, mount)
	}
	return list, nil
}

// mountOf returns what the engine is asked for, less where it comes from.
func mountOf(v v1.Volume, m v1.VolumeMount) runtime.Mount {
	mount := runtime.Mount{ContainerPath: m.MountPath, ReadOnly: m.ReadOnly || onlyRead(v), Propagation: propagation(m)}
	if m.RecursiveReadOnly != nil {
		mount.Recursive = *m.RecursiveReadOnly
	}
	return mount
}

// mountFrom adds where on the host a mount comes from, which is made ready.
func (j job) mountFrom(mount runtime.Mount, r volume.Request, part volume.Part) (runtime.Mount, error) {
	if part.Path == "" && len(part.Options) == 0 {
		mount.HostPath = j.deps.Volumes.Path(r)
		// A privileged container may use every device as it is.
		mount.Device = isDevice(r.Volume) && !isPrivileged(containerOf(j.pod.Object, part.Container))
		return mount, nil
	}
	if len(part.Options) > 0 && mount.ReadOnly && mount.Recursive == "" {
		// Engines forget the options of a mount that they make read-only.
		part.Options, mount.ReadOnly = append(slices.Clone(part.Options), "ro"), false
	}
	j.mounting.Lock()
	defer j.mounting.Unlock()
	var err error
	mount.HostPath, err = j.deps.Volumes.SubPath(r, part)
	return mount, err
}

// subPath returns the path in the volume that is mounted, "" for all of it. In
// subPathExpr each variable has to be there. An error repeats no value.
func subPath(m v1.VolumeMount, lookup func(string) (string, bool)) (string, error) {
	if m.SubPathExpr == "" {
		return m.SubPath, nil
	}
	missing := ""
	path := expand(m.SubPathExpr, func(name string) (string, bool) {
		value, ok := lookup(name)
		if !ok {
			missing = name
		}
		return value, ok
	})
	switch {
	case missing != "":
		return "", fmt.Errorf("subPathExpr %s: missing value for %q", m.SubPathExpr, missing)
	case filepath.IsAbs(path):
		return "", fmt.Errorf("subPathExpr %s: must not be an absolute path", m.SubPathExpr)
	case slices.Contains(strings.Split(path, "/"), ".."):
		return "", fmt.Errorf("subPathExpr %s: must not contain '..'", m.SubPathExpr)
	}
	return path, nil
}

// isDevice reports whether the manifest says that a volume is a device.
func isDevice(v v1.Volume) bool {
	return v.HostPath != nil && v.HostPath.Type != nil &&
		(*v.HostPath.Type == v1.HostPathCharDev || *v.HostPath.Type == v1.HostPathBlockDev)
}

// onlyRead reports whether containers cannot write to a volume.
func onlyRead(v v1.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil ||
		v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly || v.NFS != nil && v.NFS.ReadOnly
}

// volumeRequest returns what is asked of the host for a volume of the pod, less
// what comes from objects.
func volumeRequest(p *pod.Pod, uid types.UID, v v1.Volume) volume.Request {
	r := volume.Request{UID: uid, Namespace: p.Object.Namespace, Volume: v, Shared: propagates(p.Object, v.Name)}
	if v.EmptyDir != nil {
		r.MemoryLimit, r.PageSize = podMemoryLimit(p.Object), podPageSize(p.Object)
	}
	if security := p.Object.Spec.SecurityContext; security != nil {
		r.FSGroup = security.FSGroup
		if security.FSGroupChangePolicy != nil {
			r.ChangePolicy = *security.FSGroupChangePolicy
		}
	}
	return r
}

// claim returns the claim that a volume names, nil where there is none.
func (s surroundings) claim(v v1.Volume) *pod.Object {
	if v.PersistentVolumeClaim == nil {
		return nil
	}
	return s.objects[pod.ObjectKey{Kind: pod.PersistentVolumeClaim, Namespace: s.pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}]
}

// propagates reports whether mounts made later in a volume are to reach a
// container, or to come from one.
func propagates(p *v1.Pod, name string) bool {
	return slices.ContainsFunc(members(p), func(c member) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool {
			return m.Name == name && propagation(m) != ""
		})
	})
}

// propagation returns what the engine is asked for; "" is none.
func propagation(m v1.VolumeMount) v1.MountPropagationMode {
	if m.MountPropagation == nil || *m.MountPropagation == v1.MountPropagationNone {
		return ""
	}
	return *m.MountPropagation
}

// mounted returns the volumes of the pod that a container mounts.
func mounted(p *v1.Pod, c *v1.Container) []v1.Volume {
	var list []v1.Volume
	for _, m := range c.VolumeMounts {
		if v, ok := volumeOf(p, m.Name); ok {
			list = append(list, v)
		}
	}
	return list
}

func volumeOf(p *v1.Pod, name string) (v1.Volume, bool) {
	for _, v := range p.Spec.Volumes {
		if v.Name == name {
			return v, true
		}
	}
	return v1.Volume{}, false
}
