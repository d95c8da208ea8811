package sim

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
)

// content is what was said of an object since an instant, wherever it was said.
type content struct {
	since  time.Time
	object *pod.Object
}

// sayObject takes in a version of an object.
func (t *truth) sayObject(o *pod.Object) {
	said := t.objects[o.Key]
	if n := len(said); n == 0 || !said[n-1].object.SameContent(o) {
		t.objects[o.Key] = append(said, content{time.Now(), o})
	}
}

// given reports whether a variable of a container can be what the manifest of its
// pod asks for: literal, or from any version of an object that was ever said.
func (t *truth) given(namespace string, want v1.EnvVar, env string) bool {
	if want.ValueFrom == nil {
		return env == want.Name+"="+want.Value
	}
	var key pod.ObjectKey
	var field string
	switch from := want.ValueFrom; {
	case from.ConfigMapKeyRef != nil:
		key, field = pod.ObjectKey{Kind: pod.ConfigMap, Namespace: namespace, Name: from.ConfigMapKeyRef.Name}, from.ConfigMapKeyRef.Key
	case from.SecretKeyRef != nil:
		key, field = pod.ObjectKey{Kind: pod.Secret, Namespace: namespace, Name: from.SecretKeyRef.Name}, from.SecretKeyRef.Key
	default:
		return false
	}
	return slices.ContainsFunc(t.objects[key], func(c content) bool {
		value, ok := c.object.Data[field]
		return ok && env == want.Name+"="+value.Reveal()
	})
}

// objectsChanged reports whether a container's pod asks for restarts, and another
// version of an object that the container uses was said since it was made.
func (l *laws) objectsChanged(c *life) bool {
	return l.truth.ever(c.Key, func(p *pod.Pod) bool {
		return p.Object.Annotations[manifests.RestartAnnotation] == "true" && slices.ContainsFunc(reconcile.References(p.Object), func(r reconcile.Reference) bool {
			said := l.truth.objects[r.Object]
			return r.Container == c.Identity.Name && len(said) > 0 && said[len(said)-1].since.After(c.made)
		})
	})
}
