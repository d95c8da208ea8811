package pod

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key names a pod for as long as anybody wants it: namespace and name, the
// name with the node's suffix.
type Key struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace, then name.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name))
}

// MarshalText and UnmarshalText make a Key usable as the key of a JSON map.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *Key) UnmarshalText(text []byte) error {
	namespace, name, ok := strings.Cut(string(text), "/")
	if !ok {
		return fmt.Errorf("pod key %q: want namespace/name", text)
	}
	*k = Key{Namespace: namespace, Name: name}
	return nil
}

// SourceKind is where a pod comes from, in the words of the annotation
// kubernetes.io/config.source.
type SourceKind string

// The kinds of source, in the order in which they win a conflict.
const (
	FileSource SourceKind = "file"
	HTTPSource SourceKind = "http"
	APISource  SourceKind = "api"
)

func (k SourceKind) rank() int {
	switch k {
	case FileSource:
		return 0
	case HTTPSource:
		return 1
	default:
		return 2
	}
}

// SourceID names one configured source: a folder (or single file) or a URL.
type SourceID struct {
	Kind SourceKind `json:"kind"`
	// Name is the path as configured, or the URL without its secrets.
	Name string `json:"name"`
}

// String returns kind:name.
func (s SourceID) String() string { return string(s.Kind) + ":" + s.Name }

// Origin is the unit of law 1: one file of a folder, or one URL.
type Origin struct {
	Source SourceID `json:"source"`
	// Name is the path of the file, or the URL without its secrets.
	Name string `json:"name"`
}

// String returns the origin's name, which is what people recognise.
func (o Origin) String() string { return o.Name }

// Compare orders origins by kind of source (file, http, api), then name. The
// first of two origins that supply the same key wins where nothing runs yet.
func (o Origin) Compare(p Origin) int {
	return cmp.Or(
		cmp.Compare(o.Source.Kind.rank(), p.Source.Kind.rank()),
		strings.Compare(o.Name, p.Name),
		strings.Compare(o.Source.Name, p.Source.Name),
	)
}

// Hash is a digest over an explicit, versioned list of fields. Hashes of
// different versions say nothing about each other.
type Hash struct {
	Version int    `json:"version"`
	Digest  string `json:"digest"`
}

// String returns "<version>-<digest>", the form labels carry; "" for the zero Hash.
func (h Hash) String() string {
	if h == (Hash{}) {
		return ""
	}
	return fmt.Sprintf("%d-%s", h.Version, h.Digest)
}

// ParseHash reads what String writes. What it cannot read is the zero Hash,
// which equals no known version.
func ParseHash(s string) Hash {
	version, digest, ok := strings.Cut(s, "-")
	n, err := strconv.Atoi(version)
	if !ok || err != nil || digest == "" {
		return Hash{}
	}
	return Hash{Version: n, Digest: digest}
}

// Pod is a desired pod: decoded, defaulted and validated. It is never modified.
type Pod struct {
	// Object has namespace, suffixed name, node name and the kubernetes.io/config.*
	// annotations set. Its UID is set only where the manifest sets one.
	Object *v1.Pod
	Origin Origin
	// Line is where the object begins in its origin, from 1.
	Line int
	// Hash covers the pod-level fields: another hash is another generation.
	Hash Hash
	// Containers has the hash of each container's definition, by container name
	// (init containers too).
	Containers map[string]Hash
}

// Key returns the pod's key.
func (p *Pod) Key() Key { return Key{Namespace: p.Object.Namespace, Name: p.Object.Name} }

// ExplicitUID returns the UID that the manifest sets, or "".
func (p *Pod) ExplicitUID() types.UID { return p.Object.UID }
