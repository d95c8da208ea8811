package cgroup

import (
	"fmt"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Driver is who makes the cgroups of containers, as engines name it.
type Driver string

// The drivers.
const (
	Cgroupfs Driver = "cgroupfs"
	Systemd  Driver = "systemd"
)

// Drivers has both.
func Drivers() []Driver { return []Driver{Cgroupfs, Systemd} }

const slice = ".slice"

// Path returns where the cgroup of these names, each in the one before, lies below
// the mount point of a hierarchy: "/kubepods/burstable". Of a slice, systemd's names
// say the whole way there: "/kubepods.slice/kubepods-burstable.slice".
func (d Driver) Path(names ...string) string {
	if d != Systemd {
		return path.Join("/", path.Join(names...))
	}
	whole, unit := "/", ""
	for _, name := range names {
		name = strings.ReplaceAll(strings.TrimSuffix(name, slice), "-", "_")
		unit = strings.TrimPrefix(unit+"-"+name, "-")
		whole = path.Join(whole, unit+slice)
	}
	return whole
}

// Parent returns what an engine is told to make containers in the cgroup at a path:
// the path, or the name of the slice.
func (d Driver) Parent(at string) string {
	if d == Systemd {
		return path.Base(at)
	}
	return at
}

// ParentPath returns where the cgroup lies that an engine was told of, by either
// driver.
func ParentPath(parent string) string {
	name, isSlice := strings.CutSuffix(parent, slice)
	if !isSlice || strings.Contains(parent, "/") {
		return path.Join("/", parent)
	}
	return Systemd.Path(strings.Split(name, "-")...)
}

// kubepods returns the names that lead to the cgroup of a class of pods. Guaranteed
// ones have none of their own.
func kubepods(root string, class v1.PodQOSClass) []string {
	names := append(strings.FieldsFunc(root, func(r rune) bool { return r == '/' }), "kubepods")
	if class == v1.PodQOSBurstable || class == v1.PodQOSBestEffort {
		names = append(names, strings.ToLower(string(class)))
	}
	return names
}

func podPath(d Driver, root string, class v1.PodQOSClass, uid types.UID) string {
	return d.Path(append(kubepods(root, class), "pod"+string(uid))...)
}

// uidOf returns whose cgroup a folder is; "" where it is no pod's.
func uidOf(folder string) types.UID {
	name, isSlice := strings.CutSuffix(folder, slice)
	if isSlice {
		name = strings.ReplaceAll(name[strings.LastIndex(name, "-")+1:], "_", "-")
	}
	uid, ok := strings.CutPrefix(name, "pod")
	if !ok {
		return ""
	}
	return types.UID(uid)
}

// CheckRoot says what is wrong with the path of a cgroup that kubepods is to be in;
// "/" is the hierarchy's own.
func CheckRoot(root string) error {
	if !strings.HasPrefix(root, "/") || path.Clean(root) != root {
		return fmt.Errorf("%q: want the path of a cgroup, such as /pods", root)
	}
	for _, name := range strings.Split(root, "/") {
		if strings.HasPrefix(name, ".") || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%q: no cgroup is named %q", root, name)
		}
	}
	return nil
}
