package manifests

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// leaf is one field that is set: where, and its value in a form that depends
// neither on the order of Go's struct fields nor on nil against empty.
type leaf struct{ path, value string }

// flatten returns the leaves of a value that are set, sorted by path. Absent and
// empty are the same, as is a boolean that says what it would be without saying.
// Items of lists stand under their index, but under their name where their order
// means nothing: volumes by name, mounts by path.
func flatten(v any, path string) []leaf {
	var out []leaf
	flattenValue(reflect.ValueOf(v), path, false, &out)
	slices.SortFunc(out, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return out
}

// trueByDefault reports whether the absence of a boolean means true.
func trueByDefault(path string) bool {
	return strings.HasSuffix(path, "hostUsers") || strings.HasSuffix(path, "allowPrivilegeEscalation")
}

func flattenValue(v reflect.Value, path string, set bool, out *[]leaf) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v, set = v.Elem(), true
	}
	if value, ok := scalarValue(v); ok {
		if v.Kind() == reflect.Bool && v.Bool() == trueByDefault(path) || !set && v.IsZero() {
			return
		}
		*out = append(*out, leaf{path, value})
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if source, ok := v.Interface().(v1.VolumeSource); ok {
			flattenSource(source, path, out)
			return
		}
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				continue
			}
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			flattenValue(v.Field(i), join(path, name), false, out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			// An empty string among others is still an argument.
			flattenValue(v.Index(i), path+"["+itemName(v.Index(i), i)+"]", true, out)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			flattenValue(v.MapIndex(k), path+"["+k.String()+"]", true, out)
		}
	}
}

// flattenSource also says which kind of volume it is, since an empty one of a
// kind is not the same as an empty one of another.
func flattenSource(source v1.VolumeSource, path string, out *[]leaf) {
	v := reflect.ValueOf(source)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if !v.Field(i).IsNil() {
			*out = append(*out, leaf{join(path, name), "{}"})
			flattenValue(v.Field(i), join(path, name), false, out)
		}
	}
}

func itemName(item reflect.Value, index int) string {
	switch item := item.Interface().(type) {
	case v1.Volume:
		return item.Name
	case v1.VolumeMount:
		return item.MountPath
	}
	return strconv.Itoa(index)
}

// scalarValue returns the text of a value without fields of its own.
func scalarValue(v reflect.Value) (string, bool) {
	switch v.Kind() {
	case reflect.Struct:
		if !reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			return "", false
		}
		// Quantities and the like have one canonical JSON. They marshal always.
		text, _ := json.Marshal(v.Interface())
		return string(text), true
	case reflect.Slice, reflect.Map:
		return "", false
	case reflect.String:
		return strconv.Quote(v.String()), true
	default:
		return fmt.Sprint(v.Interface()), true
	}
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

// under returns the leaves whose path is one of these fields or below it.
func under(leaves []leaf, fields []string) []leaf {
	var out []leaf
	for _, l := range leaves {
		if slices.ContainsFunc(fields, func(f string) bool { return within(l.path, f) }) {
			out = append(out, l)
		}
	}
	return out
}
