// Package pod is the vocabulary of the agent: the key of a pod, a desired pod,
// the set of all that is desired, what is wrong with a manifest, and the
// reasons that people read.
//
// It is a leaf. It imports nothing of this module, does no I/O, and its values
// are never changed once they were handed on: a new version is a new value.
// There are two shapes of pod only, [Pod] (desired) here and the observed one
// in package runtime.
package pod
