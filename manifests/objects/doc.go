// Package objects says what becomes of the objects that stand beside pods in
// manifests (ConfigMap, Secret, PersistentVolumeClaim): which of their fields
// have no effect or are refused here although Kubernetes takes them, and how one
// that is good becomes a [pod.Object].
//
// Their defaults are in package defaults and Kubernetes' own rules in package
// validate, as for pods. This package decodes nothing, decides nothing between
// two objects, and shows no value of a Secret.
package objects
