package oracle

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// breakOne changes one value somewhere in p.
func (g *generator) breakOne(p *v1.Pod) {
	var places []place
	collect(reflect.ValueOf(&p.Spec).Elem(), "Spec", &places)
	if g.chance(0.15) {
		places = nil
		collect(reflect.ValueOf(&p.ObjectMeta).Elem(), "ObjectMeta", &places)
	}
	at := g.place(places)
	if g.chance(0.15) {
		at.value.SetZero()
		return
	}
	g.change(at.value, at.name)
}

func (g *generator) change(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			g.fill(v, name)
		} else {
			v.SetZero()
		}
	case reflect.Slice:
		g.breakSlice(v, name)
	case reflect.Map:
		g.breakMap(v)
	case reflect.String:
		v.SetString(g.word(v, name, true))
	case reflect.Int32, reflect.Int64:
		v.SetInt(pick(g, strangeNumbers))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Struct:
		g.fill(v, name)
	}
}

// reach changes one leaf of v's type, each with the same likelihood, and makes
// what is around it where it is not there. So the fields that are seldom set have
// their share too.
func (g *generator) reach(v reflect.Value, name string) {
	switch v.Interface().(type) {
	case v1.VolumeSource, v1.ProbeHandler, v1.LifecycleHandler, v1.EnvVarSource, v1.VolumeProjection:
		if g.chance(0.8) {
			v.SetZero()
		}
	case resource.Quantity, intstr.IntOrString, metav1.Time, *metav1.Time, []metav1.ManagedFieldsEntry:
		g.fill(v, name)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			g.fill(v, name)
		}
		g.reach(v.Elem(), name)
	case reflect.Slice:
		if v.Len() == 0 {
			item := reflect.New(v.Type().Elem()).Elem()
			g.fill(item, name)
			v.Set(reflect.Append(v, item))
		}
		g.reach(v.Index(g.IntN(v.Len())), name)
	case reflect.Struct:
		n := g.IntN(leaves(v.Type()))
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if n -= leaves(f.Type); n < 0 {
				g.reach(v.Field(i), f.Name)
				return
			}
		}
	default:
		if g.chance(0.5) {
			g.fill(v, name)
		} else {
			g.change(v, name)
		}
	}
}

// leaves counts the fields at the ends of a type, but no list of containers more
// than the rules about it deserve.
func leaves(t reflect.Type) int {
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[metav1.Time]():
		return 1
	case reflect.TypeFor[[]v1.EphemeralContainer]():
		return 20
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return leaves(t.Elem())
	case reflect.Struct:
		sum := 0
		for i := range t.NumField() {
			sum += leaves(t.Field(i).Type)
		}
		return sum
	}
	return 1
}

// place is one of places, half of the time a string that is set: most rules are
// about those, and most places are fields that are not set.
func (g *generator) place(places []place) place {
	if g.chance(0.5) {
		var set []place
		for _, p := range places {
			if p.value.Kind() == reflect.String && p.value.String() != "" {
				set = append(set, p)
			}
		}
		if len(set) > 0 {
			return pick(g, set)
		}
	}
	return pick(g, places)
}

func (g *generator) breakSlice(v reflect.Value, name string) {
	if n := v.Len(); n > 0 && g.chance(0.6) {
		v.Set(reflect.Append(v, deepCopy(v.Index(g.IntN(n)))))
		return
	}
	item := reflect.New(v.Type().Elem()).Elem()
	if g.chance(0.8) {
		g.fill(item, name)
	}
	for range 1 + g.IntN(4)/3*g.IntN(40) {
		v.Set(reflect.Append(v, item))
	}
}

func (g *generator) breakMap(v reflect.Value) {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	value := reflect.ValueOf(g.strange(""))
	key := reflect.ValueOf(g.strange("Key"))
	if v.Type() == reflect.TypeFor[v1.ResourceList]() {
		key = reflect.ValueOf(v1.ResourceName(g.resourceName()))
		value = reflect.ValueOf(resource.MustParse(pick(g, strangeQuantities)))
	} else if g.chance(0.3) {
		key = reflect.ValueOf(pick(g, specialAnnotations))
		value = reflect.ValueOf(pick(g, annotationValues))
	}
	if v.Type().Key() == key.Type() && v.Type().Elem() == value.Type() {
		v.SetMapIndex(key, value)
	}
}

func (g *generator) resourceName() string {
	if g.chance(0.5) {
		return pick(g, resourceNames)
	}
	return g.strange("Key")
}

func deepCopy(v reflect.Value) reflect.Value {
	if !v.CanAddr() {
		return v
	}
	if m := v.Addr().MethodByName("DeepCopy"); m.IsValid() {
		return m.Call(nil)[0].Elem()
	}
	return v
}

// place is a value that can be changed.
type place struct {
	value reflect.Value
	name  string // of the field that it is, or is in
}

func collect(v reflect.Value, name string, places *[]place) {
	switch v.Interface().(type) {
	case metav1.Time, *metav1.Time, []metav1.ManagedFieldsEntry, resource.Quantity, intstr.IntOrString:
		return
	}
	*places = append(*places, place{v, name})
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			collect(v.Elem(), name, places)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			collect(v.Field(i), v.Type().Field(i).Name, places)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), name, places)
		}
	}
}
