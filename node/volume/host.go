package volume

import (
	"context"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// Host is a machine on which volumes are made. Calls for one pod must not
// overlap; those for different ones may.
type Host struct {
	// RootDir is the agent's, absolute.
	RootDir string
}

func (h *Host) podDir(uid types.UID) string { return filepath.Join(h.RootDir, "pods", string(uid)) }

// Ensure makes the volume be there, with what is to be in it. What containers
// made of it stays as it is, contents and mode; the type of a host path is
// checked each time. A failure is an *Error.
func (h *Host) Ensure(_ context.Context, r Request) error {
	_, err := Ensure(h.podDir(r.UID), r.Volume)
	return err
}

// Path returns where Ensure puts the volume, "" for a kind that has no place on
// the host. It does no I/O.
func (h *Host) Path(r Request) string { return Path(h.podDir(r.UID), r.Volume) }

// Remove unmounts everything below the pod's folder, the deepest first, and
// removes its volumes. Where there are none that is success. Where a mount stays
// nothing is removed, and the error names it.
func (h *Host) Remove(uid types.UID) error { return Remove(h.podDir(uid)) }
