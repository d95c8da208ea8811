package volume

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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

// Stored is a claim that has a folder here.
type Stored struct {
	Key    pod.ObjectKey
	Claim  pod.Claim
	Origin pod.Origin
	// uses is how often the folder was asked for before the claim was listed.
	uses int
}

// remembered is what the file of a claim says.
type remembered struct {
	AccessModes  []v1.PersistentVolumeAccessMode `json:"accessModes"`
	Size         resource.Quantity               `json:"size"`
	StorageClass string                          `json:"storageClassName,omitempty"`
	Reclaim      pod.Reclaim                     `json:"reclaim,omitempty"`
	Origin       pod.Origin                      `json:"origin"`
	// Project is the quota's, 0 for none.
	Project uint32 `json:"project,omitempty"`
}

func remember(o *pod.Object) remembered {
	c := o.Claim
	return remembered{AccessModes: c.AccessModes, Size: c.Size, StorageClass: c.StorageClass, Reclaim: c.Reclaim, Origin: o.Origin}
}

func (m remembered) claim() pod.Claim {
	return pod.Claim{AccessModes: m.AccessModes, Size: m.Size, StorageClass: m.StorageClass, Reclaim: m.Reclaim}
}

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
	h.claims.Lock()
	defer h.claims.Unlock()
	if h.uses == nil {
		h.uses = make(map[pod.ObjectKey]int)
	}
	h.uses[key]++
	dir := h.claimPath(key)
	if r.Claim == nil {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return fmt.Errorf("persistentvolumeclaim %q not found", key.Name)
		}
		return h.giveClaim(r, dir)
	}
	root, err := h.openNamespace(key.Namespace)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := h.makeClaim(root, key, r.Claim); err != nil {
		return err
	}
	return h.giveClaim(r, dir)
}

func (h *Host) openNamespace(namespace string) (*os.Root, error) {
	dir := filepath.Join(h.RootDir, claimsDir, namespace)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
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

// giveClaim gives the folder to the group of the pod, once for each pod: the pod
// may have changed it since.
func (h *Host) giveClaim(r Request, path string) error {
	if r.FSGroup == nil || r.Volume.PersistentVolumeClaim.ReadOnly {
		return nil
	}
	marker := filepath.Join(h.podDir(r.UID), "plugins/kubernetes.io~local-volume", r.Volume.Name, "ready")
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
	if err := os.MkdirAll(filepath.Dir(marker), 0o750); err != nil {
		return err
	}
	return os.WriteFile(marker, nil, 0o640)
}

func readClaim(root *os.Root, name string) (m remembered, err error) {
	data, err := root.ReadFile(fileOf(name))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", filepath.Join(root.Name(), fileOf(name)), err)
	}
	return m, nil
}

// writeClaim writes what is to be remembered, unless the file says so already.
func writeClaim(root *os.Root, name string, m remembered) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if old, err := root.ReadFile(fileOf(name)); err == nil && bytes.Equal(old, data) {
		return nil
	}
	temp := fileOf(name) + ".new"
	f, err := root.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return root.Rename(temp, fileOf(name))
}

// Claims returns the claims that have a folder here, and what could not be read.
func (h *Host) Claims() ([]Stored, error) {
	h.claims.Lock()
	defer h.claims.Unlock()
	var list []Stored
	err := h.eachClaim(func(key pod.ObjectKey, m remembered) {
		list = append(list, Stored{Key: key, Claim: m.claim(), Origin: m.Origin, uses: h.uses[key]})
	})
	return list, err
}

// eachClaim calls f with what is remembered of each folder.
func (h *Host) eachClaim(f func(pod.ObjectKey, remembered)) error {
	namespaces, err := os.ReadDir(filepath.Join(h.RootDir, claimsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, namespace := range namespaces {
		root, err := os.OpenRoot(filepath.Join(h.RootDir, claimsDir, namespace.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		files, err := fs.ReadDir(root.FS(), ".")
		errs = append(errs, err)
		for _, file := range files {
			name, ok := strings.CutSuffix(strings.TrimPrefix(file.Name(), "."), ".json")
			if !ok || file.Name() != fileOf(name) {
				continue
			}
			m, err := readClaim(root, name)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			f(pod.ObjectKey{Kind: pod.PersistentVolumeClaim, Namespace: namespace.Name(), Name: name}, m)
		}
		root.Close()
	}
	return errors.Join(errs...)
}

// UpdateClaim remembers what a claim that has a folder says now.
func (h *Host) UpdateClaim(o *pod.Object) error {
	h.claims.Lock()
	defer h.claims.Unlock()
	root, err := h.openNamespace(o.Key.Namespace)
	if err == nil {
		defer root.Close()
		err = h.makeClaim(root, o.Key, o)
	}
	if err != nil {
		return fmt.Errorf("update %s: %w", o.Key, err)
	}
	return nil
}

// RemoveClaim removes the folder of a claim with all that is in it, unless a pod
// asked for it since it was listed. One that is gone is success.
func (h *Host) RemoveClaim(s Stored) (removed bool, err error) {
	h.claims.Lock()
	defer h.claims.Unlock()
	if h.uses[s.Key] != s.uses {
		return false, nil
	}
	if err := h.removeClaim(s.Key); err != nil {
		return false, fmt.Errorf("remove the folder of %s: %w", s.Key, err)
	}
	return true, nil
}

// removeClaim puts the folder aside first: a claim that comes back does not find
// half of it. What is remembered goes last, so that a crash does not end it.
func (h *Host) removeClaim(key pod.ObjectKey) error {
	root, err := h.openNamespace(key.Namespace)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := openDir(root.Name())
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unmountBelow(h.claimPath(key)); err != nil {
		return err
	}
	if err := removeTree(dir, goneOf(key.Name)); err != nil {
		return err
	}
	if err := root.Rename(key.Name, goneOf(key.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := removeTree(dir, goneOf(key.Name)); err != nil {
		return err
	}
	return root.RemoveAll(fileOf(key.Name))
}
