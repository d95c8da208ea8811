// Package cgroup keeps the cgroups of pods: a tree of kubepods with burstable and
// besteffort in it, and one cgroup for each pod, which holds what the pod's
// containers use together.
//
//	cgroupfs   /kubepods/burstable/pod<uid>
//	systemd    /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice
//
// [Driver] knows where a cgroup lies and what an engine is told; [Limits] knows what
// the kernel or systemd is. Both are pure. [Host] makes, sets and removes cgroups of
// version 1 and 2 and knows nothing of pods; a path whose last part is a slice is
// systemd's, who is asked. [Tree] is what an agent keeps of its pods.
//
// A cgroup is ours by its place: whoever removes one has to know that the pod is
// ours (law 6), which a name in the file system does not say.
package cgroup
