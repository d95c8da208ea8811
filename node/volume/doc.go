// Package volume makes and removes the volumes of pods on the host, where people
// and tools know them from the kubelet:
//
//	<root dir>/pods/<uid>/volumes/kubernetes.io~<kind>/<volume>
//	<root dir>/pods/<uid>/volume-subpaths/<volume>/<container>/<n>
//
// A [Request] says all about one volume. [Host.Ensure] makes it, before each start
// of a container that mounts it; [Host.Path] says where it is without touching
// anything; [Host.SubPath] makes a part of it ready to be mounted, and
// [Host.ReadFile] reads one file of it, both without being led out of it by what
// the pod puts there. [Host.Remove] takes everything away again, what a crashed
// agent left included, since it asks the kernel what is mounted instead of
// remembering.
//
// It refuses to write outside the pod's folder, except for the host path that a
// volume asks to create, to look into a mount that it could not take away, and
// to guess: a kind of volume that it does not know is an error.
package volume
