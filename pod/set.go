package pod

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Set is everything that is desired, and who said so: the merged state of all
// sources. It is built anew for each change and never modified.
type Set struct {
	// Claims has every supply of a key, the one that wins an undecided conflict
	// first. Resolve picks.
	Claims map[Key][]*Pod
	// Objects has every supply of an object that pods may refer to, in the same
	// order. ResolveObjects picks.
	Objects map[ObjectKey][]*Object
	// Sources has the state of each configured source, in the order configured.
	Sources []Source
}

// Source is what one configured source has to say.
type Source struct {
	ID SourceID `json:"id"`
	// Spoken: the folder was listed and each of its files read once; the URL
	// answered with something usable. It stays true.
	Spoken bool `json:"spoken"`
	// Present is false while the folder is missing or the URL does not answer.
	// A source that is not present removes nothing.
	Present bool `json:"present"`
	// Problem says why the source is not present, or what it lacks.
	Problem string         `json:"problem,omitempty"`
	Origins []OriginStatus `json:"origins,omitempty"`
	// Skipped lists what lies in the folder and is not a manifest.
	Skipped []Skipped `json:"skipped,omitempty"`
	// Read is the wall clock time of the last successful look.
	Read time.Time `json:"read,omitzero"`
}

// OriginStatus is the state of one file or URL.
type OriginStatus struct {
	Origin Origin `json:"origin"`
	// Pods lists the keys that it supplies now, last good ones included.
	Pods []Key `json:"pods,omitempty"`
	// Objects lists the objects that it supplies now, last good ones included.
	Objects []ObjectKey `json:"objects,omitempty"`
	// Stale: something here is a last good version, not what the origin says now.
	Stale bool `json:"stale,omitempty"`
	// Problems has its errors, warnings and notes, in order of position.
	Problems []Problem `json:"problems,omitempty"`
}

// Failed reports whether the origin has any error.
func (o OriginStatus) Failed() bool {
	return slices.ContainsFunc(o.Problems, func(p Problem) bool { return p.Severity == Error })
}

// Skipped is a file that is not taken for a manifest, and why.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Conflict is a supply that lost: its key or its UID is in use by another.
type Conflict struct {
	Key Key `json:"key,omitzero"`
	// Object is set, and Key is not, where the supply is of an object.
	Object ObjectKey `json:"object,omitzero"`

	Winner Origin `json:"winner"`
	Loser  Origin `json:"loser"`
	// UID is set where not the key but an explicit metadata.uid clashes; Holder
	// is the pod that has it.
	UID    types.UID `json:"uid,omitempty"`
	Holder Key       `json:"holder,omitzero"`
	Line   int       `json:"line,omitempty"` // of the loser
}

// Holder is who runs a key now: the origin recorded when its pod was started or
// last moved.
type Holder struct {
	Origin Origin
	UID    types.UID
}
