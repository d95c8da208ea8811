package podlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrForeign: the pod's folder belongs to another agent, or to nobody that is
// known.
var ErrForeign = errors.New("log folder is not ours")

// marker is the link in a pod's folder that names its owner. No container is
// called that.
const marker = ".podkeeper"

// Ensure makes both links of a container that has a log file, and the folders
// above them (0755). A link that points elsewhere is replaced in one step, so
// that readers see the old or the new one. It does nothing where everything is
// as it should be.
//
// Where the name in ContainersDir had to be cut and another container has the
// same, a later attempt takes it from an earlier one of the same container,
// and anybody takes it from one whose log is gone.
func Ensure(cfg Config, l Link) error {
	if cfg.PodsDir == "" || l.LogPath == "" {
		return nil
	}
	if err := cfg.check(l.Key.Namespace, l.Key.Name, string(l.UID), l.Container, l.ID); err != nil {
		return fmt.Errorf("link log of %s in %s: %w", l.Container, l.Key, err)
	}
	err := ensurePodLink(cfg, l)
	if err == nil && cfg.ContainersDir != "" {
		err = ensureContainerLink(cfg, l)
	}
	if err != nil {
		return fmt.Errorf("link log of %s in %s: %w", l.Container, l.Key, err)
	}
	return nil
}

func ensurePodLink(cfg Config, l Link) error {
	root, err := makeRoot(cfg.PodsDir)
	if err != nil {
		return err
	}
	defer root.Close()
	folder := folderName(l.Key, l.UID)
	if err := claim(root, folder, cfg.Owner); err != nil {
		return err
	}
	dir := path.Join(folder, l.Container)
	if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	name := filepath.Base(PodPath(cfg, l))
	return place(root, path.Join(dir, name), path.Join(dir, tempName(name)), l.LogPath, func(string) bool { return true })
}

func ensureContainerLink(cfg Config, l Link) error {
	root, err := makeRoot(cfg.ContainersDir)
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.Base(ContainerPath(cfg, l))
	return place(root, name, tempName(l.ID), PodPath(cfg, l), func(old string) bool { return mayReplace(cfg, l, old) })
}

// mayReplace decides whether the container's link may take the place of one
// that points to old. An uncut name has the whole id, so whatever bears it is
// about this container.
func mayReplace(cfg Config, l Link, old string) bool {
	if name := l.prefix() + l.ID; cut(name) == name {
		return true
	}
	o, ok := parse(cfg, old)
	if ok && o.Key == l.Key && o.UID == l.UID && o.Container == l.Container {
		return o.Attempt < l.Attempt
	}
	_, err := os.Stat(old)
	return errors.Is(err, fs.ErrNotExist)
}

func makeRoot(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// claim makes the pod's folder and names its owner. One that is empty is what
// a crash in between leaves.
func claim(root *os.Root, folder, owner string) error {
	mark := path.Join(folder, marker)
	if got, err := root.Readlink(mark); err == nil {
		if got != owner {
			return fmt.Errorf("%w: %s belongs to %s", ErrForeign, folder, got)
		}
		return nil
	}
	if err := root.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := fs.ReadDir(root.FS(), folder)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: %s does not say whose it is", ErrForeign, folder)
	}
	return root.Symlink(owner, mark)
}

// tempName is what a link is called until it takes the place of another.
func tempName(name string) string { return "." + name + ".tmp" }

// place makes name a link to target; replace decides about one that points
// elsewhere.
func place(root *os.Root, name, temp, target string, replace func(old string) bool) error {
	old, err := root.Readlink(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return root.Symlink(target, name)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%s is there and is no link: %w", filepath.Join(root.Name(), name), fs.ErrExist)
	case err != nil:
		return err
	case old == target || !replace(old):
		return nil
	}
	if err := remove(root, temp); err != nil {
		return err
	}
	if err := root.Symlink(target, temp); err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		return errors.Join(err, remove(root, temp))
	}
	return nil
}

// remove removes a link or an empty folder; one that is gone is success.
func remove(root *os.Root, name string) error {
	if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
