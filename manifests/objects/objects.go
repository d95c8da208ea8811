package objects

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/pod"
)

// Finding is a field that is set and not acted on.
type Finding struct {
	// Path is the path of the field, as field.Path prints it.
	Path string
	// Refused: the object is not used while the field asks for something. Else the
	// field has no effect.
	Refused bool
	// Reason is a phrase that goes with the path.
	Reason string
}

// StorageClasses are those that a claim may name. All stand for the same: a
// folder of this machine.
func StorageClasses() []string { return []string{"", "local", "standard"} }

// CheckClaim returns the fields of a claim that are refused or have no effect.
// The claim may have its defaults set.
func CheckClaim(c *v1.PersistentVolumeClaim) []Finding {
	var found []Finding
	add := func(set, refused bool, path, reason string) {
		if !refused {
			reason = "has no effect here: " + reason
		}
		if set {
			found = append(found, Finding{path, refused, reason})
		}
	}
	spec := &c.Spec
	class := spec.StorageClassName
	add(class != nil && !slices.Contains(StorageClasses(), *class), true, "spec.storageClassName",
		`there is only storage of this machine: leave it out, or write one of "", "local" and "standard"`)
	add(spec.VolumeMode != nil && *spec.VolumeMode == v1.PersistentVolumeBlock, true, "spec.volumeMode",
		"a claim is a folder: only Filesystem is supported")
	add(spec.Selector != nil, true, "spec.selector", "there are no volumes to select from: a claim is a folder of its own")
	add(spec.VolumeName != "", true, "spec.volumeName", "there are no volumes to name: a claim is a folder of its own")
	add(spec.DataSource != nil, true, "spec.dataSource", "a claim begins as an empty folder")
	add(spec.DataSourceRef != nil, true, "spec.dataSourceRef", "a claim begins as an empty folder")
	add(spec.VolumeAttributesClassName != nil && *spec.VolumeAttributesClassName != "", false, "spec.volumeAttributesClassName", "there is one kind of storage")
	add(len(spec.Resources.Limits) > 0, false, "spec.resources.limits", "the request is the size")
	for key := range spec.Resources.Requests {
		add(key != v1.ResourceStorage, false, fmt.Sprintf("spec.resources.requests[%s]", key), "the request of storage is the size")
	}
	if policy, set := c.Annotations[pod.ReclaimAnnotation]; set && policy != string(pod.Delete) && policy != string(pod.Retain) {
		add(true, true, fmt.Sprintf("metadata.annotations[%s]", pod.ReclaimAnnotation), "must be delete or retain")
	}
	return found
}

// ConfigMap returns what pods see of a valid c.
func ConfigMap(c *v1.ConfigMap) *pod.Object {
	o := object(pod.ConfigMap, c.Namespace, c.Name, c.Immutable)
	o.Data = values(c.Data, pod.PlainValue)
	o.BinaryData = values(c.BinaryData, func(data []byte) pod.Value { return pod.PlainValue(string(data)) })
	return o
}

// Secret returns what pods see of a valid s that has its defaults.
func Secret(s *v1.Secret) *pod.Object {
	o := object(pod.Secret, s.Namespace, s.Name, s.Immutable)
	o.Type = s.Type
	o.Data = values(s.Data, func(data []byte) pod.Value { return pod.SecretValue(string(data)) })
	return o
}

// Claim returns what pods see of a valid c in which nothing is refused.
func Claim(c *v1.PersistentVolumeClaim) *pod.Object {
	o := object(pod.PersistentVolumeClaim, c.Namespace, c.Name, nil)
	size := c.Spec.Resources.Requests[v1.ResourceStorage]
	o.Claim = &pod.Claim{
		AccessModes: c.Spec.AccessModes,
		Size:        *resource.NewQuantity(size.Value(), size.Format),
		Reclaim:     pod.Retain,
	}
	if c.Spec.StorageClassName != nil {
		o.Claim.StorageClass = *c.Spec.StorageClassName
	}
	if c.Annotations[pod.ReclaimAnnotation] == string(pod.Delete) {
		o.Claim.Reclaim = pod.Delete
	}
	return o
}

func object(kind pod.ObjectKind, namespace, name string, immutable *bool) *pod.Object {
	return &pod.Object{
		Key:       pod.ObjectKey{Kind: kind, Namespace: namespace, Name: name},
		Immutable: immutable != nil && *immutable,
	}
}

func values[T any](data map[string]T, value func(T) pod.Value) map[string]pod.Value {
	if len(data) == 0 {
		return nil
	}
	all := make(map[string]pod.Value, len(data))
	for key, v := range data {
		all[key] = value(v)
	}
	return all
}
