package stats

import (
	"context"
	"time"
)

var (
	NextWalk  = nextWalk
	FreeAfter = freeAfter
	Scheduled = scheduled
	OOMKills  = oomKills
	PlaceOf   = func(file string, mounts map[string]string) map[string]string { return placeOf(file, mounts) }
)

// SetWalk replaces what walks.
func (w *Walker) SetWalk(f func(context.Context, string) (Usage, error)) { w.walk = f }

// Known is of how many folders something is kept.
func (w *Walker) Known() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.known)
}

const Forget = forget + time.Second

var (
	WatchUsage    = watchUsage
	WatchPressure = watchPressure
	WatchUrgent   = watchUrgent
)

var (
	Booted        = booted
	Meminfo       = meminfo
	ParsePressure = parsePressure
)
