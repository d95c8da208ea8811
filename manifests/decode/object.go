package decode

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxValues bounds one object: a list of ten million empty containers is small
// as text, and large as containers.
const maxValues = 100_000

// Flaw says what kind of thing is wrong with a field.
type Flaw int

// The flaws.
const (
	// Mismatch is a value that its field cannot hold.
	Mismatch Flaw = iota
	// Unknown is a field that the type does not have.
	Unknown
	// Duplicate is a key that stands in a mapping again; the last one counts.
	Duplicate
)

// Finding is something that is wrong with a field. It holds no values.
type Finding struct {
	Flaw Flaw
	// Path is the path of the field, as field.Path prints it.
	Path string
	Position
	Message string
}

// Fill holds a tree against the type of the object that into points to, and
// fills in all that fits, which is all of it when there is no finding. It
// returns what it filled in as JSON, compact and with sorted keys. Field names
// count in their exact case. Keys of the root that begin with x- are nobody's
// business: they carry anchors.
func Fill(root *Node, into any) ([]byte, []Finding) {
	f := filler{types: map[reflect.Type]map[string]reflect.Type{}}
	if root.nodes > maxValues {
		f.add(Mismatch, "", Position{root.Line, root.Column}, "holds more than the limit of %d values", maxValues)
		return nil, f.findings
	}
	fit := f.value(root, reflect.TypeOf(into).Elem(), "")
	if fit == nil {
		return nil, f.findings
	}
	text := fit.JSON()
	if err := json.Unmarshal(text, into); err != nil {
		// Every value was tried before; still, never go on with half an object.
		f.add(Mismatch, "", Position{root.Line, root.Column}, "cannot be read as a %s", reflect.TypeOf(into).Elem().Name())
		return nil, f.findings
	}
	return text, f.findings
}

// filler collects what is found in one object.
type filler struct {
	types    map[reflect.Type]map[string]reflect.Type // the fields of structs by JSON name
	findings []Finding
}

func (f *filler) add(flaw Flaw, path string, at Position, format string, args ...any) {
	f.findings = append(f.findings, Finding{flaw, path, at, fmt.Sprintf(format, args...)})
}

func (f *filler) mismatch(n *Node, path, want string) *Node {
	f.add(Mismatch, path, Position{n.Line, n.Column}, "must be %s, not %s", want, n.Kind)
	return nil
}

// value returns the part of a value that a type can hold, nil where that is
// nothing at all.
func (f *filler) value(n *Node, t reflect.Type, path string) *Node {
	if n.Kind == Null {
		return n
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return f.special(n, t, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return f.structure(n, t, path)
	case reflect.Map:
		return f.mapping(n, t, path)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return f.bytes(n, path)
		}
		return f.list(n, t, path)
	case reflect.String:
		if n.Kind == Number || n.Kind == Bool {
			return f.mismatch(n, path, "a string (write it in quotes)")
		}
		return f.scalar(n, String, path)
	case reflect.Bool:
		return f.scalar(n, Bool, path)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return f.integer(n, t, path)
	case reflect.Float32, reflect.Float64:
		return f.scalar(n, Number, path)
	default:
		return n
	}
}

func (f *filler) scalar(n *Node, want Kind, path string) *Node {
	if n.Kind != want {
		return f.mismatch(n, path, want.String())
	}
	return n
}

func (f *filler) integer(n *Node, t reflect.Type, path string) *Node {
	if n.Kind != Number {
		return f.mismatch(n, path, "a number")
	}
	if _, err := strconv.ParseInt(n.Text, 10, t.Bits()); err != nil {
		f.add(Mismatch, path, Position{n.Line, n.Column}, "must be a whole number of %d bits", t.Bits())
		return nil
	}
	return n
}

func (f *filler) bytes(n *Node, path string) *Node {
	if n.Kind != String {
		return f.mismatch(n, path, "a string of base64")
	}
	if _, err := base64.StdEncoding.DecodeString(n.Text); err != nil {
		f.add(Mismatch, path, Position{n.Line, n.Column}, "is not valid base64")
		return nil
	}
	return n
}

