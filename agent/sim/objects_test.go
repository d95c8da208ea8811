package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// content is what an origin said of an object since an instant: a version, or nil.
type content struct {
	since  time.Time
	object *pod.Object
}

// takeObjects takes in which objects an origin holds from now on.
func (t *truth) takeObjects(o pod.Origin, res manifests.Result, failed bool) {
	named := map[pod.ObjectKey]bool{}
	add := func(key pod.ObjectKey, object *pod.Object) {
		if t.objects[key] == nil {
			t.objects[key] = map[pod.Origin][]content{}
		}
		t.objects[key][o] = append(t.objects[key][o], content{time.Now(), object})
	}
	for _, d := range res.Documents {
		if d.Object != nil && !named[d.Object.Key] {
			named[d.Object.Key] = true
			add(d.Object.Key, d.Object)
		}
	}
	for key, origins := range t.objects {
		if _, ever := origins[o]; ever && !named[key] && !failed {
			add(key, nil)
		}
	}
}

// objectNow returns the versions of an object that are said now; sure is false where
// an origin that ever had it cannot be read.
func (t *truth) objectNow(key pod.ObjectKey) (versions []*pod.Object, sure bool) {
	sure = true
	for o, said := range t.objects[key] {
		if last := said[len(said)-1]; last.object != nil {
			versions = append(versions, last.object)
		}
		sure = sure && !t.unsure[o]
	}
	return versions, sure
}

// lacks reports whether an object that a pod cannot do without, as the environment
// of that container, or in a volume for "", is not there, nor was lately, nor when
// the agent began: it may have a copy of what was there before.
func (t *truth) lacks(p *pod.Pod, container string, began time.Time) bool {
	return slices.ContainsFunc(reconcile.References(p.Object), func(r reconcile.Reference) bool {
		if r.Optional || r.Container != container {
			return false
		}
		for o, said := range t.objects[r.Object] {
			if last := said[len(said)-1]; t.unsure[o] || last.object != nil || last.since.Before(began) || last.since.After(time.Now().Add(-stale)) {
				return false
			}
		}
		return true
	})
}

// mayLack reports whether an object that anything of a pod refers to is not surely
// there.
func (t *truth) mayLack(p *pod.Pod) bool {
	return slices.ContainsFunc(reconcile.References(p.Object), func(r reconcile.Reference) bool {
		versions, sure := t.objectNow(r.Object)
		return !sure || len(versions) == 0
	})
}

// given reports whether a variable of a container can be what the manifest of its
// pod asks for: literal, or from any version of an object that was ever said.
func (t *truth) given(namespace string, want v1.EnvVar, env string) bool {
	if want.ValueFrom == nil {
		return env == want.Name+"="+want.Value
	}
	key, field, ok := source(namespace, want)
	if !ok {
		return false
	}
	for _, said := range t.objects[key] {
		for _, c := range said {
			if c.object != nil && env == want.Name+"="+c.object.Data[field].Reveal() {
				return true
			}
		}
	}
	return false
}

// source returns where a variable comes from that an object gives.
func source(namespace string, want v1.EnvVar) (key pod.ObjectKey, field string, ok bool) {
	switch from := want.ValueFrom; {
	case from == nil:
		return key, "", false
	case from.ConfigMapKeyRef != nil:
		return pod.ObjectKey{Kind: pod.ConfigMap, Namespace: namespace, Name: from.ConfigMapKeyRef.Name}, from.ConfigMapKeyRef.Key, true
	case from.SecretKeyRef != nil:
		return pod.ObjectKey{Kind: pod.Secret, Namespace: namespace, Name: from.SecretKeyRef.Name}, from.SecretKeyRef.Key, true
	default:
		return key, "", false
	}
}

