package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// item is one thing of the root dir that a container mounts, or that lies in what
// it mounts: whoever makes the container has to make it before.
type item struct {
	path string
	mode fs.FileMode // of a directory or a file
	data []byte      // of a file
	// What else it may be, "" for not: where a link leads to, the options of a tmpfs,
	// what of the same pod is bound there.
	link, tmpfs, bound string
}

// made returns what a body asks to mount of the root dir, as it is there now.
func made(root string, body []byte) ([]item, error) {
	var asked struct {
		HostConfig struct{ Mounts []struct{ Source string } }
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(root))
	if err != nil {
		return nil, err
	}
	var whole, parts []item
	for _, m := range asked.HostConfig.Mounts {
		if !strings.HasPrefix(m.Source, root+"/") {
			continue
		}
		i := slices.IndexFunc(mounts, func(on *mountinfo.Info) bool { return on.Mountpoint == m.Source })
		if i >= 0 && (mounts[i].FSType != "tmpfs" || mounts[i].Root != "/") {
			part, err := boundAt(m.Source)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
			continue
		}
		tree, err := below(m.Source)
		if err != nil {
			return nil, err
		}
		if i >= 0 {
			tree[0].tmpfs = mounts[i].VFSOptions
		}
		whole = append(whole, tree...)
	}
	return append(whole, parts...), nil
}

// below returns what there is from a path on down.
func below(top string) ([]item, error) {
	var tree []item
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		i := item{path: path, mode: info.Mode()}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			i.link, err = os.Readlink(path)
		case info.Mode().IsRegular():
			i.data, err = os.ReadFile(path)
		}
		tree = append(tree, i)
		return err
	})
	return tree, err
}

// boundAt finds what is bound on a path among the volumes of the pod.
func boundAt(path string) (item, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return item{}, err
	}
	i := item{path: path, mode: info.Mode()}
	pod, _, _ := strings.Cut(path, "/volume-subpaths/")
	err = filepath.WalkDir(filepath.Join(pod, "volumes"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if there, err := e.Info(); err != nil || !os.SameFile(info, there) {
			return err
		}
		i.bound = path
		return filepath.SkipAll
	})
	if err == nil && i.bound == "" {
		err = fmt.Errorf("%s: what is mounted there is in no volume of the pod", path)
	}
	return i, err
}

// place makes the item, and the folders that lead to it.
func (i item) place() error {
	if err := os.MkdirAll(filepath.Dir(i.path), 0o755); err != nil {
		return err
	}
	switch {
	case i.link != "":
		return os.Symlink(i.link, i.path)
	case i.mode.IsRegular():
		if err := os.WriteFile(i.path, i.data, 0o600); err != nil {
			return err
		}
	default:
		if err := os.MkdirAll(i.path, 0o755); err != nil {
			return err
		}
	}
	switch {
	case i.bound != "":
		if err := os.MkdirAll(filepath.Dir(i.bound), 0o755); err != nil {
			return err
		}
		return unix.Mount(i.bound, i.path, "", unix.MS_BIND, "")
	case i.tmpfs != "":
		return unix.Mount("tmpfs", i.path, "tmpfs", 0, i.tmpfs)
	default:
		return os.Chmod(i.path, i.mode)
	}
}

// prepare makes what the containers of the pod mount, and clear removes it.
func (p podCalls) prepare() error {
	for _, i := range p.items() {
		if err := i.place(); err != nil {
			return fmt.Errorf("make %s: %w", i.path, err)
		}
	}
	return nil
}

func (p podCalls) clear() error {
	var errs []error
	for _, i := range slices.Backward(p.items()) {
		if i.bound != "" || i.tmpfs != "" {
			errs = append(errs, unix.Unmount(i.path, unix.UMOUNT_NOFOLLOW))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err // what is mounted would be emptied
	}
	for _, i := range p.items() {
		errs = append(errs, os.RemoveAll(i.path))
	}
	return errors.Join(append(errs, os.RemoveAll(p.folder))...)
}

// items are those of all containers, each path once.
func (p podCalls) items() []item {
	var items []item
	for _, c := range slices.Concat(p.containers, p.later) {
		for _, i := range c.made {
			if !slices.ContainsFunc(items, func(o item) bool { return o.path == i.path }) {
				items = append(items, i)
			}
		}
	}
	return items
}
