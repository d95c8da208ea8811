package rootdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"k8s.io/apimachinery/pkg/types"
)

// ErrMounted: something is mounted in the folder that was to be removed.
var ErrMounted = errors.New("still mounted")

// RemovePod removes the folder of a pod with all that is in it. One that is
// missing is success. Symbolic links are removed, never followed. Where
// anything is mounted in the folder nothing is removed; the error wraps
// ErrMounted and names the mount points.
func (d *Dir) RemovePod(uid types.UID) error {
	name := string(uid)
	if name == "." || !filepath.IsLocal(name) || strings.Contains(name, "/") {
		return fmt.Errorf("remove folder of pod %q: %w", uid, fs.ErrInvalid)
	}
	rel := path.Join(podsDir, name)
	if _, err := d.root.Lstat(rel); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	mounts, err := d.mountsBelow(rel)
	if err != nil {
		return fmt.Errorf("remove folder of pod %s: %w", uid, err)
	}
	if len(mounts) > 0 {
		return fmt.Errorf("remove folder of pod %s: %w: %s", uid, ErrMounted, strings.Join(mounts, ", "))
	}
	if err := d.root.RemoveAll(rel); err != nil {
		return fmt.Errorf("remove folder of pod %s: %w", uid, err)
	}
	return nil
}

// mountsBelow returns the mount points at and below a folder, as the kernel
// spells them.
func (d *Dir) mountsBelow(rel string) ([]string, error) {
	// The kernel's list knows no symbolic links.
	parent, err := filepath.EvalSymlinks(filepath.Join(d.path, path.Dir(rel)))
	if err != nil {
		return nil, err
	}
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(filepath.Join(parent, path.Base(rel))))
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	var mounts []string
	for _, info := range infos {
		mounts = append(mounts, info.Mountpoint)
	}
	return mounts, nil
}