// special holds a value against a type that reads its JSON itself.
func (f *filler) special(n *Node, t reflect.Type, path string) *Node {
	// These would read more than one line of JSON as well as a scalar.
	if err := json.Unmarshal(n.JSON(), reflect.New(t).Interface()); err == nil {
		return n
	}
	f.add(Mismatch, path, Position{n.Line, n.Column}, "must be %s", wanted(t))
	return nil
}

func wanted(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return "a quantity, such as 250m or 64Mi"
	case reflect.TypeFor[intstr.IntOrString]():
		return "a whole number of 32 bits or a string"
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return "a time, such as 2006-01-02T15:04:05Z"
	default:
		return "a valid " + t.Name()
	}
}

func (f *filler) list(n *Node, t reflect.Type, path string) *Node {
	if n.Kind != Array {
		return f.mismatch(n, path, "a list")
	}
	out := &Node{Kind: Array, Line: n.Line, Column: n.Column, Items: make([]*Node, len(n.Items))}
	for i, item := range n.Items {
		if out.Items[i] = f.value(item, t.Elem(), path+"["+strconv.Itoa(i)+"]"); out.Items[i] == nil {
			out.Items[i] = &Node{} // the others keep their index
		}
	}
	return out
}

func (f *filler) mapping(n *Node, t reflect.Type, path string) *Node {
	if n.Kind != Object {
		return f.mismatch(n, path, "a mapping")
	}
	f.repeated(n, func(key string) string { return path + "[" + key + "]" })
	out := &Node{Kind: Object, Line: n.Line, Column: n.Column}
	for _, m := range n.Members {
		if v := f.value(m.Value, t.Elem(), path+"["+m.Key+"]"); v != nil {
			out.Members = append(out.Members, Member{Key: m.Key, Value: v})
		}
	}
	return out
}

func (f *filler) repeated(n *Node, path func(key string) string) {
	for _, r := range n.Repeated {
		f.add(Duplicate, path(r.Key), Position{r.Line, r.Column}, "duplicate key, also on line %d; the last one counts", r.First)
	}
}

func (f *filler) structure(n *Node, t reflect.Type, path string) *Node {
	if n.Kind != Object {
		return f.mismatch(n, path, "a mapping")
	}
	fields := f.fieldsOf(t)
	child := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	f.repeated(n, child)
	out := &Node{Kind: Object, Line: n.Line, Column: n.Column}
	for _, m := range n.Members {
		ft, ok := fields[m.Key]
		if !ok {
			if path != "" || !strings.HasPrefix(m.Key, "x-") {
				f.add(Unknown, child(m.Key), Position{m.Line, m.Column}, "unknown field%s", similar(m.Key, fields))
			}
			continue
		}
		if v := f.value(m.Value, ft, child(m.Key)); v != nil && v.Kind != Null {
			out.Members = append(out.Members, Member{Key: m.Key, Value: v})
		}
	}
	return out
}

func (f *filler) fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields, ok := f.types[t]
	if ok {
		return fields
	}
	fields = make(map[string]reflect.Type, t.NumField())
	f.types[t] = fields
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		switch {
		case name == "-" || !sf.IsExported():
		case name != "":
			fields[name] = sf.Type
		case sf.Anonymous || options == "inline":
			for name, ft := range f.fieldsOf(sf.Type) {
				if _, ok := fields[name]; !ok {
					fields[name] = ft
				}
			}
		}
	}
	return fields
}

// similar proposes the field that somebody who wrote this name had in mind.
func similar(name string, fields map[string]reflect.Type) string {
	best, least := "", 3
	for candidate := range fields {
		d := distance(strings.ToLower(name), strings.ToLower(candidate))
		if d >= 3 || d >= len(candidate)/2 {
			continue
		}
		if d < least || d == least && candidate < best {
			best, least = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance counts the letters to change, add, leave out or swap with a neighbour.
func distance(a, b string) int {
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return 3
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
