package reconcile_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/manifests/defaults"
	"github.com/podkeeper/podkeeper/manifests/fields"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// TestEachFieldRestartsWhatItsClassSays edits every field of a pod, one at a time,
// and holds what the edit restarts, in words (manifests.Changed) and in deeds (the
// plan), to the field's class.
func TestEachFieldRestartsWhatItsClassSays(t *testing.T) {
	edited := 0
	for _, leaf := range fields.Leaves() {
		for _, in := range placesOf(leaf) {
			before, after := wholePod(t, leaf, in, 0), wholePod(t, leaf, in, 1)
			if before == nil {
				continue // it is identity
			}
			edited++
			want := restartedFor(leaf, in)
			if got := inWords(manifests.Changed(before.Object, after.Object)); got != want {
				t.Errorf("%s (%s) is of class %s: the edit counts as one of %s, want %s", leaf, in, fields.Of(leaf).Class, got, want)
			}
			if got := inDeeds(t, before, after); got != want {
				t.Errorf("%s (%s) is of class %s: the plan restarts %s, want %s", leaf, in, fields.Of(leaf).Class, got, want)
			}
		}
	}
	if edited < 1000 {
		t.Errorf("%d fields were edited", edited)
	}
}

// The containers of the pod, one of each kind, are named after their kinds.
const (
	primaryOne  = "primary"
	initialOne  = "initial"
	sidecarOne  = "sidecar"
	theWholePod = "the pod"
	nothing     = "nothing"
)

// placesOf returns the containers in which a field is edited, "" for one that is
// in none.
func placesOf(leaf string) []string {
	switch {
	case strings.HasPrefix(leaf, "spec.containers[]"):
		return []string{primaryOne}
	case strings.HasPrefix(leaf, "spec.initContainers[]"):
		return []string{initialOne, sidecarOne}
	case strings.HasPrefix(leaf, "spec.ephemeralContainers[]"):
		return nil // no manifest has them
	}
	return []string{""}
}

// restartedFor returns what is to restart for an edit of the field there.
func restartedFor(leaf, in string) string {
	switch fields.Of(leaf).Class {
	case fields.Pod:
		return theWholePod
	case fields.Container:
		if in == initialOne {
			return theWholePod // its definition is the pod's
		}
		return in
	}
	return nothing
}

func inWords(c manifests.Changes) string {
	if len(c.Pod) > 0 {
		return theWholePod
	}
	var names []string
	for name := range c.Containers {
		names = append(names, name)
	}
	return listed(names)
}

func listed(names []string) string {
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return nothing
}

// inDeeds returns what is stopped when a pod that runs is edited.
func inDeeds(t *testing.T, before, after *pod.Pod) string {
	t.Helper()
	in := runningAs(before)
	if plan := reconcile.PlanPod(in); slices.ContainsFunc(plan.Steps, reconcile.Step.Changes) {
		t.Fatalf("before the edit the plan is\n%s", plan)
	}
	in.Desired = after
	var names []string
	for _, s := range reconcile.PlanPod(in).Steps {
		if s.Verb == reconcile.StopContainer && s.Container == runtime.SandboxName {
			return theWholePod
		}
		if s.Verb == reconcile.StopContainer || s.Verb == reconcile.CreateContainer || s.Verb == reconcile.StartContainer {
			names = append(names, s.Container)
		}
	}
	return listed(names)
}

// wholePod returns a pod with that field set to one of two values; nil where the
// field is identity, of which no edit can be told from another pod.
func wholePod(t *testing.T, leaf, in string, which int) *pod.Pod {
	t.Helper()
	always := v1.ContainerRestartPolicyAlways
	some := v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1m")}}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Annotations: map[string]string{}}}
	p.Spec.Volumes = []v1.Volume{{Name: "v"}}
	p.Spec.InitContainers = []v1.Container{{Name: initialOne, Image: "busybox:1"}, {Name: sidecarOne, Image: "busybox:1", RestartPolicy: &always}}
	// The last one keeps the pod in one QoS class.
	p.Spec.Containers = []v1.Container{{Name: primaryOne, Image: "busybox:1"}, {Name: "other", Image: "busybox:1", Resources: some}}
	switch {
	case strings.HasSuffix(leaf, ".name") && (in != "" && strings.Count(leaf, ".") == 2 || leaf == "metadata.name" || leaf == "spec.volumes[].name"),
		leaf == "metadata.namespace", leaf == "metadata.uid", leaf == "apiVersion", leaf == "kind",
		in != "" && strings.HasSuffix(leaf, "Containers[].restartPolicy"): // makes it another kind
		return nil
	case strings.HasSuffix(leaf, ".ports[].hostIP"):
		containerNamedIn(p, in).Ports = []v1.ContainerPort{{HostPort: 1}}
	}
	setLeaf(t, reflect.ValueOf(p).Elem(), leaf, in, which)
	complete(&p.Spec.Volumes[0])
	if c := containerNamedIn(p, in); c != nil && len(c.EnvFrom) > 0 && c.EnvFrom[0].SecretRef == nil && c.EnvFrom[0].ConfigMapRef == nil {
		c.EnvFrom[0].ConfigMapRef = &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "m"}}
	}
	defaults.Pod(p)
	p.Annotations[manifests.HashAnnotation] = string(rune('a' + which))
	return &pod.Pod{Object: p, Origin: origin, Hash: manifests.PodHash(p), Containers: manifests.ContainerHashes(p)}
}

