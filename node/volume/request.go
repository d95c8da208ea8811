package volume

import (
	"fmt"
	"io/fs"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
)

// Request is a volume of a pod, and all that it takes to make it. The calls that
// only look for it need no more than UID, Namespace and Volume.
type Request struct {
	UID       types.UID
	Namespace string
	Volume    v1.Volume
	// Files are the whole content of a configMap, secret, projected or downwardAPI
	// volume; nil for the other kinds.
	Files []File
	// Claim is what a persistentVolumeClaim names; nil where it is gone, and for the
	// other kinds.
	Claim *pod.Object
	// FSGroup is the group that is to own the volume; nil leaves it as it is.
	FSGroup *int64
	// ChangePolicy says when; "" is Always. It is for volumes that outlive the pod.
	ChangePolicy v1.PodFSGroupChangePolicy
	// MemoryLimit is the pod's in bytes, 0 where it has none. It bounds what a
	// volume in memory can hold.
	MemoryLimit int64
	// PageSize is that of the huge pages that the pod's containers ask for in bytes,
	// 0 for none or several. It is for a medium that does not name one.
	PageSize int64
	// Shared: mounts that are made later in the volume are to reach containers, or
	// to come from one. Where the host does not share mounts there, the volume is
	// made to. A path of the host is as the host has it.
	Shared bool
}

// File is one file of a volume's content. Printing it does not tell what is in it.
type File struct {
	// Path is relative to the volume: clean, with slashes, not led out by "..", and
	// its first part does not begin with "..".
	Path string
	// Data is not copied from where it is kept.
	Data string `json:"-"`
	// Mode has the permission bits that the file gets, whatever the umask. A group
	// that owns the volume may read it in any case.
	Mode fs.FileMode
	// User owns the file; nil is the agent's own.
	User *int64
}

// String returns path, mode and length.
func (f File) String() string {
	return fmt.Sprintf("%s (%#o, %d bytes)", f.Path, f.Mode.Perm(), len(f.Data))
}

// GoString returns the same.
func (f File) GoString() string { return f.String() }
