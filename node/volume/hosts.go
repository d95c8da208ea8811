package volume

import (
	"bytes"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

const hostsFile = "etc-hosts"

// Hosts makes the content be that of the pod's hosts file and returns its path.
// The file stays the same one: containers that have it mounted see the change.
func (h *Host) Hosts(uid types.UID, content []byte) (string, error) {
	dir := h.podDir(uid)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	path := filepath.Join(dir, hostsFile)
	if old, err := root.ReadFile(hostsFile); err == nil && bytes.Equal(old, content) {
		return path, nil
	}
	if err := root.WriteFile(hostsFile, content, 0o644); err != nil {
		return "", err
	}
	return path, root.Chmod(hostsFile, 0o644) // whatever the umask
}
