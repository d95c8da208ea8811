package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/podkeeper/podkeeper/runtime"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// byAttempt returns the containers by rising attempt, ties by id: the list itself
// where it is in that order. Clocks never order containers: they jump.
func byAttempt(list []runtime.Container) []runtime.Container {
	if slices.IsSortedFunc(list, compareAttempts) {
		return list
	}
	return slices.SortedFunc(slices.Values(list), compareAttempts)
}

func compareAttempts(a, b runtime.Container) int {
	return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.ID, b.ID))
}

// joined lists field names for a message, the first few of many.
func joined(fields []string) string {
	const most = 3
	if len(fields) > most {
		return strings.Join(fields[:most], ", ") + ", …"
	}
	return strings.Join(fields, ", ")
}
