package gc

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Dead is a container of ours that ended.
type Dead struct {
	ID       string
	UID      types.UID // of its pod
	Name     string    // in its pod
	Attempt  int
	Finished time.Time // by the engine's clock; zero if unknown
	// Over: nothing starts this container again, since its pod has come to its end or
	// is to go.
	Over bool
	// FirstSeen is when a pass first saw it dead. The collector sets it.
	FirstSeen time.Time
}

// Policy says which dead containers stay.
type Policy struct {
	// MinAge since it ended and since it was first seen dead; both count, since a
	// clock that jumped can make a container look old.
	MinAge time.Duration
	// PerContainer is how many dead attempts of a container of a pod stay; negative
	// is all. The newest always does where another may follow: its exit and its log
	// are what people look for.
	PerContainer int
	// Total is how many stay on the node; negative is all. Those that must stay are
	// not counted against it.
	Total int
}

// DefaultPolicy is the kubelet's of old: 2 per container, 100 on the node, none
// younger than a minute.
func DefaultPolicy() Policy { return Policy{MinAge: time.Minute, PerContainer: 2, Total: 100} }

// DeadRemoval is a dead container that is to go, and why, in words.
type DeadRemoval struct {
	Dead
	Why string
}

// SelectContainers returns the dead containers to remove, oldest first. It never
// selects the newest attempt of a container that may be started again, nor one
// younger than MinAge. Where there are too many on the node, those go first after
// which another came.
func SelectContainers(dead []Dead, policy Policy, now time.Time) []DeadRemoval {
	type unit struct {
		uid  types.UID
		name string
	}
	attempts := make(map[unit][]Dead)
	for _, d := range dead {
		u := unit{d.UID, d.Name}
		attempts[u] = append(attempts[u], d)
	}
	var surplus []DeadRemoval
	var former, last []Dead // may go where there are too many
	for _, list := range attempts {
		slices.SortFunc(list, func(a, b Dead) int { return cmp.Compare(b.Attempt, a.Attempt) })
		for i, d := range list {
			switch {
			case i == 0 && !d.Over:
			case now.Sub(d.FirstSeen) < policy.MinAge || now.Sub(d.Finished) < policy.MinAge:
			case policy.PerContainer >= 0 && i >= policy.PerContainer:
				surplus = append(surplus, DeadRemoval{d, fmt.Sprintf("%d newer ones of its container are kept", policy.PerContainer)})
			case i > 0:
				former = append(former, d)
			default:
				last = append(last, d)
			}
		}
	}
	if policy.Total >= 0 {
		oldest := func(a, b Dead) int { return cmp.Or(a.Finished.Compare(b.Finished), cmp.Compare(a.ID, b.ID)) }
		slices.SortFunc(former, oldest)
		slices.SortFunc(last, oldest)
		spare := append(former, last...)
		over := len(dead) - len(surplus) - policy.Total
		for _, d := range spare[:min(max(over, 0), len(spare))] {
			surplus = append(surplus, DeadRemoval{d, fmt.Sprintf("more than %d dead containers are on the node", policy.Total)})
		}
	}
	slices.SortFunc(surplus, func(a, b DeadRemoval) int { return cmp.Or(a.Finished.Compare(b.Finished), cmp.Compare(a.ID, b.ID)) })
	return surplus
}