// objectsChanged reports whether a container's pod asks for restarts, and a version
// of an object was said since it was made that gives it another value than it has.
func (l *laws) objectsChanged(c *life) bool {
	return c.Spec != nil && l.truth.ever(c.Key, func(p *pod.Pod) bool {
		if p.Object.Annotations[manifests.RestartAnnotation] != "true" {
			return false
		}
		spec := containerOf(p.Object, c.Identity.Name)
		return spec != nil && slices.ContainsFunc(spec.Env, func(e v1.EnvVar) bool {
			key, field, ok := source(c.Key.Namespace, e)
			return ok && l.truth.objectUnlike(key, c.made, func(o *pod.Object) bool {
				return slices.Contains(c.Spec.Env, e.Name+"="+o.Data[field].Reveal())
			})
		})
	})
}

// objectUnlike is unlike for the versions of an object; that it is not there is
// nothing that anything restarts for.
func (t *truth) objectUnlike(key pod.ObjectKey, made time.Time, same func(*pod.Object) bool) bool {
	for _, said := range t.objects[key] {
		for i, s := range said {
			over := i+1 < len(said) && said[i+1].since.Before(made.Add(-stale))
			if !over && s.object != nil && !same(s.object) {
				return true
			}
		}
	}
	return false
}

func containerOf(p *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// shown checks that the volumes of a pod that runs show what their objects say now.
func (d *driver) shown(when string, have []fake.View) {
	for _, c := range have {
		if c.Spec == nil || c.State != runtime.Running {
			continue
		}
		v := d.laws.version(&life{View: c})
		if v == nil {
			continue
		}
		for _, vol := range v.Object.Spec.Volumes {
			if vol.ConfigMap == nil {
				continue
			}
			versions, sure := d.truth.objectNow(pod.ObjectKey{Kind: pod.ConfigMap, Namespace: c.Key.Namespace, Name: vol.ConfigMap.Name})
			has := d.disk.shows(c.UID, vol.Name)
			if sure && len(versions) > 0 && !slices.ContainsFunc(versions, func(o *pod.Object) bool { return has == o.Data["x"].Reveal() }) {
				d.laws.violate(contentLaw, "%s: %s has %q in %s", when, c.Name, has, vol.Name)
			}
		}
	}
}

// editConfigs edits every ConfigMap that can be read: what shows it follows, and what
// does not ask for it does not restart.
func (d *driver) editConfigs() {
	d.laws.hold(contentLaw)
	for _, place := range d.paths() {
		if d.spoilt[place] || place == onPage && d.down || !slices.ContainsFunc(d.files[place], func(p *podSpec) bool { return p.config }) {
			continue
		}
		d.files[place] = slices.Clone(d.files[place])
		for i, p := range d.files[place] {
			if p.config {
				edited := *p
				d.edits++
				edited.label = d.edits
				d.files[place][i] = &edited
			}
		}
		d.put(place)
	}
	d.pass(time.Minute)
	d.converged("after an edit of the ConfigMaps")
	d.laws.hold("")
	d.pass(5 * time.Minute)
}

// asks reports whether a container is to restart when its objects change.
func (l *laws) asks(c *life) bool {
	return l.truth.ever(c.Key, func(p *pod.Pod) bool { return p.Object.Annotations[manifests.RestartAnnotation] == "true" })
}

// ready returns the containers that the agent takes for ready, by id.
func (d *driver) ready() map[string]bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ready := map[string]bool{}
	snap, err := d.agent.loop.Snapshot(ctx, 0)
	if err != nil {
		d.laws.violate(convergence, "the loop does not answer: %v", err)
		return ready
	}
	for _, v := range snap.Pods {
		if v.Busy || !snap.Ready {
			continue // it is not known yet
		}
		for _, c := range slices.Concat(v.Object.Status.InitContainerStatuses, v.Object.Status.ContainerStatuses) {
			ready[c.ContainerID] = c.Ready
		}
	}
	return ready
}

// stillReady checks that what was ready before is, where it is still there.
func (d *driver) stillReady(before map[string]bool) {
	for id, ready := range d.ready() {
		if was, there := before[id]; there && was && !ready && !d.ended(id) {
			d.laws.violate(readyLaw, "%s", id)
		}
	}
}

func (d *driver) ended(id string) bool {
	return !slices.ContainsFunc(d.engine.Containers(), func(c fake.View) bool {
		return strings.HasSuffix(id, c.ID) && c.State == runtime.Running
	})
}
