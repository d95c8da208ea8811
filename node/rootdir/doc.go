// Package rootdir is the agent's root dir: the files that remember what no
// label of a container can, and the folders of the pods.
//
//	<root>/lock              held by the agent for its life; names its process
//	<root>/.tmp/             files that are being written
//	<root>/pods/<uid>/       one folder per pod, see [Reader.PodDir]
//	<root>/...               whatever else is written by name
//
// [Open] is for the one agent of a root dir, [OpenReader] for everybody else:
// it takes no lock and writes nothing.
//
// A write is whole or did not happen, across a crash of the agent and of the
// machine. Names are relative to the root dir and cannot lead out of it, not
// by dots and not by symbolic links.
//
// It refuses to know what is in the files, to remove a pod's folder while
// anything is mounted below it, and to unmount: that is done by those who
// mounted. The root dir is one file system down to the pods' folders, since
// files are moved into place.
package rootdir
