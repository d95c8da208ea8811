package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
)

// Host is a machine on which volumes are made. Calls for one pod must not
// overlap; those for different ones may.
type Host struct {
	// RootDir is the agent's, absolute.
	RootDir string
	// Programs are those of the machine; nil is the ones that are installed.
	Programs Programs

	claims sync.Mutex            // held while projects and the folders of claims are changed
	uses   map[pod.ObjectKey]int // how often the folder of a claim was asked for
}

// Error is why a volume cannot be had now. It may be had later: somebody may
// make the directory, or bring the socket back.
type Error struct {
	// Volume is the volume's name, Path the path of the host that it is about.
	Volume, Path string
	// Message is the whole reason, in the kubelet's words where it has any.
	Message string
	// Err is the cause, nil where the message says it all.
	Err error
}

// Error returns the sentence that people know from the kubelet's events.
func (e *Error) Error() string {
	return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", e.Volume, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// folder returns where the volumes of a kind lie in a pod's folder, "" where they
// do not lie there.
func folder(v v1.Volume) string {
	switch {
	case v.EmptyDir != nil:
		return "volumes/kubernetes.io~empty-dir"
	case v.ConfigMap != nil:
		return "volumes/kubernetes.io~configmap"
	case v.Secret != nil:
		return "volumes/kubernetes.io~secret"
	case v.Projected != nil:
		return "volumes/kubernetes.io~projected"
	case v.DownwardAPI != nil:
		return "volumes/kubernetes.io~downward-api"
	case v.NFS != nil:
		return "volumes/kubernetes.io~nfs"
	case v.Ephemeral != nil:
		return "volumes/kubernetes.io~local-volume"
	default:
		return ""
	}
}

func (h *Host) podDir(uid types.UID) string { return filepath.Join(h.RootDir, "pods", string(uid)) }

// Path returns where Ensure puts the volume, "" for a kind that has no place on
// the host. It does no I/O.
func (h *Host) Path(r Request) string {
	if r.Volume.HostPath != nil {
		return filepath.Clean(r.Volume.HostPath.Path)
	}
	if r.Volume.PersistentVolumeClaim != nil {
		return h.ClaimPath(claimKey(r))
	}
	if dir := folder(r.Volume); dir != "" {
		return filepath.Join(h.podDir(r.UID), dir, r.Volume.Name)
	}
	return ""
}

// Ensure makes the volume be there, with what is to be in it. What containers
// made of it stays as it is, contents and mode; the type of a host path is
// checked each time. A failure is an *Error.
func (h *Host) Ensure(ctx context.Context, r Request) error {
	err := h.ensure(ctx, r)
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Volume: r.Volume.Name, Path: h.Path(r), Message: err.Error(), Err: err}
}

func (h *Host) ensure(ctx context.Context, r Request) error {
	if r.Volume.HostPath != nil {
		return ensureHostPath(r.Volume, h.Path(r))
	}
	if err := h.make(ctx, r); err != nil {
		return err
	}
	if r.Shared {
		return share(h.Path(r))
	}
	return nil
}

// make makes a volume that has a folder of its own.
func (h *Host) make(ctx context.Context, r Request) error {
	v := r.Volume
	if err := checkName(v.Name); err != nil {
		return err
	}
	if v.PersistentVolumeClaim != nil {
		return h.ensureClaim(r)
	}
	if folder(v) == "" {
		return errors.New("this kind of volume is not supported")
	}
	if err := os.MkdirAll(h.podDir(r.UID), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(h.podDir(r.UID))
	if err != nil {
		return err
	}
	defer root.Close()
	switch {
	case v.EmptyDir != nil:
		if err := ensureEmptyDir(root, r); err != nil {
			return err
		}
		h.countEmptyDir(root, r)
		return nil
	case v.NFS != nil:
		return h.ensureNFS(ctx, root, r)
	case v.Ephemeral != nil:
		return h.ensureEphemeral(root, r)
	default:
		return ensureFiles(root, r)
	}
}

// countEmptyDir has the filesystem count what is put in an emptyDir that is on the
// disk, where it can: whoever wants to know has to walk through it otherwise, and
// does where this fails.
func (h *Host) countEmptyDir(root *os.Root, r Request) {
	if r.Volume.EmptyDir.Medium != v1.StorageMediumDefault {
		return
	}
	dir, err := root.Open(path.Join(folder(r.Volume), r.Volume.Name))
	if err != nil {
		return
	}
	defer dir.Close()
	h.claims.Lock()
	defer h.claims.Unlock()
	_ = count(dir)
}

// checkName refuses what would be no folder of its own.
func checkName(name string) error {
	if name == "" || strings.HasPrefix(name, ".") || strings.Contains(name, "/") {
		return fmt.Errorf("name %q: %w", name, fs.ErrInvalid)
	}
	return nil
}
