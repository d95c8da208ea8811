// Package credential finds how to log in to the registry of an image: by the
// pull secrets of a pod, and by what the node's docker configuration says, its
// credential helpers included.
//
// An entry holds for a registry, or for what lies below a path in one, and each
// part of a host may have wildcards, as in the kubelet's configuration. All that
// hold for an image are tried, the most specific first, secrets before the node.
//
// Everything is read anew for each pull: people log in and out, and tokens end.
// No error repeats what stands in a secret, a file or a helper's answer. The
// package never asks a registry, and never writes.
package credential
