package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
)

// The content of a volume lies in a folder of its own, which a link points to;
// what containers look for are links over that link:
//
//	..2026_01_02_15_04_05.123456789/   the files
//	..data -> ..2026_01_02_15_04_05.123456789
//	<first part of a path> -> ..data/<first part of a path>
//
// So one rename changes everything at once.
const (
	dataLink = "..data"
	tempLink = "..data_tmp"
	stamp    = "..2006_01_02_15_04_05.000000000"
)

// hidden reports whether a name in the volume is the writer's own.
func hidden(name string) bool { return strings.HasPrefix(name, "..") }

// makesMissing reports whether a path that is missing in the volume can be made:
// not where somebody else gives the content, and not where nothing is written.
func makesMissing(v v1.Volume) bool {
	return v.ConfigMap == nil && v.Secret == nil && v.Projected == nil && v.DownwardAPI == nil
}

// holdsSecrets reports whether the content may have secret values, now or after
// an update.
func holdsSecrets(v v1.Volume) bool {
	return v.Secret != nil || v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s v1.VolumeProjection) bool {
		return s.Secret != nil
	})
}

// ensureFiles makes the files of the request be the whole content of the volume.
func ensureFiles(root *os.Root, r Request) error {
	for _, f := range r.Files {
		if err := f.check(); err != nil {
			return err
		}
	}
	own := r.born(0o755, groupReadDir)
	dir, err := makeDir(root, r.Volume, own)
	if err != nil {
		return err
	}
	if holdsSecrets(r.Volume) {
		if err := mountTmpfs(dir, own, 0); err != nil {
			return err
		}
	}
	volume, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer volume.Close()
	steps, err := r.update(volume, time.Now())
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (f File) check() error {
	first, _, _ := strings.Cut(f.Path, "/")
	if !filepath.IsLocal(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "." || hidden(first) {
		return fmt.Errorf("file %q of a volume: %w", f.Path, fs.ErrInvalid)
	}
	return nil
}

// update returns what is to be done so that a volume has the files, none where it
// has. Who opens a file by its path sees all of the old content before one of the
// steps, and all of the new one from then on; if the steps end anywhere, those
// that another call returns lead on.
func (r Request) update(volume *os.Root, now time.Time) ([]func() error, error) {
	old, err := contentOf(volume)
	if err != nil {
		return nil, err
	}
	links := make(map[string]bool)
	for _, f := range r.Files {
		first, _, _ := strings.Cut(f.Path, "/")
		links[first] = true
	}
	var steps []func() error
	do := func(f func() error) { steps = append(steps, f) }
	data := old.data
	same := r.same(old)
	if !same {
		data = now.UTC().Format(stamp)
		do(func() error { return r.makeDir(volume, data) })
		for _, f := range r.Files {
			do(func() error { return r.write(volume, data, f) })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if target := dataLink + "/" + name; old.links[name] != target {
			do(func() error { return relink(volume, target, name) })
		}
	}
	if !same {
		do(func() error { return relink(volume, data, tempLink) })
		do(func() error { return volume.Rename(tempLink, dataLink) })
	}
	for _, name := range old.names {
		if name != dataLink && name != data && !links[name] {
			do(func() error { return volume.RemoveAll(name) })
		}
	}
	return steps, nil
}

// content is what a volume holds.
type content struct {
	names []string          // in its folder
	links map[string]string // targets of those that are links
	data  string            // folder of the files, "" for none
	files map[string]held   // by path
}

// held is a file that is there.
type held struct {
	data  []byte
	owner owner
	user  int
}

func contentOf(volume *os.Root) (content, error) {
	c := content{links: make(map[string]string), files: make(map[string]held)}
	entries, err := fs.ReadDir(volume.FS(), ".")
	if err != nil {
		return c, err
	}
	for _, e := range entries {
		c.names = append(c.names, e.Name())
		if e.Type()&fs.ModeSymlink != 0 {
			if c.links[e.Name()], err = volume.Readlink(e.Name()); err != nil {
				return c, err
			}
		}
	}
	c.data = c.links[dataLink]
	if !slices.Contains(c.names, c.data) {
		c.data = ""
		return c, nil
	}
	return c, c.read(volume)
}

func (c *content) read(volume *os.Root) error {
	return fs.WalkDir(volume.FS(), c.data, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := volume.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		own := owner{mode: uint32(info.Mode().Perm()), gid: int(st.Gid)}
		c.files[strings.TrimPrefix(name, c.data+"/")] = held{data, own, int(st.Uid)}
		return nil
	})
}

// same reports whether the volume has the files, all of them and no others.
func (r Request) same(c content) bool {
	if c.data == "" || len(c.files) != len(r.Files) {
		return false
	}
	return !slices.ContainsFunc(r.Files, func(f File) bool {
		has, ok := c.files[f.Path]
		return !ok || string(has.data) != f.Data || has.owner != r.ownerOf(f) || has.user != f.user()
	})
}

func (f File) user() int {
	if f.User == nil {
		return os.Geteuid()
	}
	return int(*f.User)
}

func (r Request) ownerOf(f File) owner { return r.born(uint32(f.Mode.Perm()), groupReadFile) }

// makeDir makes a directory for files, and those above it.
func (r Request) makeDir(volume *os.Root, name string) error {
	if err := volume.Mkdir(name, 0o700); err != nil {
		return err
	}
	return r.born(0o755, groupReadDir).give(volume, name)
}

// write writes a file into a folder that nobody looks into yet.
func (r Request) write(volume *os.Root, folder string, f File) error {
	dir := folder
	for _, part := range slices.DeleteFunc(strings.Split(path.Dir(f.Path), "/"), func(p string) bool { return p == "." }) {
		dir = path.Join(dir, part)
		if err := r.makeDir(volume, dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	name := path.Join(folder, f.Path)
	if err := volume.WriteFile(name, []byte(f.Data), 0o600); err != nil {
		return err
	}
	if err := volume.Lchown(name, f.user(), -1); err != nil {
		return err
	}
	return r.ownerOf(f).give(volume, name)
}

// relink makes a name be a link, whatever it was.
func relink(volume *os.Root, target, name string) error {
	if err := volume.RemoveAll(name); err != nil {
		return err
	}
	return volume.Symlink(target, name)
}
