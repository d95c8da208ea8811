package stats

import (
	"strings"
	"time"
)

const (
	// walkAgain is the least age at which what is known of a folder is replaced.
	walkAgain = time.Minute
	// walkShare bounds what walking takes of a core: of so much time, one part.
	walkShare = 100
)

// nextWalk returns which of the wanted folders to walk next, and the instant from
// which on it may be: the one that was not walked for longest. walked has when the
// others were; free is when walking is affordable again. ok is false where none is
// wanted.
func nextWalk(wanted map[string]bool, walked map[string]time.Time, free time.Time) (folder string, at time.Time, ok bool) {
	var oldest time.Time
	for name := range wanted {
		last := walked[name]
		if c := last.Compare(oldest); !ok || c < 0 || c == 0 && strings.Compare(name, folder) < 0 {
			folder, oldest, ok = name, last, true
		}
	}
	if !oldest.IsZero() {
		at = oldest.Add(walkAgain)
	}
	if free.After(at) {
		at = free
	}
	return folder, at, ok
}

// freeAfter returns when the next walk is affordable, after one that began and ended
// then.
func freeAfter(began, ended time.Time) time.Time {
	return began.Add(walkShare * ended.Sub(began))
}
