package pod

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ObjectKind is a kind of object that pods refer to, as manifests write it.
type ObjectKind string

// The kinds.
const (
	ConfigMap             ObjectKind = "ConfigMap"
	Secret                ObjectKind = "Secret"
	PersistentVolumeClaim ObjectKind = "PersistentVolumeClaim"
)

// ObjectKey names an object beside pods. Its name bears no suffix: pods refer to
// it as it is written.
type ObjectKey struct {
	Kind      ObjectKind
	Namespace string
	Name      string
}

// String returns "<kind> <namespace>/<name>", which is how people are told of it.
func (k ObjectKey) String() string {
	return fmt.Sprintf("%s %s/%s", k.Kind, k.Namespace, k.Name)
}

// MarshalText returns what String does.
func (k ObjectKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *ObjectKey) UnmarshalText(text []byte) error {
	kind, name, ok := strings.Cut(string(text), " ")
	namespace, name, also := strings.Cut(name, "/")
	if !ok || !also {
		return fmt.Errorf("object key %q: want kind namespace/name", text)
	}
	*k = ObjectKey{Kind: ObjectKind(kind), Namespace: namespace, Name: name}
	return nil
}

// Compare orders keys by kind, namespace, then name.
func (k ObjectKey) Compare(o ObjectKey) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name))
}

// Object is a ConfigMap, Secret or PersistentVolumeClaim that is desired:
// decoded, defaulted and validated. It is never modified.
type Object struct {
	Key    ObjectKey
	Origin Origin
	// Line is where the object begins in its origin, from 1.
	Line int
	// Data is that of a ConfigMap (text), or of a Secret (any bytes; stringData is
	// merged in). The values of a Secret hide themselves.
	Data map[string]Value
	// BinaryData is of a ConfigMap only. It makes files, and no environment. It
	// shares no key with Data.
	BinaryData map[string]Value
	// Immutable: its data stay as they are until it is removed.
	Immutable bool
	// Type is of a Secret only, and never empty there.
	Type v1.SecretType
	// Claim is what a PersistentVolumeClaim asks for; nil for the other kinds.
	Claim *Claim
}

// Claim is what a PersistentVolumeClaim asks for.
type Claim struct {
	// AccessModes has at least one.
	AccessModes []v1.PersistentVolumeAccessMode
	// Size is what it asks for, in whole bytes above 0.
	Size resource.Quantity
	// StorageClass is as written: "", "local" or "standard".
	StorageClass string
	// Reclaim says what becomes of its folder once nobody supplies the claim.
	Reclaim Reclaim
}

// Reclaim is what becomes of the folder of a claim that is gone.
type Reclaim string

// The policies; ReclaimAnnotation asks for one.
const (
	Retain Reclaim = "retain" // the default
	Delete Reclaim = "delete"

	ReclaimAnnotation = "podkeeper.io/reclaim"
)

// Value returns what stands under a key of Data, else of BinaryData.
func (o *Object) Value(key string) (v Value, ok bool) {
	if v, ok = o.Data[key]; !ok {
		v, ok = o.BinaryData[key]
	}
	return v, ok
}

// SameContent reports whether pods find the same in both, wherever the two come
// from.
func (o *Object) SameContent(p *Object) bool {
	return o.Key == p.Key && o.Type == p.Type &&
		maps.EqualFunc(o.Data, p.Data, Value.Equal) && maps.EqualFunc(o.BinaryData, p.BinaryData, Value.Equal) &&
		o.Claim.equal(p.Claim)
}

func (c *Claim) equal(d *Claim) bool {
	if c == nil || d == nil {
		return c == d
	}
	return slices.Equal(c.AccessModes, d.AccessModes) && c.Size.Cmp(d.Size) == 0 && c.StorageClass == d.StorageClass && c.Reclaim == d.Reclaim
}
