package podlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
)

// Sweep removes every link of ours that is not among those to keep, and the
// folders of ours that this leaves empty. It returns how many links went. keep
// must know every link that was ensured before the call: it is the whole of
// what the engine has, never a part. One removed by mistake comes back with the
// next Ensure.
func Sweep(cfg Config, keep []Link) (removed int, err error) {
	if cfg.PodsDir == "" {
		return 0, nil
	}
	if err := cfg.check(); err != nil {
		return 0, fmt.Errorf("sweep log links: %w", err)
	}
	pods, err := openRoot(cfg.PodsDir)
	if pods == nil || err != nil {
		return 0, err
	}
	defer pods.Close()
	entries, err := fs.ReadDir(pods.FS(), ".")
	if err != nil {
		return 0, fmt.Errorf("sweep log links: %w", err)
	}
	ours := map[string]bool{}
	for _, e := range entries {
		if owned(pods, e.Name(), cfg.Owner) {
			ours[e.Name()] = true
		}
	}
	removed, err = sweep(cfg, pods, ours, keep)
	if err != nil {
		return removed, fmt.Errorf("sweep log links: %w", err)
	}
	return removed, nil
}

// RemovePod removes all links of a pod and its folder. Nothing there, and a
// folder that is not ours, is success.
func RemovePod(cfg Config, key pod.Key, uid types.UID) error {
	if cfg.PodsDir == "" {
		return nil
	}
	if err := cfg.check(key.Namespace, key.Name, string(uid)); err != nil {
		return fmt.Errorf("remove log links of %s: %w", key, err)
	}
	pods, err := openRoot(cfg.PodsDir)
	if pods == nil || err != nil {
		return err
	}
	defer pods.Close()
	folder := folderName(key, uid)
	if !owned(pods, folder, cfg.Owner) {
		// Empty is what a crash leaves, and somebody may have removed the whole
		// folder: what points into it from outside is by its name this pod's.
		if info, err := pods.Lstat(folder); err == nil && (!info.IsDir() || remove(pods, folder) != nil) {
			return nil
		}
	}
	if _, err := sweep(cfg, pods, map[string]bool{folder: true}, nil); err != nil {
		return fmt.Errorf("remove log links of %s: %w", key, err)
	}
	return nil
}

// owned reports whether it is a pod's folder that names the owner. A link to
// one is not.
func owned(pods *os.Root, folder, owner string) bool {
	if info, err := pods.Lstat(folder); err != nil || !info.IsDir() {
		return false
	}
	got, err := pods.Readlink(path.Join(folder, marker))
	return err == nil && got == owner
}

// openRoot returns nil where the folder is missing.
func openRoot(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open log folder: %w", err)
	}
	return root, nil
}

// sweep removes what is not kept of the folders that are ours, the links of
// ContainersDir first: they are known by the folders that they point into.
func sweep(cfg Config, pods *os.Root, ours map[string]bool, keep []Link) (int, error) {
	kept := map[string]bool{}
	for _, l := range keep {
		kept[PodPath(cfg, l)] = true
		kept[ContainerPath(cfg, l)] = true
	}
	removed, err := sweepContainers(cfg, ours, kept)
	if err != nil {
		return removed, err
	}
	var errs []error
	for folder := range ours {
		n, err := sweepFolder(cfg, pods, folder, kept)
		removed += n
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

func sweepContainers(cfg Config, ours, kept map[string]bool) (int, error) {
	if cfg.ContainersDir == "" {
		return 0, nil
	}
	root, err := openRoot(cfg.ContainersDir)
	if root == nil || err != nil {
		return 0, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return 0, err
	}
	removed := 0
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink || kept[filepath.Join(cfg.ContainersDir, e.Name())] {
			continue
		}
		target, err := root.Readlink(e.Name())
		if err != nil {
			continue // gone meanwhile
		}
		l, ok := parse(cfg, target)
		if !ok || !ours[folderName(l.Key, l.UID)] || !namedFor(e.Name(), l) {
			continue
		}
		if err := remove(root, e.Name()); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// namedFor reports whether a link in ContainersDir is called as one to that
// place is, or was about to be.
func namedFor(name string, to Link) bool {
	if strings.HasPrefix(name, ".") {
		return strings.HasSuffix(name, ".tmp")
	}
	return strings.HasPrefix(name, cut(to.prefix())) && strings.HasSuffix(name, suffix)
}

// sweepFolder removes links of one pod's folder, and what is empty then, the
// name of the owner last.
func sweepFolder(cfg Config, pods *os.Root, folder string, kept map[string]bool) (int, error) {
	dirs, err := fs.ReadDir(pods.FS(), folder)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	removed, left := 0, 0
	for _, d := range dirs {
		if d.Name() == marker {
			continue
		}
		left++
		if !d.IsDir() {
			continue
		}
		dir := path.Join(folder, d.Name())
		n, err := sweepContainer(cfg, pods, dir, kept)
		removed += n
		if err != nil {
			return removed, err
		}
		err = remove(pods, dir)
		if err == nil {
			left--
		} else if !errors.Is(err, unix.ENOTEMPTY) {
			return removed, err
		}
	}
	if left > 0 {
		return removed, nil
	}
	return removed, errors.Join(remove(pods, path.Join(folder, marker)), remove(pods, folder))
}

func sweepContainer(cfg Config, pods *os.Root, dir string, kept map[string]bool) (int, error) {
	entries, err := fs.ReadDir(pods.FS(), dir)
	if err != nil {
		return 0, err
	}
	removed := 0
	for _, e := range entries {
		name := strings.TrimSuffix(strings.TrimPrefix(e.Name(), "."), ".tmp")
		if _, ok := parseAttempt(name); !ok || e.Type() != fs.ModeSymlink || kept[filepath.Join(cfg.PodsDir, dir, e.Name())] {
			continue
		}
		if err := remove(pods, path.Join(dir, e.Name())); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
