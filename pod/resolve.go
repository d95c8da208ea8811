package pod

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Resolve picks, for each key, the claim that holds: that of the holder's
// origin as long as it supplies the key, else the first. Of two keys that set
// the same metadata.uid the one that runs with it keeps it, else the first by
// origin has it; the other is refused, and is not in desired.
//
// The outcome does not depend on the order of maps, and does not flap: with the
// holders that it leads to, it is the same again. Conflicts are sorted by key,
// then by the origin that lost.
func (s Set) Resolve(holders map[Key]Holder) (desired map[Key]*Pod, conflicts []Conflict) {
	desired = make(map[Key]*Pod, len(s.Claims))
	for key, claims := range s.Claims {
		if len(claims) == 0 {
			continue
		}
		winner := pick(claims, holders[key].Origin, (*Pod).origin)
		desired[key] = winner
		for _, p := range claims {
			if p != winner {
				conflicts = append(conflicts, Conflict{Key: key, Winner: winner.Origin, Loser: p.Origin, Line: p.Line})
			}
		}
	}
	for _, c := range clashes(desired, holders) {
		delete(desired, c.Key)
		conflicts = append(conflicts, c)
	}
	slices.SortFunc(conflicts, func(a, b Conflict) int {
		return cmp.Or(a.Key.Compare(b.Key), a.Loser.Compare(b.Loser), cmp.Compare(a.Line, b.Line), cmp.Compare(a.UID, b.UID))
	})
	return desired, conflicts
}

// pick returns the first claim of that origin, else the first of all.
func pick[T any](claims []T, origin Origin, of func(T) Origin) T {
	if i := slices.IndexFunc(claims, func(c T) bool { return of(c) == origin }); i >= 0 {
		return claims[i]
	}
	return claims[0]
}

func (p *Pod) origin() Origin    { return p.Origin }
func (o *Object) origin() Origin { return o.Origin }

// ResolveObjects picks, for each object, the supply that holds: that of the
// origin that held it before (held) as long as it supplies it, else the first.
// Before every source was looked at once, one that was held is not there rather
// than another's: who held it may yet answer.
//
// Conflicts are sorted by key, then by the origin that lost. With the origins
// that it leads to as held, the outcome is the same again.
func (s Set) ResolveObjects(held map[ObjectKey]Origin) (objects map[ObjectKey]*Object, conflicts []Conflict) {
	objects = make(map[ObjectKey]*Object, len(s.Objects))
	for key, claims := range s.Objects {
		if len(claims) == 0 {
			continue
		}
		holder, had := held[key]
		winner := pick(claims, holder, (*Object).origin)
		if had && winner.Origin != holder && !s.LookedAt() {
			continue
		}
		objects[key] = winner
		for _, o := range claims {
			if o != winner {
				conflicts = append(conflicts, Conflict{Object: key, Winner: winner.Origin, Loser: o.Origin, Line: o.Line})
			}
		}
	}
	slices.SortFunc(conflicts, func(a, b Conflict) int {
		return cmp.Or(a.Object.Compare(b.Object), a.Loser.Compare(b.Loser), cmp.Compare(a.Line, b.Line))
	})
	return objects, conflicts
}

// Origins returns who supplies each of the objects.
func Origins(objects map[ObjectKey]*Object) map[ObjectKey]Origin {
	origins := make(map[ObjectKey]Origin, len(objects))
	for key, o := range objects {
		origins[key] = o.Origin
	}
	return origins
}

// LookedAt reports whether each source was looked at once, found or not.
func (s Set) LookedAt() bool {
	return !slices.ContainsFunc(s.Sources, func(src Source) bool { return !src.Spoken && src.Problem == "" })
}

// clashes returns the pods that cannot have the UID they ask for.
func clashes(desired map[Key]*Pod, holders map[Key]Holder) []Conflict {
	claimants := map[types.UID][]*Pod{}
	for _, p := range desired {
		if uid := p.ExplicitUID(); uid != "" {
			claimants[uid] = append(claimants[uid], p)
		}
	}
	running := map[types.UID][]Key{}
	for _, key := range slices.SortedFunc(maps.Keys(holders), Key.Compare) {
		if uid := holders[key].UID; len(claimants[uid]) > 0 {
			running[uid] = append(running[uid], key)
		}
	}
	var out []Conflict
	for uid, pods := range claimants {
		slices.SortFunc(pods, comparePods)
		holder, origin := pods[0].Key(), pods[0].Origin
		if keys := running[uid]; len(keys) > 0 {
			// A pod that runs with the UID has it even when nobody desires it
			// any more: its folder and cgroup are gone only when it is.
			holder = keys[0]
			if i := slices.IndexFunc(pods, func(p *Pod) bool { return slices.Contains(keys, p.Key()) }); i >= 0 {
				holder = pods[i].Key()
			}
			origin = holders[holder].Origin
			if p := desired[holder]; p != nil {
				origin = p.Origin
			}
		}
		for _, p := range pods {
			if p.Key() != holder {
				out = append(out, Conflict{Key: p.Key(), Winner: origin, Loser: p.Origin, UID: uid, Holder: holder, Line: p.Line})
			}
		}
	}
	return out
}

