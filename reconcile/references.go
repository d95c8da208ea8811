package reconcile

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
)

// Reference is one use that a pod makes of an object.
type Reference struct {
	Object pod.ObjectKey
	// Optional: the pod does without it.
	Optional bool
	// Container is whose environment needs it, Volume the volume that shows it;
	// where both are "", images are pulled with it.
	Container, Volume string
}

// References returns every use that a pod makes of objects, in the order of the
// manifest; an object may be there several times.
func References(p *v1.Pod) []Reference {
	var refs []Reference
	add := func(kind pod.ObjectKind, name string, optional *bool, container, volume string) {
		refs = append(refs, Reference{
			Object:   pod.ObjectKey{Kind: kind, Namespace: p.Namespace, Name: name},
			Optional: isTrue(optional), Container: container, Volume: volume,
		})
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, from := range c.EnvFrom {
			switch {
			case from.ConfigMapRef != nil:
				add(pod.ConfigMap, from.ConfigMapRef.Name, from.ConfigMapRef.Optional, c.Name, "")
			case from.SecretRef != nil:
				add(pod.Secret, from.SecretRef.Name, from.SecretRef.Optional, c.Name, "")
			}
		}
		for _, e := range c.Env {
			switch from := e.ValueFrom; {
			case from == nil:
			case from.ConfigMapKeyRef != nil:
				add(pod.ConfigMap, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional, c.Name, "")
			case from.SecretKeyRef != nil:
				add(pod.Secret, from.SecretKeyRef.Name, from.SecretKeyRef.Optional, c.Name, "")
			}
		}
	}
	for _, v := range p.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			add(pod.ConfigMap, v.ConfigMap.Name, v.ConfigMap.Optional, "", v.Name)
		case v.Secret != nil:
			add(pod.Secret, v.Secret.SecretName, v.Secret.Optional, "", v.Name)
		case v.PersistentVolumeClaim != nil:
			add(pod.PersistentVolumeClaim, v.PersistentVolumeClaim.ClaimName, nil, "", v.Name)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				switch {
				case s.ConfigMap != nil:
					add(pod.ConfigMap, s.ConfigMap.Name, s.ConfigMap.Optional, "", v.Name)
				case s.Secret != nil:
					add(pod.Secret, s.Secret.Name, s.Secret.Optional, "", v.Name)
				}
			}
		}
	}
	pulls := true
	for _, s := range p.Spec.ImagePullSecrets {
		add(pod.Secret, s.Name, &pulls, "", "")
	}
	return refs
}

// usesSecrets reports whether containers of the pod may have been given some.
func usesSecrets(p *v1.Pod) bool {
	return slices.ContainsFunc(References(p), func(r Reference) bool {
		return r.Object.Kind == pod.Secret && (r.Container != "" || r.Volume != "")
	})
}

func isTrue(b *bool) bool { return b != nil && *b }

// objects are those that pods may refer to, as they are now.
type objects map[pod.ObjectKey]*pod.Object

// errMissing is an object, or a key in one, that a pod needs and that nothing
// supplies. Its text is the kubelet's.
type errMissing struct{ text string }

func (e errMissing) Error() string { return e.text }

// find returns an object of the pod's namespace. One that is missing and
// optional is nil.
func (o objects) find(p *v1.Pod, kind pod.ObjectKind, name string, optional *bool) (*pod.Object, error) {
	object := o[pod.ObjectKey{Kind: kind, Namespace: p.Namespace, Name: name}]
	if object == nil && !isTrue(optional) {
		return nil, errMissing{fmt.Sprintf("%s %q not found", resourceName(kind), name)}
	}
	return object, nil
}

// resourceName is how the messages of an API server name a kind.
func resourceName(kind pod.ObjectKind) string {
	switch kind {
	case pod.ConfigMap:
		return "configmap"
	case pod.Secret:
		return "secret"
	default:
		return "persistentvolumeclaim"
	}
}

// refersTo reports whether a pod makes any use of one of the objects.
func refersTo(p *pod.Pod, changed map[pod.ObjectKey]bool) bool {
	return p != nil && slices.ContainsFunc(References(p.Object), func(r Reference) bool { return changed[r.Object] })
}
