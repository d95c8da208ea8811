package oracle

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Sweep yields small pods that are plain but for one field, with what was set:
// each field at the end of a type, with each of the values that look like it.
// Where Generate finds what fields do to each other, this finds what the values
// of each do.
func Sweep() iter.Seq2[*v1.Pod, string] {
	return func(yield func(*v1.Pod, string) bool) {
		for _, r := range routes(reflect.TypeFor[v1.Pod](), nil, "") {
			for _, value := range valuesOf(r.leaf, r.name) {
				p := plain()
				g := &generator{Rand: rand.New(rand.NewPCG(1, 2)), density: 0}
				set(g, reflect.ValueOf(p).Elem(), r, reflect.ValueOf(value))
				if !yield(p, fmt.Sprintf("%s = %.80q", r.path, fmt.Sprint(value))) {
					return
				}
			}
		}
	}
}

func plain() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: v1.PodSpec{
			ServiceAccountName: "bot",
			Containers:         []v1.Container{{Name: "web", Image: "nginx"}},
			Volumes:            []v1.Volume{{Name: "a", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		},
	}
}

// route leads from a pod to a leaf: the indexes of fields, with pointers and
// slices (their first item) followed on the way.
type route struct {
	fields []int
	path   string
	name   string // of the last field
	leaf   reflect.Type
}

func routes(t reflect.Type, fields []int, path string) []route {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.ManagedFieldsEntry](), reflect.TypeFor[v1.PodStatus](),
		reflect.TypeFor[v1.EphemeralContainer]():
		return nil
	}
	if t.Kind() != reflect.Struct || isLeaf(t) {
		return nil
	}
	var all []route
	for i := range t.NumField() {
		f := t.Field(i)
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		at := append(slices.Clone(fields), i)
		if name := path + "." + f.Name; isLeaf(inner) {
			all = append(all, route{at, name, f.Name, inner})
		} else {
			all = append(all, routes(inner, at, name)...)
		}
	}
	return all
}

func isLeaf(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return true
	}
	return t.Kind() != reflect.Struct
}

// set follows r into v, makes what is missing on the way, and sets the leaf.
func set(g *generator, v reflect.Value, r route, value reflect.Value) {
	for n, i := range r.fields {
		if oneOf(v) && v.Field(i).IsZero() {
			v.SetZero()
		}
		v = v.Field(i)
		last := n == len(r.fields)-1
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice {
			if v.Kind() == reflect.Slice {
				if v.Len() == 0 {
					v.Set(reflect.MakeSlice(v.Type(), 1, 1))
					g.fill(v.Index(0), r.name)
				}
				v = v.Index(0)
				continue
			}
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
				if !last {
					g.fill(v.Elem(), r.name)
				}
			}
			v = v.Elem()
		}
	}
	v.Set(value.Convert(v.Type()))
}

func oneOf(v reflect.Value) bool {
	switch v.Interface().(type) {
	case v1.VolumeSource, v1.ProbeHandler, v1.LifecycleHandler, v1.EnvVarSource, v1.VolumeProjection:
		return true
	}
	return false
}

// valuesOf are the values to try for a leaf, by its type and its field's name.
func valuesOf(t reflect.Type, name string) []any {
	var list []any
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return quantitiesOf(strangeQuantities)
	case reflect.TypeFor[intstr.IntOrString]():
		return anys(ports)
	case reflect.TypeFor[v1.ResourceList]():
		for _, name := range append(slices.Clone(resourceNames), strange["key"]...) {
			for _, quantity := range []string{"1Gi", "1.5", "-1", "3Mi"} {
				list = append(list, v1.ResourceList{v1.ResourceName(name): resource.MustParse(quantity)})
			}
		}
		return list
	}
	switch t.Kind() {
	case reflect.String:
		names := slices.Concat(enums[t.Name()], words[name], strange[looks[name]], strange["plain"])
		if strings.HasSuffix(name, "Name") {
			names = slices.Concat(names, strange["signer"], strange["sysctl"], strange["net"])
		}
		slices.Sort(names)
		return anys(slices.Compact(names))
	case reflect.Int32:
		for _, n := range strangeNumbers {
			if int64(int32(n)) == n {
				list = append(list, n)
			}
		}
	case reflect.Int64:
		return anys(strangeNumbers)
	case reflect.Bool:
		return []any{true, false}
	case reflect.Map:
		if t != reflect.TypeFor[map[string]string]() {
			return nil
		}
		for _, look := range []string{"plain", "key"} {
			for _, s := range strange[look] {
				list = append(list, map[string]string{s: "x"}, map[string]string{"x": s})
			}
		}
		for _, key := range specialAnnotations {
			for _, s := range annotationValues {
				list = append(list, map[string]string{key: s})
			}
		}
		list = append(list, map[string]string{"example.com/x": strings.Repeat("a", 256<<10)})
	}
	return list
}

func anys[T any](list []T) []any {
	var all []any
	for _, item := range list {
		all = append(all, item)
	}
	return all
}

func quantitiesOf(list []string) []any {
	var all []any
	for _, text := range list {
		all = append(all, resource.MustParse(text))
	}
	return all
}