func comparePods(a, b *Pod) int {
	return cmp.Or(a.Origin.Compare(b.Origin), cmp.Compare(a.Line, b.Line), a.Key().Compare(b.Key()))
}

// Unheard returns the origins that supply what was kept from before: those of a
// source that has not spoken, and those that say nothing usable now.
func (s Set) Unheard() map[Origin]bool {
	unheard := make(map[Origin]bool)
	for _, src := range s.Sources {
		for _, o := range src.Origins {
			if !src.Spoken || o.Stale {
				unheard[o.Origin] = true
			}
		}
	}
	return unheard
}

// MayRemove holds law 1: it says whether a pod that no claim asks for may be
// removed, and if not, why, in words for people. kind is what the label of its
// containers says; origin is what was recorded of it, nil if that is lost.
func (s Set) MayRemove(kind SourceKind, origin *Origin) (ok bool, why string) {
	if len(s.Sources) == 0 {
		return false, "no source is configured"
	}
	// What one source dropped while nobody looked, another may have taken over.
	for _, src := range s.Sources {
		if src.unseen() {
			return false, fmt.Sprintf("source %s has not been looked at yet", src.ID)
		}
	}
	ask := s.Sources
	switch {
	case origin != nil:
		i := slices.IndexFunc(s.Sources, func(src Source) bool { return src.ID == origin.Source })
		if i < 0 {
			return allSpoken(s.Sources)
		}
		if ok, why := s.Sources[i].silent(); ok {
			return false, why
		}
		return s.Sources[i].sure(func(o Origin) bool { return o == *origin })
	default:
		ask = slices.DeleteFunc(slices.Clone(ask), func(src Source) bool { return src.ID.Kind != kind })
		if len(ask) == 0 {
			return allSpoken(s.Sources)
		}
	}
	return heard(ask)
}

// Heard reports whether every source has said all that it has to say, and if not,
// why, in words for people: what nobody asks for then, nobody wants.
func (s Set) Heard() (ok bool, why string) {
	if len(s.Sources) == 0 {
		return false, "no source is configured"
	}
	return heard(s.Sources)
}

func heard(sources []Source) (ok bool, why string) {
	if ok, why := allSpoken(sources); !ok {
		return false, why
	}
	for _, src := range sources {
		if ok, why := src.sure(func(Origin) bool { return true }); !ok {
			return false, why
		}
	}
	return true, ""
}

func allSpoken(sources []Source) (ok bool, why string) {
	for _, src := range sources {
		if silent, why := src.silent(); silent {
			return false, why
		}
	}
	return true, ""
}

// unseen reports whether nobody has looked at the source yet. One that is not
// there was looked at, and holds nothing back that is not its own.
func (src Source) unseen() bool {
	return !src.Spoken && !src.Present && src.Problem == "" && len(src.Origins) == 0
}

// silent reports whether what the source does not supply says nothing.
func (src Source) silent() (silent bool, why string) {
	switch {
	case !src.Spoken:
		return true, fmt.Sprintf("source %s has not spoken", src.ID)
	case !src.Present && src.Problem != "":
		return true, fmt.Sprintf("source %s is silent: %s", src.ID, src.Problem)
	case !src.Present:
		return true, fmt.Sprintf("source %s is silent", src.ID)
	}
	return false, ""
}

// sure reports whether the origins that match say all that they have to say.
func (src Source) sure(match func(Origin) bool) (ok bool, why string) {
	for _, o := range src.Origins {
		switch {
		case !match(o.Origin):
		case o.Failed():
			return false, fmt.Sprintf("%s has errors", o.Origin)
		case o.Stale:
			return false, fmt.Sprintf("%s is not read yet", o.Origin)
		}
	}
	return true, ""
}
