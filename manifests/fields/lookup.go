package fields

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// rules has the table by path. It never changes, so it is made once.
var rules = sync.OnceValue(func() map[string]Rule {
	out := map[string]Rule{}
	for _, r := range Table() {
		out[r.Path] = r
	}
	return out
})

// Of returns what holds for the field with this pattern: the most specific rule,
// completed from its parents. Verdict and Class are empty where no rule says.
func Of(pattern string) Rule {
	var out Rule
	known := rules()
	for p := pattern; p != ""; p = parent(p) {
		r, ok := known[p]
		if !ok {
			continue
		}
		if out.Path == "" {
			out.Path, out.Neutral, out.Only, out.Presence = r.Path, r.Neutral, r.Only, r.Presence
		}
		if out.Verdict == "" && r.Verdict != "" {
			out.Verdict, out.Each, out.Warn, out.judged = r.Verdict, r.Each, r.Warn, r.Path
		}
		if out.Reason == "" {
			out.Reason = r.Reason
		}
		if out.Class == "" {
			out.Class = r.Class
		}
		if out.Tests == nil {
			out.Tests = r.Tests
		}
		if out.Needs == "" {
			out.Needs = r.Needs
		}
	}
	return out
}

// parent drops the last step of a pattern: a name, [], {} or {key}.
func parent(pattern string) string {
	switch {
	case strings.HasSuffix(pattern, "[]"):
		return strings.TrimSuffix(pattern, "[]")
	case strings.HasSuffix(pattern, "}"):
		open := strings.LastIndexByte(pattern, '{')
		return pattern[:open]
	}
	dot := strings.LastIndexByte(pattern, '.')
	return pattern[:max(dot, 0)]
}

// Leaves returns the patterns of all leaf fields of a pod, in the order of the
// types. Of maps whose keys mean something, each known key is a leaf.
func Leaves() []string {
	var out []string
	leaves(reflect.TypeFor[v1.Pod](), "", &out)
	return out
}

func leaves(t reflect.Type, pattern string, out *[]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case isLeaf(t):
		*out = append(*out, pattern)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			leaves(t.Field(i).Type, join(pattern, fieldName(t, i)), out)
		}
	case t.Kind() == reflect.Slice:
		leaves(t.Elem(), pattern+"[]", out)
	case t.Kind() == reflect.Map:
		for _, key := range knownKeys(t, pattern) {
			*out = append(*out, pattern+"{"+key+"}")
		}
		leaves(t.Elem(), pattern+"{}", out)
	}
}

func knownKeys(t reflect.Type, pattern string) []string {
	switch {
	case t == reflect.TypeFor[v1.ResourceList]() && (strings.Contains(pattern, "ontainers[].") || strings.HasPrefix(pattern, "spec.resources.")):
		return []string{"cpu", "memory", "ephemeral-storage", hugePages}
	case pattern == "metadata.annotations":
		return AgentAnnotations()
	}
	return nil
}

// hugePages stands for those of every size.
const hugePages = v1.ResourceHugePagesPrefix + "*"

// key returns the key of a map as patterns have it.
func key(name string) string {
	if strings.HasPrefix(name, v1.ResourceHugePagesPrefix) {
		return hugePages
	}
	return name
}

// isLeaf reports whether a value has no fields of its own: a scalar, or a type
// that reads its JSON itself (quantities, times).
func isLeaf(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	case reflect.Slice, reflect.Map:
		return false
	}
	return true
}

// fieldName returns the JSON name of a field of a struct, "" where it is inlined.
func fieldName(t reflect.Type, i int) string {
	name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
	return name
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
