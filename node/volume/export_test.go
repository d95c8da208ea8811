package volume

import (
	"os"
	"time"
)

// EnsureFilesUpTo takes the first n steps of what Ensure does in the volume's
// folder dir, which must exist, and reports whether there were so many.
func EnsureFilesUpTo(dir string, r Request, n int, now time.Time) (bool, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	steps, err := r.update(root, now)
	if err != nil || n > len(steps) {
		return false, err
	}
	for _, step := range steps[:n] {
		if err := step(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// RemoveTree removes a name in a directory as Remove does, mounts or not.
func RemoveTree(dir, name string) error {
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return removeTree(d, name)
}

// LimitedProjects returns those of the first ten projects of ours that have a limit
// or count anything on the filesystem of a folder.
func LimitedProjects(dir string) (list []uint32, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for id := uint32(firstProject); id < firstProject+10; id++ {
		q, _, err := quotaOf(f, id)
		if err != nil {
			return nil, err
		}
		if q.hard != 0 || q.space != 0 || q.inodes != 0 {
			list = append(list, id)
		}
	}
	return list, nil
}