// complete gives the files of a volume what no valid pod lacks.
func complete(v *v1.Volume) {
	var items []v1.DownwardAPIVolumeFile
	if v.DownwardAPI != nil {
		items = v.DownwardAPI.Items
	}
	if v.Projected != nil && len(v.Projected.Sources) > 0 && v.Projected.Sources[0].DownwardAPI != nil {
		items = v.Projected.Sources[0].DownwardAPI.Items
	}
	for i := range items {
		if items[i].FieldRef == nil && items[i].ResourceFieldRef == nil {
			items[i].FieldRef = &v1.ObjectFieldSelector{FieldPath: "metadata.name"}
		}
	}
}

func containerNamedIn(p *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// setLeaf gives the field that a pattern leads to one of two values, and makes
// what is around it. Of a list it takes the first item, of containers the one
// of that name.
func setLeaf(t *testing.T, v reflect.Value, pattern, in string, which int) {
	t.Helper()
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	switch {
	case pattern == "":
		v.Set(reflect.ValueOf(leafValue(t, v.Type(), which)).Convert(v.Type()))
	case strings.HasPrefix(pattern, "[]"):
		if containers, ok := v.Interface().([]v1.Container); ok {
			i := slices.IndexFunc(containers, func(c v1.Container) bool { return c.Name == in })
			setLeaf(t, v.Index(i), pattern[2:], in, which)
			return
		}
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		setLeaf(t, v.Index(0), pattern[2:], in, which)
	case strings.HasPrefix(pattern, "{"):
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		key := strings.Trim(pattern, "{}")
		if key = strings.Replace(key, "*", "2Mi", 1); key == "" {
			key = "example.com/x"
		}
		v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), reflect.ValueOf(leafValue(t, v.Type().Elem(), which)).Convert(v.Type().Elem()))
	default:
		pattern = strings.TrimPrefix(pattern, ".")
		name := pattern
		if end := strings.IndexAny(pattern, ".[{"); end >= 0 {
			name = pattern[:end]
		}
		setLeaf(t, fieldOf(t, v, name), pattern[len(name):], in, which)
	}
}

// fieldOf returns the field of a struct with that name in JSON.
func fieldOf(t *testing.T, v reflect.Value, name string) reflect.Value {
	t.Helper()
	for i := range v.NumField() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i)
		}
		if tag == "" && v.Type().Field(i).Anonymous {
			if _, ok := jsonField(v.Type().Field(i).Type, name); ok {
				return fieldOf(t, v.Field(i), name)
			}
		}
	}
	t.Fatalf("%s has no field %s", v.Type(), name)
	return reflect.Value{}
}

func jsonField(s reflect.Type, name string) (reflect.StructField, bool) {
	for i := range s.NumField() {
		if tag, _, _ := strings.Cut(s.Field(i).Tag.Get("json"), ","); tag == name {
			return s.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

func leafValue(t *testing.T, of reflect.Type, which int) any {
	t.Helper()
	switch of {
	case reflect.TypeFor[resource.Quantity]():
		return []resource.Quantity{resource.MustParse("1G"), resource.MustParse("2G")}[which]
	case reflect.TypeFor[metav1.Time]():
		return metav1.NewTime(start.Add(time.Duration(which) * time.Hour))
	case reflect.TypeFor[intstr.IntOrString]():
		return intstr.FromInt32(int32(8000 + which))
	case reflect.TypeFor[metav1.FieldsV1]():
		return []metav1.FieldsV1{{Raw: []byte(`{"a":1}`)}, {Raw: []byte(`{"b":1}`)}}[which]
	case reflect.TypeFor[v1.RestartPolicy]():
		return []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure}[which]
	}
	switch of.Kind() {
	case reflect.Bool:
		return which == 1
	case reflect.String:
		return []string{"a:1", "b:1"}[which]
	default:
		return 100_000 + which // also a long time
	}
}

// runningAs returns the input of a plan of which nothing is to be done: the pod
// runs, as it is.
func runningAs(p *pod.Pod) reconcile.Input {
	uid := manifests.MintUID("/root", "node", p.Key(), p.Hash)
	in := reconcile.Input{
		Key: p.Key(), Desired: p, MayRemove: true, Images: map[string]reconcile.Image{"busybox:1": {Present: true}},
		Learnt: map[string]reconcile.Learnt{},
		Node:   reconcile.Node{Name: "node", RootDir: "/root", Memory: 8 << 30}, Now: start, Wall: start,
	}
	for _, name := range []string{runtime.SandboxName, initialOne, sidecarOne, primaryOne, "other"} {
		c := runtime.Container{ID: idOf(name, 0), State: runtime.Running, Start: "t0", Started: start.Add(-time.Hour)}
		c.Identity = runtime.Identity{
			Key: p.Key(), UID: uid, Source: pod.FileSource, Name: name, PodHash: p.Hash, ContainerHash: p.Containers[name],
			Sandbox: runtime.SandboxRef{ID: idOf(runtime.SandboxName, 0), Start: "t0"}, Grace: time.Second,
		}
		if c.IsSandbox() {
			c.Sandbox, c.ContainerHash = runtime.SandboxRef{}, pod.Hash{}
		} else {
			c.Resources = reconcile.Resources(p.Object, containerNamedIn(p.Object, name), reconcile.Node{}, c.CgroupParent)
		}
		if name == initialOne {
			c.State, c.Finished = runtime.Exited, start.Add(-time.Hour)
		}
		in.Learnt[c.ID] = reconcile.Learnt{Ended: c.Finished, Probes: &reconcile.ProbeState{Started: true, Ready: true}}
		in.Observed = append(in.Observed, c)
	}
	in.Records = map[types.UID]reconcile.Record{uid: {Pod: p, State: reconcile.State{Key: p.Key(), Origin: &origin, Admitted: start.Add(-time.Hour)}}}
	return in
}
