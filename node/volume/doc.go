// Package volume makes and removes the volumes of a pod on the host, where
// people and tools know them from the kubelet:
//
//	<pod dir>/volumes/kubernetes.io~empty-dir/<volume>
//
// [Ensure] is for one volume, before each start of a container that mounts it;
// [Path] says where it is without touching anything; [Remove] takes everything
// away again, what a crashed agent left included, since it asks the kernel what
// is mounted instead of remembering.
//
// The calls for one pod dir must not overlap; those for different ones may.
//
// It refuses to write outside the pod dir, except for the host path that a
// volume asks to create, to look into a mount that it could not take away, and
// to guess: a kind of volume that it does not know is an error.
package volume
