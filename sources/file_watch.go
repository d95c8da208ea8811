package sources

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// maxTargets is how many folders are watched only because links lead there.
// Changes beyond are seen at the next periodic look.
const maxTargets = 16

// watched is which folders are watched, and what their names mean here.
type watched struct {
	id    Stat   // of the folder when real was found
	real  string // the folder without links; "" while it is missing, or a file
	above string // the name, without links, whose coming or going matters too

	targets map[string]string // file that a link leads to -> the link
	grew    bool              // targets has folders that are not watched yet
}

// meaning translates a path without links to the file it is about (child), or
// to path as a whole. "": it is about nothing here.
func (w *watched) meaning(path, hint string, single bool) (name string, child bool) {
	if link, ok := w.targets[hint]; ok {
		return link, true
	}
	switch {
	case hint == "", hint == w.real:
		return path, false
	case hint == w.above:
		return path, single
	case w.real != "" && filepath.Dir(hint) == w.real:
		return filepath.Join(path, filepath.Base(hint)), true
	case w.above != "" && strings.HasPrefix(w.above, hint+"/"):
		return path, false
	}
	return "", false
}

// watch asks for hints about all that matters. It comes before the listing, so
// that nothing falls between the two.
func (l *folder) watch(st Stat, err error) {
	w := &l.watched
	w.grew = false
	if l.cfg.Watcher == nil {
		return
	}
	var dirs []Dir
	isDir := err == nil && st.Mode&fs.ModeDir != 0
	switch {
	case !isDir:
		w.real = ""
	case w.real == "" || !st.sameFile(w.id) || l.moved:
		if w.real, err = l.cfg.FS.Resolve(l.cfg.Path); err != nil {
			w.real = ""
		}
		w.id = st
	}
	if w.real != "" {
		dirs = append(dirs, Dir{Path: w.real, Dev: st.Dev, Ino: st.Ino})
	}
	w.above = ""
	if w.real != l.cfg.Path { // missing, a file, or behind a link
		if d, name, ok := l.nearest(); ok {
			w.above = filepath.Join(d.Path, name)
			dirs = append(dirs, d)
		}
	}
	for _, dir := range w.targetFolders() {
		if st, err := l.cfg.FS.Stat(dir); err == nil {
			dirs = append(dirs, Dir{Path: dir, Dev: st.Dev, Ino: st.Ino})
		}
	}
	l.moved = false
	l.hints.set(dirs)
}

// nearest finds the closest folder above the path that exists, and the name in
// it that leads to the path.
func (l *folder) nearest() (dir Dir, name string, ok bool) {
	for path := l.cfg.Path; path != "/"; path = filepath.Dir(path) {
		up := filepath.Dir(path)
		st, err := l.cfg.FS.Stat(up)
		if err != nil || st.Mode&fs.ModeDir == 0 {
			continue
		}
		real, err := l.cfg.FS.Resolve(up)
		if err != nil {
			continue
		}
		return Dir{Path: real, Dev: st.Dev, Ino: st.Ino}, filepath.Base(path), true
	}
	return Dir{}, "", false
}

func (w *watched) targetFolders() []string {
	set := map[string]bool{}
	for target := range w.targets {
		set[filepath.Dir(target)] = true
	}
	delete(set, w.real)
	dirs := slices.Sorted(maps.Keys(set))
	return dirs[:min(len(dirs), maxTargets)]
}

// follow notes what a link leads to.
func (l *folder) follow(f *file) {
	if l.cfg.Watcher == nil {
		return
	}
	target, err := l.cfg.FS.Resolve(f.origin.Name)
	if err != nil || target == f.target {
		return
	}
	w := &l.watched
	delete(w.targets, f.target)
	f.target = target
	if target == f.origin.Name {
		return // a single file that is no link
	}
	if w.targets == nil {
		w.targets = map[string]string{}
	}
	w.targets[target] = f.origin.Name
	w.grew = true
}
