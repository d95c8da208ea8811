package sources

import (
	"cmp"
	"slices"

	"github.com/podkeeper/podkeeper/pod"
)

// Merge puts the supplies together. Claims of a key are sorted by origin, then
// line; a second claim of a key by one origin is dropped. A source that has sent
// nothing is present as one that has not spoken; a supply of a source that is
// not in order is left out.
func Merge(order []pod.SourceID, supplies map[pod.SourceID]Supply) pod.Set {
	set := pod.Set{
		Claims:  map[pod.Key][]*pod.Pod{},
		Objects: map[pod.ObjectKey][]*pod.Object{},
		Sources: make([]pod.Source, 0, len(order)),
	}
	for _, id := range order {
		s := supplies[id]
		s.Source.ID = id
		set.Sources = append(set.Sources, s.Source)
		for _, p := range s.Pods {
			set.Claims[p.Key()] = append(set.Claims[p.Key()], p)
		}
		for _, o := range s.Objects {
			set.Objects[o.Key] = append(set.Objects[o.Key], o)
		}
	}
	inOrder(set.Claims, func(p *pod.Pod) (pod.Origin, int) { return p.Origin, p.Line })
	inOrder(set.Objects, func(o *pod.Object) (pod.Origin, int) { return o.Origin, o.Line })
	return set
}

// inOrder sorts the claims of each key, and leaves one of each origin.
func inOrder[K comparable, V any](all map[K][]V, place func(V) (pod.Origin, int)) {
	for key, claims := range all {
		if len(claims) == 1 {
			continue
		}
		slices.SortStableFunc(claims, func(a, b V) int {
			originA, lineA := place(a)
			originB, lineB := place(b)
			return cmp.Or(originA.Compare(originB), cmp.Compare(lineA, lineB))
		})
		all[key] = slices.CompactFunc(claims, func(a, b V) bool {
			originA, _ := place(a)
			originB, _ := place(b)
			return originA == originB
		})
	}
}
