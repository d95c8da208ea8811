package reconcile

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// DigestKey keys the digests that tell whether what a container uses of an object
// has changed. Without it they say nothing of the values.
type DigestKey []byte

// Uses are digests of what the environment of one attempt of a container took
// from each object, by the object's key as text; "" is one that was not there.
type Uses map[string]string

// uses returns what the environment of a container would take from objects now.
func (k DigestKey) uses(p *v1.Pod, c *v1.Container, all objects) Uses {
	if len(k) == 0 {
		return nil
	}
	sums := make(map[pod.ObjectKey]hash.Hash)
	// of returns the digest under way of an object that is there.
	of := func(kind pod.ObjectKind, name string) (*pod.Object, hash.Hash) {
		key := pod.ObjectKey{Kind: kind, Namespace: p.Namespace, Name: name}
		if _, begun := sums[key]; !begun {
			sums[key] = hmac.New(sha256.New, k)
		}
		return all[key], sums[key]
	}
	for _, from := range c.EnvFrom {
		kind, name := pod.ConfigMap, ""
		if from.ConfigMapRef != nil {
			name = from.ConfigMapRef.Name
		} else if from.SecretRef != nil {
			kind, name = pod.Secret, from.SecretRef.Name
		}
		if object, sum := of(kind, name); object != nil {
			for _, key := range slices.Sorted(maps.Keys(object.Data)) {
				digest(sum, key, object.Data[key].Reveal())
			}
		}
	}
	for _, e := range c.Env {
		from := cmp.Or(e.ValueFrom, &v1.EnvVarSource{})
		var object *pod.Object
		var sum hash.Hash
		var key string
		switch {
		case from.ConfigMapKeyRef != nil:
			key = from.ConfigMapKeyRef.Key
			object, sum = of(pod.ConfigMap, from.ConfigMapKeyRef.Name)
		case from.SecretKeyRef != nil:
			key = from.SecretKeyRef.Key
			object, sum = of(pod.Secret, from.SecretKeyRef.Name)
		}
		if object == nil {
			continue
		}
		if value, there := object.Data[key]; there {
			digest(sum, key, value.Reveal())
		} else {
			digest(sum, key)
		}
	}
	uses := make(Uses, len(sums))
	for key, sum := range sums {
		uses[key.String()] = ""
		if all[key] != nil {
			uses[key.String()] = k.name() + hex.EncodeToString(sum.Sum(nil)[:16])
		}
	}
	return uses
}

// digest adds words to a sum, each with its length.
func digest(sum hash.Hash, words ...string) {
	for _, w := range words {
		// A hash never fails.
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(w))))
		_, _ = sum.Write([]byte(w))
	}
}

// name tells keys apart.
func (k DigestKey) name() string {
	sum := sha256.Sum256(k)
	return hex.EncodeToString(sum[:4]) + "-"
}

// knows reports whether a digest was made with this key; else it says nothing.
func (k DigestKey) knows(digest string) bool {
	return digest == "" || strings.HasPrefix(digest, k.name())
}

// changedSince names the objects of which an attempt took something else than it
// would now. One that is not there now has not changed: nobody may have looked yet.
func (u Uses) changedSince(made Uses, k DigestKey) []string {
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(made)) {
		now, was := u[name], made[name]
		if now != "" && now != was && k.knows(was) {
			changed = append(changed, name)
		}
	}
	return changed
}

// restartsOnChange reports whether the pod asks for a restart of what uses a
// changed object in its environment.
func restartsOnChange(p *v1.Pod) bool {
	return p.Annotations[manifests.RestartAnnotation] == "true"
}

// objectChange returns the objects for whose change a container is to be made
// anew. Where that could not be done now, it goes on as it is.
func (g *generationPlan) objectChange(c runtime.Container) []string {
	spec := containerOf(g.pod.Object, c.Name)
	made := g.record.State.container(c.Name).Uses[c.Attempt]
	if spec == nil || len(made) == 0 || c.Ended() || !restartsOnChange(g.pod.Object) || g.configured(spec) != (Waiting{}) {
		return nil
	}
	return g.in.DigestKey.uses(g.pod.Object, spec, g.in.Objects).changedSince(made, g.in.DigestKey)
}

// recordUses notes what each attempt takes from objects: one that is being made,
// all that is there now; one of which nothing is known, the same, so that the next
// change is seen.
func (g *generationPlan) recordUses() {
	for name, s := range g.state.Containers {
		s.Uses = nil
		g.state.Containers[name] = s
	}
	if !restartsOnChange(g.pod.Object) {
		return
	}
	note := func(name string, attempt int, adopt bool) {
		spec := containerOf(g.pod.Object, name)
		if spec == nil {
			return
		}
		uses := g.in.DigestKey.uses(g.pod.Object, spec, g.in.Objects)
		if adopt {
			maps.DeleteFunc(uses, func(_, digest string) bool { return digest == "" })
			for object, made := range g.record.State.container(name).Uses[attempt] {
				if g.in.DigestKey.knows(made) {
					uses[object] = made
				}
			}
		}
		if len(uses) == 0 {
			return
		}
		s := g.state.container(name)
		if s.Uses == nil {
			s.Uses = make(map[int]Uses)
		}
		s.Uses[attempt] = uses
		g.state.Containers[name] = s
	}
	for _, c := range g.observed {
		if !c.IsSandbox() && !c.Ended() {
			note(c.Name, c.Attempt, true)
		}
	}
	for _, s := range g.plan.Steps {
		if s.Verb == CreateContainer {
			note(s.Container, s.Attempt, false)
		}
	}
}
