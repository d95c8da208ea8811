package runtime

import (
	"slices"
	"strings"

	"github.com/distribution/reference"
)

// References is a set of references to images, as manifests spell them. The zero
// value is the empty set.
type References struct {
	// names and digests are in full; ids are what may be the beginning of an ID.
	names, digests map[string]bool
	ids            []string
}

// NewReferences returns the set of these. What is no reference means no image.
func NewReferences(refs ...string) References {
	r := References{names: make(map[string]bool), digests: make(map[string]bool)}
	for _, ref := range refs {
		name, digest := fullName(ref)
		switch {
		case digest != "":
			r.digests[digest] = true
		case name != "":
			r.names[name] = true
		}
		if id := strings.TrimPrefix(ref, "sha256:"); id != "" && strings.Trim(id, "0123456789abcdef") == "" {
			r.ids = append(r.ids, id)
		}
	}
	return r
}

// Mean reports whether one of them may stand for the image: by a name, by a
// digest in whatever repository, or by its ID or the beginning of that.
func (r References) Mean(image StoredImage) bool {
	id := strings.TrimPrefix(image.ID, "sha256:")
	return slices.ContainsFunc(r.ids, func(begin string) bool { return strings.HasPrefix(id, begin) }) ||
		slices.ContainsFunc(image.Names, func(name string) bool { name, _ = fullName(name); return r.names[name] }) ||
		slices.ContainsFunc(image.Digests, func(name string) bool { _, digest, _ := strings.Cut(name, "@"); return r.digests[digest] })
}

// fullName returns what a reference says in full: registry, path and tag, or a
// digest, by which alone an engine goes where there is one. Both are "" for what
// is no reference.
func fullName(ref string) (name, digest string) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", ""
	}
	if canonical, ok := named.(reference.Digested); ok {
		return "", canonical.Digest().String()
	}
	return reference.TagNameOnly(named).String(), ""
}

// Spellings returns every reference to the image that people may know it by: its
// ID, and its names and digests as the engine has them, short and in full, and
// without tag or digest.
func (i StoredImage) Spellings() []string {
	list := []string{i.ID}
	for _, name := range slices.Concat(i.Names, i.Digests) {
		list = append(list, name)
		if named, err := reference.ParseNormalizedNamed(name); err == nil {
			list = append(list, named.String(), named.Name(), reference.FamiliarString(named), reference.FamiliarName(named))
		}
	}
	return list
}
