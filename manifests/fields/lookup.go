package fields

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Lookup finds rules by path. The zero value is not usable: see [NewLookup].
type Lookup struct{ rules map[string]Rule }

// NewLookup returns a lookup over the table.
func NewLookup() Lookup {
	l := Lookup{rules: map[string]Rule{}}
	for _, r := range Table() {
		l.rules[r.Path] = r
	}
	return l
}

// Of returns what holds for the field with this pattern: the most specific rule,
// completed from its parents. Verdict and Class are empty where no rule says.
func (l Lookup) Of(pattern string) Rule {
	var out Rule
	for p := pattern; p != ""; p = parent(p) {
		r, ok := l.rules[p]
		if !ok {
			continue
		}
		if out.Path == "" {
			out.Path, out.Neutral, out.Only, out.Presence = r.Path, r.Neutral, r.Only, r.Presence
		}
		if out.Verdict == "" && r.Verdict != "" {
			out.Verdict, out.Each, out.judged = r.Verdict, r.Each, r.Path
		}
		if out.Reason == "" {
			out.Reason = r.Reason
		}
		if out.Class == "" {
			out.Class = r.Class
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
		for _, f := range structFields(t) {
			leaves(f.typ, join(pattern, f.name), out)
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
	case t == reflect.TypeFor[v1.ResourceList]() && strings.HasPrefix(pattern, "spec.") && strings.Contains(pattern, "ontainers[]."):
		return []string{"cpu", "memory", "ephemeral-storage"}
	case pattern == "metadata.annotations":
		return AgentAnnotations()
	}
	return nil
}

// isLeaf reports whether a value has no fields of its own: a scalar, or a type
// that reads its JSON itself (quantities, times).
func isLeaf(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return true
	}
	return !slices.Contains([]reflect.Kind{reflect.Struct, reflect.Slice, reflect.Map}, t.Kind())
}

type structField struct {
	name  string // "" where it is inlined
	index int
	typ   reflect.Type
}

func structFields(t reflect.Type) []structField {
	out := make([]structField, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, structField{name, i, f.Type})
	}
	return out
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
