package reconcile

import (
	"context"
	"io/fs"

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
		request := volumeRequest(j.pod, about.uid, v)
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

// fileMode returns the permissions of a file, by default those of Kubernetes.
func fileMode(bits *int32) fs.FileMode {
	if bits == nil {
		return fs.FileMode(v1.ConfigMapVolumeSourceDefaultMode)
	}
	return fs.FileMode(*bits)
}

// mounts returns what the engine is asked to mount in a container.
func (j job) mounts(uid types.UID, c *v1.Container) []runtime.Mount {
	var list []runtime.Mount
	for _, m := range c.VolumeMounts {
		if v, ok := volumeOf(j.pod.Object, m.Name); ok {
			path := j.deps.Volumes.Path(volumeRequest(j.pod, uid, v))
			list = append(list, runtime.Mount{HostPath: path, ContainerPath: m.MountPath, ReadOnly: m.ReadOnly})
		}
	}
	return list
}

// volumeRequest returns what is asked of the host for a volume of the pod.
func volumeRequest(p *pod.Pod, uid types.UID, v v1.Volume) volume.Request {
	return volume.Request{UID: uid, Namespace: p.Object.Namespace, Volume: v}
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
