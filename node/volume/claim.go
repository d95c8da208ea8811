package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
)

// The folder of a claim, and beside it what is remembered of the claim:
//
//	<root dir>/volumes/<namespace>/<name>/
//	<root dir>/volumes/<namespace>/.<name>.json
//	<root dir>/volumes/<namespace>/.<name>.gone/   on its way to be removed
//
// No claim has a name that begins with a dot.
const claimsDir = "volumes"

func claimKey(r Request) pod.ObjectKey {
	return pod.ObjectKey{Kind: pod.PersistentVolumeClaim, Namespace: r.Namespace, Name: r.Volume.PersistentVolumeClaim.ClaimName}
}

func fileOf(name string) string { return "." + name + ".json" }
func goneOf(name string) string { return "." + name + ".gone" }

// ClaimPath returns the folder of a claim. It does no I/O.
func (h *Host) ClaimPath(key pod.ObjectKey) string {
	return filepath.Join(h.RootDir, claimsDir, key.Namespace, key.Name)
}

// ensureClaim makes the folder of a claim. One that is there outlives the claim:
// a pod that names it goes on with it.
func (h *Host) ensureClaim(r Request) error {
	key := claimKey(r)
	if err := errors.Join(checkName(key.Namespace), checkName(key.Name)); err != nil {
		return err
	}
	notes, err := h.haveClaim(r, key)
	if err != nil {
		return err
	}
	return giveClaim(r, h.ClaimPath(key), filepath.Join(notes, "ready"))
}

// haveClaim returns the folder of what is noted of the pod's use.
func (h *Host) haveClaim(r Request, key pod.ObjectKey) (notes string, err error) {
	h.claims.Lock()
	defer h.claims.Unlock()
	if h.uses == nil {
		h.uses = make(map[pod.ObjectKey]int)
	}
	h.uses[key]++
	if r.Claim == nil {
		if info, err := os.Lstat(h.ClaimPath(key)); err != nil || !info.IsDir() {
			return "", fmt.Errorf("persistentvolumeclaim %q not found", key.Name)
		}
	} else if err := h.updateClaim(r.Claim); err != nil {
		return "", err
	}
	return h.markUse(r)
}

// What a pod has of a claim is noted in its folder, and goes with that:
//
//	<pod dir>/plugins/kubernetes.io~local-volume/<volume>/claim   which one it is
//	<pod dir>/plugins/kubernetes.io~local-volume/<volume>/ready   it has the group
const usesDir = "plugins/kubernetes.io~local-volume"

// markUse notes that the pod has the claim, and returns the folder of the notes.
func (h *Host) markUse(r Request) (string, error) {
	dir := filepath.Join(h.podDir(r.UID), usesDir, r.Volume.Name)
	file, key := filepath.Join(dir, "claim"), claimKey(r)
	text := []byte(key.Namespace + "/" + key.Name + "\n")
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return dir, nil
	}
	if err := os.MkdirAll(h.podDir(r.UID), 0o700); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	return dir, os.WriteFile(file, text, 0o640)
}

func (h *Host) openNamespace(namespace string) (*os.Root, error) {
	dir := filepath.Join(h.RootDir, claimsDir, namespace)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// UpdateClaim makes the folder of a claim be there, and remembers what the claim
// says now.
func (h *Host) UpdateClaim(o *pod.Object) error {
	h.claims.Lock()
	defer h.claims.Unlock()
	return h.updateClaim(o)
}

func (h *Host) updateClaim(o *pod.Object) error {
	root, err := h.openNamespace(o.Key.Namespace)
	if err == nil {
		defer root.Close()
		err = h.makeClaim(root, o.Key, o)
	}
	if err != nil {
		return fmt.Errorf("folder of %s: %w", o.Key, err)
	}
	return nil
}

// makeClaim makes the folder with what is remembered of it.
func (h *Host) makeClaim(root *os.Root, key pod.ObjectKey, claim *pod.Object) error {
	info, err := root.Lstat(key.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := makeClaimDir(root, key.Name); err != nil {
			return err
		}
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", h.ClaimPath(key))
	}
	if err := writeClaim(root, key.Name, remember(claim)); err != nil {
		return err
	}
	dir, err := root.Open(key.Name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return limit(dir, claim.Claim.Size.Value())
}

// makeClaimDir makes a folder that every user may write to, as in an emptyDir.
func makeClaimDir(root *os.Root, name string) error {
	dir, err := openDir(root.Name())
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := removeTree(dir, goneOf(name)); err != nil {
		return err
	}
	temp := "." + name + ".new"
	if err := root.RemoveAll(temp); err != nil { // of a crash
		return err
	}
	if err := root.Mkdir(temp, 0o700); err != nil {
		return err
	}
	if err := root.Chmod(temp, 0o777); err != nil {
		return err
	}
	return root.Rename(temp, name)
}

// ensureEphemeral makes what a claim that is the pod's own would have: a folder
// that goes with the pod.
func (h *Host) ensureEphemeral(root *os.Root, r Request) error {
	path, err := makeDir(root, r.Volume, r.born(0o777, groupDir))
	if err != nil {
		return err
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	h.claims.Lock()
	defer h.claims.Unlock()
	size := r.Volume.Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests[v1.ResourceStorage]
	return limit(dir, size.Value())
}

// giveClaim gives the folder to the group of the pod, once for each pod, which the
// marker says: the pod may have changed it since.
func giveClaim(r Request, path, marker string) error {
	if r.FSGroup == nil || r.Volume.PersistentVolumeClaim.ReadOnly {
		return nil
	}
	if _, err := os.Lstat(marker); err == nil {
		return nil
	}
	dir, err := openDir(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := giveToGroup(dir, int(*r.FSGroup), r.ChangePolicy); err != nil {
		return err
	}
	return os.WriteFile(marker, nil, 0o640)
}
