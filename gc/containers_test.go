package gc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/pod"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func dead(uid, name string, attempt int, ago time.Duration) gc.Dead {
	return gc.Dead{ID: fmt.Sprint(uid, "/", name, "/", attempt), UID: types.UID(uid), Name: name, Attempt: attempt, Finished: now.Add(-ago), FirstSeen: now.Add(-ago)}
}

func ids(list []gc.DeadRemoval) []string {
	var ids []string
	for _, d := range list {
		ids = append(ids, d.ID)
	}
	return ids
}

// over says that nothing starts them again.
func over(list []gc.Dead) []gc.Dead {
	list = slices.Clone(list)
	for i := range list {
		list[i].Over = true
	}
	return list
}

// C106, C107: how many dead containers stay.
func TestSelectContainers(t *testing.T) {
	var crashed []gc.Dead
	for i := range 6 {
		crashed = append(crashed, dead("u", "app", i, time.Hour-time.Duration(i)*time.Minute))
	}
	young := slices.Clone(crashed)
	young[1].FirstSeen = now.Add(-59 * time.Second)
	jumped := slices.Clone(crashed)
	jumped[1].Finished = now.Add(time.Hour)
	for name, c := range map[string]struct {
		dead   []gc.Dead
		policy gc.Policy
		want   []string
	}{
		"C106: the two newest attempts stay":                {crashed, gc.DefaultPolicy(), []string{"u/app/0", "u/app/1", "u/app/2", "u/app/3"}},
		"one first seen within the minute stays":            {young, gc.DefaultPolicy(), []string{"u/app/0", "u/app/2", "u/app/3"}},
		"one that ended within the minute stays":            {jumped, gc.DefaultPolicy(), []string{"u/app/0", "u/app/2", "u/app/3"}},
		"the newest stays even where none is to":            {crashed[:2], gc.Policy{}, []string{"u/app/0"}},
		"C107: the unit is the container of a pod":          {[]gc.Dead{dead("u", "c1", 0, time.Hour), dead("u", "c2", 0, time.Hour), dead("v", "c1", 0, time.Hour)}, gc.Policy{PerContainer: 1}, nil},
		"all stay where there is no limit":                  {crashed, gc.Policy{PerContainer: -1, Total: -1}, nil},
		"only the total counts":                             {crashed, gc.Policy{PerContainer: -1, Total: 4}, []string{"u/app/0", "u/app/1"}},
		"C107: those of a pod that is over stay, too":       {over(crashed[:3]), gc.Policy{PerContainer: 3, Total: -1}, nil},
		"... but for the total, the newest last":            {append(over([]gc.Dead{dead("u", "a", 0, 3*time.Hour)}), dead("v", "a", 0, 2*time.Hour), dead("v", "a", 1, time.Hour)), gc.Policy{PerContainer: 2, Total: 2}, []string{"v/a/0"}},
		"... where it may go, too":                          {over([]gc.Dead{dead("u", "a", 0, 3*time.Hour), dead("v", "a", 0, time.Hour)}), gc.Policy{PerContainer: 2, Total: 1}, []string{"u/a/0"}},
		"... or none is to stay":                            {over(crashed[:2]), gc.Policy{PerContainer: 0, Total: -1}, []string{"u/app/0", "u/app/1"}},
		"over the total, the oldest that is no newest goes": {[]gc.Dead{dead("u", "a", 0, 3*time.Hour), dead("u", "a", 1, time.Hour), dead("v", "a", 0, 2*time.Hour), dead("v", "a", 1, time.Hour)}, gc.Policy{PerContainer: 2, Total: 3}, []string{"u/a/0"}},
	} {
		if got := ids(gc.SelectContainers(c.dead, c.policy, now)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Law 9: whatever there is, the newest attempt of a container and what is young
// are never selected, and nothing is selected twice; the oldest is first, and no more
// than the policy allows stays, as far as there can be less.
func TestSelectContainersProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []gc.Dead
		newest := make(map[string]int)
		for i := range rapid.IntRange(0, 30).Draw(t, "n") {
			uid, name := rapid.SampledFrom([]string{"u", "v"}).Draw(t, "uid"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
			d := dead(uid, name, i, time.Duration(rapid.IntRange(-60, 600).Draw(t, "ago"))*time.Second)
			d.Over = uid == "v" && rapid.Bool().Draw(t, "over")
			list = append(list, d)
			newest[uid+name] = i
			if d.Over {
				newest[uid+name] = -1
			}
		}
		policy := gc.Policy{MinAge: time.Minute, PerContainer: rapid.IntRange(-1, 3).Draw(t, "per"), Total: rapid.IntRange(-1, 20).Draw(t, "total")}
		seen := make(map[string]bool)
		last := time.Time{}
		for _, d := range gc.SelectContainers(list, policy, now) {
			if newest[string(d.UID)+d.Name] == d.Attempt || now.Sub(d.Finished) < policy.MinAge || seen[d.ID] || d.Finished.Before(last) {
				t.Fatalf("selected %s", d.ID)
			}
			seen[d.ID], last = true, d.Finished
		}
		newer := make(map[string]int)
		for _, d := range slices.Backward(list) {
			unit := string(d.UID) + d.Name
			stays := newest[unit] == d.Attempt || now.Sub(d.Finished) < policy.MinAge
			if surplus := policy.PerContainer >= 0 && newer[unit] >= policy.PerContainer; !stays && !seen[d.ID] &&
				(surplus || policy.Total >= 0 && len(list)-len(seen) > policy.Total) {
				t.Fatalf("%s stays, with %d newer ones, %d of %d in all", d.ID, newer[unit], len(list)-len(seen), len(list))
			}
			newer[unit]++
		}
	})
}

// The collector looks each minute, lets each dead container lie for one, and
// goes on after a failure.
func TestCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var removed []string
		swept := 0
		var events []string
		list := []gc.Dead{{ID: "old", Name: "a"}, {ID: "new", Name: "a", Attempt: 1}}
		c := gc.NewContainerCollector(gc.ContainerConfig{
			Policy:    gc.Policy{MinAge: time.Minute, PerContainer: 1, Total: 10},
			Inventory: func(context.Context) ([]gc.Dead, error) { return slices.Clone(list), nil },
			Remove: func(_ context.Context, id string) error {
				removed = append(removed, fmt.Sprint(id, " at ", time.Since(begin)))
				if len(removed) == 1 {
					return errors.New("busy")
				}
				list = list[1:]
				return nil
			},
			Links:  func(context.Context) error { swept++; return nil },
			Claims: func(context.Context) error { swept++; return errors.New("busy") },
			Event:  func(e pod.Event) { events = append(events, e.Reason) },
			Log:    slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Second)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if want := []string{"old at 2m0s", "old at 3m0s"}; !slices.Equal(removed, want) {
			t.Errorf("removed %v, want %v", removed, want)
		}
		if want := []string{pod.ContainerGCFailed}; !slices.Equal(events, want) {
			t.Errorf("events %v, want %v", events, want)
		}
		if swept != 10 {
			t.Errorf("links and claims swept %d times, want 5 each", swept)
		}
	})
}
