package sources

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/pod"
)

// folder is all that a File knows. One goroutine has it.
type folder struct {
	cfg   FileConfig
	log   *slog.Logger
	hints *hinter
	cache *writer

	src     pod.Source // without Origins and Skipped
	files   map[string]*file
	names   []string // of the last complete listing, sorted
	skipped []pod.Skipped

	listed   bool      // at least once
	single   bool      // the path was a file when last seen
	away     bool      // the path was missing when last looked at
	returned time.Time // when it came back

	watched watched
	hinted  bool // this look was brought on by a change of names
	moved   bool // a hint was about the folder itself
	races   int  // looks in a row that lost a file between listing and reading

	periodic time.Time        // the next look that needs no hint
	soon     time.Time        // a look that is wanted earlier; zero: none
	burst    span             // of names that changed
	writing  map[string]span  // by file
	unkept   map[string]*file // whose documents are to be handed to the cache
	gone     []string         // files whose records are to go
	swept    bool             // records without a file were removed
}

// span is the first and last time that something was seen to go on.
type span struct{ first, last time.Time }

func (s span) extended(now time.Time) span {
	if s.first.IsZero() {
		s.first = now
	}
	s.last = now
	return s
}

// end is when it is over, if nothing more is seen: after that long a quiet, but
// no later than limit after it began.
func (s span) end(quiet, limit time.Duration) time.Time {
	return earliest(s.last.Add(quiet), s.first.Add(limit))
}

// earliest ignores zero times.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

func newFolder(cfg FileConfig, id pod.SourceID, hints *hinter, cache *writer) *folder {
	return &folder{
		cfg: cfg, log: cfg.Log.With("source", id.String()), hints: hints, cache: cache,
		src:     pod.Source{ID: id},
		files:   map[string]*file{},
		writing: map[string]span{},
		unkept:  map[string]*file{},
	}
}

// take notes hints. Those about names that never matter are dropped, but only
// where the content changed: "..data" is how a whole folder is swapped.
func (l *folder) take(hints []Hint, now time.Time) {
	for _, h := range hints {
		path, child := l.watched.meaning(l.cfg.Path, h.Path, l.single)
		if path == "" {
			continue
		}
		if h.Op&Changed != 0 {
			l.burst = l.burst.extended(now)
			l.moved = l.moved || !child
		}
		if h.Op&Written != 0 && child && l.mayBe(path) {
			l.writing[path] = l.writing[path].extended(now)
		}
	}
}

// mayBe reports whether a file of that name can be a manifest.
func (l *folder) mayBe(path string) bool {
	name := filepath.Base(path)
	return l.single || refusedName(name) == "" && refusedExtension(name, l.cfg.Extensions) == ""
}

// due is when the next look is to come. While names change nothing is looked
// at: a file replaced in two steps must not be seen between them.
func (l *folder) due() time.Time {
	if l.burst != (span{}) {
		return l.burst.end(namesQuiet, namesLimit)
	}
	due := earliest(l.periodic, l.soon)
	for _, s := range l.writing {
		due = earliest(due, s.end(writeQuiet, writeLimit))
	}
	return due
}

// wake asks for a look at t at the latest.
func (l *folder) wake(t time.Time) { l.soon = earliest(l.soon, t) }

// look compares the world with what is known, and reports whether anything
// that is told of it has changed.
func (l *folder) look(now time.Time) (changed bool) {
	l.hinted = l.burst != (span{})
	l.soon, l.burst = time.Time{}, span{}
	if !now.Before(l.periodic) {
		l.periodic = now.Add(l.cfg.Period)
	}
	st, err := l.cfg.FS.Stat(l.cfg.Path)
	if err == nil {
		l.single = st.Mode&fs.ModeDir == 0
	}
	l.watch(st, err)
	switch {
	case err == nil && l.single:
		changed = l.hear(now, listing{paths: []string{l.cfg.Path}, links: map[string]bool{l.cfg.Path: true}, complete: true})
	case err == nil:
		changed = l.list(now)
	case errors.Is(err, fs.ErrNotExist) && l.isFile() && l.hasParent():
		changed = l.hear(now, listing{complete: true})
	default:
		changed = l.silence(err)
	}
	maps.DeleteFunc(l.writing, func(_ string, s span) bool { return !now.Before(s.end(writeQuiet, writeLimit)) })
	if l.watched.grew {
		// What happened in those folders before they were watched was not seen.
		l.watch(st, err)
		l.wake(now.Add(namesLimit))
	}
	return changed
}

// isFile guesses what a path that is missing stands for: what it was, else what
// it is called.
func (l *folder) isFile() bool {
	if l.listed {
		return l.single
	}
	ext := filepath.Ext(l.cfg.Path)
	return ext != "" && slices.Contains(l.cfg.Extensions, ext)
}

func (l *folder) hasParent() bool {
	st, err := l.cfg.FS.Stat(filepath.Dir(l.cfg.Path))
	return err == nil && st.Mode&fs.ModeDir != 0
}

// silence is a look that could not be had. It is said once, and whatever was
// supplied stays; at start that is what the cache has.
func (l *folder) silence(err error) (changed bool) {
	problem := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		problem = l.cfg.Path + " does not exist"
	}
	if l.away && l.src.Problem == problem {
		return false
	}
	if !l.listed && !l.away {
		l.recallAll()
	}
	l.away, l.src.Present, l.src.Problem = true, false, problem
	l.log.Warn("manifests cannot be looked at: pods stay as they are", "reason", problem, "pods", l.pods())
	return true
}

func (l *folder) pods() (n int) {
	for _, f := range l.files {
		n += len(status(f.origin, f.docs, nil, false).Pods)
	}
	return n
}

func (l *folder) recallAll() {
	names, err := recordsOf(l.cfg.Store, l.src.ID)
	if err != nil {
		l.log.Warn("last good manifests cannot be listed", "err", err)
	}
	for _, name := range names {
		if origin, docs := recall(l.cfg.Store, l.cfg.Parse, l.log, name); len(docs) > 0 {
			l.files[origin.Name] = &file{origin: origin, docs: docs, stale: true, recalled: true}
		}
	}
}

// supply builds what is sent.
func (l *folder) supply() Supply {
	s := Supply{Source: l.src}
	s.Source.Skipped = slices.Clone(l.skipped)
	for _, path := range slices.Sorted(maps.Keys(l.files)) {
		f := l.files[path]
		s.Source.Origins = append(s.Source.Origins, status(f.origin, f.docs, f.problems, f.stale || !f.missed.IsZero()))
		s.add(f.docs)
	}
	return s
}

// keep hands the cache what changed since the last call.
func (l *folder) keep() {
	for path, f := range l.unkept {
		l.cache.put(f.origin, f.docs)
		delete(l.unkept, path)
	}
	for _, path := range l.gone {
		l.cache.put(pod.Origin{Source: l.src.ID, Name: path}, nil)
	}
	l.gone = nil
	if l.listed && !l.swept {
		l.swept = true
		keep := map[string]bool{}
		for _, f := range l.files {
			keep[recordName(f.origin)] = true
		}
		l.cache.keepOnly(keep)
	}
	l.cache.signal()
}
