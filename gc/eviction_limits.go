package gc

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
)

// Limited reports whether there is a limit to what the files of a pod may take.
func Limited(p *v1.Pod) bool {
	for _, v := range p.Spec.Volumes {
		if sizeLimit(v) > 0 {
			return true
		}
	}
	limited := false
	eachContainer(p, func(c *v1.Container) { limited = limited || storageLimit(c) > 0 })
	return limited
}

// OverLimit returns the verdict about a pod that uses more of the disk than it
// may; ok is false where it does not, or is not to be ended at all. What nobody has
// looked at is within its limits.
func OverLimit(c Candidate) (v pod.Verdict, ok bool) {
	if c.Stats == nil || pod.Exempt(c.Pod.Object) {
		return pod.Verdict{}, false
	}
	signal, why := "emptydirfs.limit", overVolumeLimit(c)
	if why == "" {
		signal, why = "ephemeralpodfs.limit", overPodLimit(c)
	}
	if why == "" {
		signal, why = "ephemeralcontainerfs.limit", overContainerLimit(c)
	}
	return pod.Verdict{
		UID: c.UID, Hash: c.Pod.Hash, Reason: pod.Evicted, Message: why, Cause: pod.OwnLimit, Signal: signal, Grace: hardGrace,
	}, why != ""
}

func overVolumeLimit(c Candidate) string {
	for _, v := range c.Pod.Object.Spec.Volumes {
		used, limit := c.Stats.Volumes[v.Name], sizeLimit(v)
		if limit > 0 && used.Bytes > limit && !used.Time.Before(c.Since) {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q: it is %s.", v.Name, showBytes(limit), showBytes(used.Bytes))
		}
	}
	return ""
}

// overPodLimit holds the pod to the sum of the limits of containers that run beside
// each other, or to the limit of one that runs before them, if that is more.
func overPodLimit(c Candidate) string {
	var limit, before int64
	for i := range c.Pod.Object.Spec.Containers {
		limit += storageLimit(&c.Pod.Object.Spec.Containers[i])
	}
	for i := range c.Pod.Object.Spec.InitContainers {
		init := &c.Pod.Object.Spec.InitContainers[i]
		if init.RestartPolicy != nil && *init.RestartPolicy == v1.ContainerRestartPolicyAlways {
			limit += storageLimit(init)
		} else {
			before = max(before, storageLimit(init))
		}
	}
	if limit > 0 {
		limit = max(limit, before)
	}
	used, _ := c.files(Place{Layers: true, Volumes: true}, nil)
	if limit == 0 || used.Bytes <= limit {
		return ""
	}
	return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s: it is %s.", showBytes(limit), showBytes(used.Bytes))
}

func overContainerLimit(c Candidate) (why string) {
	eachContainer(c.Pod.Object, func(container *v1.Container) {
		used, _ := c.files(Place{Layers: true}, func(name string) bool { return name == container.Name })
		if limit := storageLimit(container); limit > 0 && used.Bytes > limit && why == "" {
			why = fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q: it is using %s.", container.Name, showBytes(limit), showBytes(used.Bytes))
		}
	})
	return why
}

// sizeLimit returns the limit of an emptyDir on the disk, 0 for none. One in
// memory holds no more than its limit anyway.
func sizeLimit(v v1.Volume) int64 {
	if !onDisk(v) || v.EmptyDir.SizeLimit == nil {
		return 0
	}
	return v.EmptyDir.SizeLimit.Value()
}

// onDisk reports whether the files of a volume are the pod's own, on the disk.
func onDisk(v v1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumDefault
}

func storageLimit(c *v1.Container) int64 { return c.Resources.Limits.StorageEphemeral().Value() }

func eachContainer(p *v1.Pod, f func(*v1.Container)) {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			f(&list[i])
		}
	}
}
