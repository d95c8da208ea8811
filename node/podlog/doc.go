// Package podlog keeps the symbolic links by which log shippers find the logs
// of containers, in the places where a kubelet has them:
//
//	<PodsDir>/<namespace>_<pod>_<uid>/.podkeeper          -> the agent's root dir
//	<PodsDir>/<namespace>_<pod>_<uid>/<container>/<n>.log -> the engine's file
//	<ContainersDir>/<pod>_<namespace>_<container>-<id>.log -> the link above
//
// Several agents, and a kubelet, may share these folders (law 6). Neither a
// name nor a dangling target tells whose a link is: names are the same for
// all, and a target is missing for a moment whenever the engine rotates the
// file. So each pod's folder names its owner, from before its first link until
// after its last one:
//
//   - A link below PodsDir is ours if it lies in a folder that names us, and is
//     called as we call links.
//   - A link in ContainersDir is ours if it points to such a place in a folder
//     that names us, and is called as that place says. It is made after the one
//     it points to and removed before it, so a crash in between leaves none
//     whose owner is unknown.
//   - [Sweep] removes those of ours that are not to be kept. One that is to be
//     kept stays, dangling or not.
//
// Only links and empty folders are ever removed. It refuses to read logs, to
// rotate them, and to put a link where something other than a link is.
package podlog
