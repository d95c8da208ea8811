package gc

import (
	"cmp"
	"context"
	"log/slog"
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
	// FirstSeen is when a pass first saw it dead. The collector sets it.
	FirstSeen time.Time
}

// Policy says which dead containers stay.
type Policy struct {
	// MinAge since it ended and since it was first seen dead; both count, since a
	// clock that jumped can make a container look old.
	MinAge time.Duration
	// PerContainer is how many dead attempts of a container of a pod stay. The
	// newest always does: its exit and its log are what people look for.
	PerContainer int
	// Total is how many stay on the node.
	Total int
}

// DefaultPolicy is the kubelet's of old: 2 per container, 100 on the node, none
// younger than a minute.
func DefaultPolicy() Policy { return Policy{MinAge: time.Minute, PerContainer: 2, Total: 100} }

// SelectContainers returns the dead containers to remove, oldest first. It never
// selects the newest attempt of a container, nor one younger than MinAge.
func SelectContainers(dead []Dead, policy Policy, now time.Time) []Dead {
	type unit struct {
		uid  types.UID
		name string
	}
	attempts := make(map[unit][]Dead)
	for _, d := range dead {
		u := unit{d.UID, d.Name}
		attempts[u] = append(attempts[u], d)
	}
	var surplus, spare []Dead
	for _, list := range attempts {
		slices.SortFunc(list, func(a, b Dead) int { return cmp.Compare(b.Attempt, a.Attempt) })
		keep := max(policy.PerContainer, 1)
		for i, d := range list[1:] {
			switch {
			case now.Sub(d.FirstSeen) < policy.MinAge || now.Sub(d.Finished) < policy.MinAge:
			case i+1 >= keep:
				surplus = append(surplus, d)
			default:
				spare = append(spare, d)
			}
		}
	}
	oldest := func(a, b Dead) int { return cmp.Or(a.Finished.Compare(b.Finished), cmp.Compare(a.ID, b.ID)) }
	slices.SortFunc(spare, oldest)
	over := len(dead) - len(surplus) - policy.Total
	surplus = append(surplus, spare[:min(max(over, 0), len(spare))]...)
	slices.SortFunc(surplus, oldest)
	return surplus
}

// Collector removes dead containers, and calls the other passes.
type Collector struct {
	Policy Policy
	// Inventory returns every dead container of ours.
	Inventory func(context.Context) ([]Dead, error)
	// Remove removes one; one that is gone is success.
	Remove func(ctx context.Context, id string) error
	// Links is called after each pass, to take away log links that lead nowhere.
	Links func(context.Context) error
	// Claims is called after each pass, to take away the folders of claims that are
	// gone and asked for that.
	Claims func(context.Context) error
	// Period is how often it looks; 0 is once a minute.
	Period time.Duration
	Log    *slog.Logger
}

// Run looks once a period until ctx ends.
func (c Collector) Run(ctx context.Context) error {
	tick := time.NewTicker(cmp.Or(c.Period, time.Minute))
	defer tick.Stop()
	seen := make(map[string]time.Time)
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			seen = c.pass(ctx, seen, now)
			if err := c.Links(ctx); err != nil && ctx.Err() == nil {
				c.Log.Warn("log links that lead nowhere cannot be removed", "err", err)
			}
			if err := c.Claims(ctx); err != nil && ctx.Err() == nil {
				c.Log.Warn("folders of claims cannot be looked after", "err", err)
			}
		}
	}
}

// pass returns when each dead container was first seen.
func (c Collector) pass(ctx context.Context, before map[string]time.Time, now time.Time) map[string]time.Time {
	dead, err := c.Inventory(ctx)
	if err != nil {
		return before // the agent is stopping
	}
	seen := make(map[string]time.Time, len(dead))
	for i, d := range dead {
		first, ok := before[d.ID]
		if !ok {
			first = now
		}
		seen[d.ID], dead[i].FirstSeen = first, first
	}
	for _, d := range SelectContainers(dead, c.Policy, now) {
		if err := c.Remove(ctx, d.ID); err != nil && ctx.Err() == nil {
			c.Log.Warn("a dead container cannot be removed", "uid", d.UID, "container", d.Name, "attempt", d.Attempt, "err", err)
		}
	}
	return seen
}
