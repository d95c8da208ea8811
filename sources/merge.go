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
	set := pod.Set{Claims: map[pod.Key][]*pod.Pod{}, Sources: make([]pod.Source, 0, len(order))}
	for _, id := range order {
		s := supplies[id]
		s.Source.ID = id
		set.Sources = append(set.Sources, s.Source)
		for _, p := range s.Pods {
			set.Claims[p.Key()] = append(set.Claims[p.Key()], p)
		}
	}
	for key, claims := range set.Claims {
		if len(claims) == 1 {
			continue
		}
		slices.SortStableFunc(claims, func(a, b *pod.Pod) int {
			return cmp.Or(a.Origin.Compare(b.Origin), cmp.Compare(a.Line, b.Line))
		})
		set.Claims[key] = slices.CompactFunc(claims, func(a, b *pod.Pod) bool { return a.Origin == b.Origin })
	}
	return set
}
