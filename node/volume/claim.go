package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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

func (h *Host) claimPath(key pod.ObjectKey) string {
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
	return giveClaim(r, h.claimPath(key), filepath.Join(notes, "ready"))
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
		if info, err := os.Lstat(h.claimPath(key)); err != nil || !info.IsDir() {
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

// makeClaim makes the folder with what is remembered of it. The quota is the
// last: a folder that has it is whole.
func (h *Host) makeClaim(root *os.Root, key pod.ObjectKey, claim *pod.Object) error {
	was, err := readClaim(root, key.Name)
	if err != nil {
		was = remembered{} // lost: it is written anew
	}
	info, err := root.Lstat(key.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := makeClaimDir(root, key.Name); err != nil {
			return err
		}
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", h.claimPath(key))
	}
	now := remember(claim)
	now.Project = was.Project
	dir, err := root.Open(key.Name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, ok, err := quotaOf(dir, firstProject); err != nil {
		return err
	} else if ok && now.Project == 0 {
		if now.Project, err = h.freeProject(dir); err != nil {
			return err
		}
	}
	if err := writeClaim(root, key.Name, now); err != nil {
		return err
	}
	if now.Project == 0 {
		return nil
	}
	return limit(dir, now.Project, now.Size.Value())
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

// freeProject returns a project that no claim has and that counts nothing.
func (h *Host) freeProject(dir *os.File) (uint32, error) {
	project := uint32(firstProject)
	err := h.eachClaim(func(_ pod.ObjectKey, m remembered) { project = max(project, m.Project+1) })
	if err != nil {
		return 0, err
	}
	for ; ; project++ {
		q, _, err := quotaOf(dir, project)
		if err != nil || q.space == 0 && q.hard == 0 && q.inodes == 0 {
			return project, err
		}
	}
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
