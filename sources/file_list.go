package sources

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/pod"
)

// listing is what lies in the folder now, as far as it may be a manifest.
type listing struct {
	paths   []string
	links   map[string]bool
	skipped []pod.Skipped // needs no look to be skipped
	// complete: what is not in it is not there.
	complete bool
}

// list looks at each file of the folder. A listing that races with renames may
// lack a file that was there all the time: where one differs from the last, only
// two that agree are believed.
func (l *folder) list(now time.Time) (changed bool) {
	believed := l.names
	for range 5 {
		entries, err := l.cfg.FS.ReadDir(l.cfg.Path)
		if err != nil {
			l.wake(now.Add(namesLimit)) // it was there a moment ago
			return l.silence(err)
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		if slices.EqualFunc(entries, believed, func(e fs.DirEntry, name string) bool { return e.Name() == name }) {
			l.names = believed
			return l.hear(now, l.sort(entries, true))
		}
		believed = make([]string, 0, len(entries))
		for _, e := range entries {
			believed = append(believed, e.Name())
		}
	}
	// Renames go on and on: what is there is looked at, nothing is missed yet.
	l.wake(now.Add(namesLimit))
	entries, err := l.cfg.FS.ReadDir(l.cfg.Path)
	if err != nil {
		return l.silence(err)
	}
	return l.hear(now, l.sort(entries, false))
}

// sort tells manifests from the rest, by name and type.
func (l *folder) sort(entries []fs.DirEntry, complete bool) listing {
	ls := listing{paths: make([]string, 0, len(entries)), complete: complete}
	for _, e := range entries {
		path := filepath.Join(l.cfg.Path, e.Name())
		reason := refusedName(e.Name())
		if odd := e.Type() & (fs.ModeDir | fs.ModeNamedPipe | fs.ModeSocket | fs.ModeDevice); reason == "" && odd != 0 {
			reason = describe(odd)
		}
		if reason == "" {
			reason = refusedExtension(e.Name(), l.cfg.Extensions)
		}
		if reason != "" {
			ls.skipped = append(ls.skipped, pod.Skipped{Path: path, Reason: reason})
			continue
		}
		ls.paths = append(ls.paths, path)
		if e.Type()&fs.ModeSymlink != 0 {
			if ls.links == nil {
				ls.links = map[string]bool{}
			}
			ls.links[path] = true
		}
	}
	return ls
}

// hear takes in a look that could be had.
func (l *folder) hear(now time.Time, ls listing) (changed bool) {
	if l.away {
		l.away, l.returned, changed = false, now, true
		l.log.Info("manifests can be looked at again")
	}
	present := make(map[string]bool, len(ls.paths))
	settled, raced, unfinished := ls.complete, false, false
	for _, path := range ls.paths {
		switch seen, reason := l.lookAt(path, now, ls.links[path]); seen {
		case seenSkipped:
			ls.skipped = append(ls.skipped, pod.Skipped{Path: path, Reason: reason})
			continue
		case seenChanged:
			changed = true
		case seenUnfinished:
			settled, unfinished = false, true
		case seenNoMore:
			settled, raced = false, true
		}
		present[path] = true
	}
	if l.races = l.races + 1; !raced {
		l.races = 0
	}
	if ls.complete {
		changed = l.forget(now, present, unfinished) || changed
	}
	changed = l.skip(ls.skipped) || changed

	l.listed = l.listed || ls.complete
	spoken := l.src.Spoken || settled
	changed = changed || spoken != l.src.Spoken || !l.src.Present
	l.src.Spoken, l.src.Present, l.src.Problem, l.src.Read = spoken, true, "", l.cfg.Now()
	return changed
}

// forget drops the files that are not there any more, once that is certain. A
// folder that has come back may still be being filled; and while another file
// is being written, the pods may just be moving there.
func (l *folder) forget(now time.Time, present map[string]bool, unfinished bool) (changed bool) {
	var missing []string
	for path, f := range l.files {
		if present[path] {
			changed = changed || !f.missed.IsZero()
			f.missed = time.Time{}
		} else {
			missing = append(missing, path)
		}
	}
	slices.Sort(missing)
	for _, path := range missing {
		f := l.files[path]
		if f.missed.IsZero() {
			f.missed, changed = now, true
		}
		believed := f.missed
		if unfinished {
			believed = f.missed.Add(moveQuiet)
		}
		if back := l.returned.Add(returnQuiet); !l.returned.IsZero() && back.After(believed) {
			believed = back
		}
		if now.Before(believed) {
			l.wake(believed)
			continue
		}
		delete(l.files, path)
		delete(l.unkept, path)
		delete(l.watched.targets, f.target)
		l.gone = append(l.gone, path)
		l.log.Info("manifest is gone", append([]any{"origin", path}, namesOf(f.docs)...)...)
		changed = true
	}
	return changed
}

// skip notes what is not taken for a manifest, and says so once.
func (l *folder) skip(skipped []pod.Skipped) (changed bool) {
	slices.SortFunc(skipped, func(a, b pod.Skipped) int { return strings.Compare(a.Path, b.Path) })
	if slices.Equal(skipped, l.skipped) {
		return false
	}
	for _, s := range skipped {
		switch {
		case slices.Contains(l.skipped, s):
		case refusedName(filepath.Base(s.Path)) != "":
			l.log.Debug("not a manifest", "path", s.Path, "reason", s.Reason)
		case s.Reason == leadsNowhere:
			l.log.Warn("not a manifest", "path", s.Path, "reason", s.Reason)
		default:
			l.log.Info("not a manifest", "path", s.Path, "reason", s.Reason)
		}
	}
	l.skipped = skipped
	return true
}

// namesOf are the names of what docs supply, for the log.
func namesOf(docs []document) []any {
	pods, objects := make([]string, 0, len(docs)), []string(nil)
	for _, d := range docs {
		if d.pod != nil {
			pods = append(pods, d.pod.Key().String())
		} else {
			objects = append(objects, d.object.Key.String())
		}
	}
	names := []any{"pods", pods}
	if len(objects) > 0 {
		names = append(names, "objects", objects)
	}
	return names
}
