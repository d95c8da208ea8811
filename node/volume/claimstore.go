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

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
)

// Stored is a claim that has a folder here.
type Stored struct {
	Key    pod.ObjectKey
	Claim  pod.Claim
	Origin pod.Origin
	// Used: a pod that has it mounted has a folder here.
	Used bool
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
}

func remember(o *pod.Object) remembered {
	c := o.Claim
	return remembered{AccessModes: c.AccessModes, Size: c.Size, StorageClass: c.StorageClass, Reclaim: c.Reclaim, Origin: o.Origin}
}

func (m remembered) claim() pod.Claim {
	return pod.Claim{AccessModes: m.AccessModes, Size: m.Size, StorageClass: m.StorageClass, Reclaim: m.Reclaim}
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
	used, err := h.used()
	if err != nil {
		return nil, err
	}
	var list []Stored
	err = h.eachClaim(func(key pod.ObjectKey, m remembered) {
		list = append(list, Stored{
			Key: key, Claim: m.claim(), Origin: m.Origin, Used: used[key.Namespace+"/"+key.Name], uses: h.uses[key],
		})
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

// used returns the claims that pods have.
func (h *Host) used() (map[string]bool, error) {
	pods, err := os.ReadDir(filepath.Join(h.RootDir, "pods"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	used := make(map[string]bool)
	for _, p := range pods {
		dir := filepath.Join(h.podDir(types.UID(p.Name())), usesDir)
		volumes, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return nil, err
		}
		for _, v := range volumes {
			text, err := os.ReadFile(filepath.Join(dir, v.Name(), "claim"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			used[strings.TrimSpace(string(text))] = true
		}
	}
	return used, nil
}

// RemoveClaim removes the folder of a claim with all that is in it, unless a pod
// asked for it since it was listed. One that is gone is success.
func (h *Host) RemoveClaim(s Stored) (removed bool, err error) {
	if removed, err = h.removeClaim(s); err != nil {
		err = fmt.Errorf("remove the folder of %s: %w", s.Key, err)
	}
	return removed, err
}

// removeClaim puts the folder aside first: a claim that comes back does not find
// half of it, and other claims do not wait for it. What is remembered goes last, so
// that a crash does not end the removal.
func (h *Host) removeClaim(s Stored) (bool, error) {
	root, err := h.openNamespace(s.Key.Namespace)
	if err != nil {
		return false, err
	}
	defer root.Close()
	dir, err := openDir(root.Name())
	if err != nil {
		return false, err
	}
	defer dir.Close()
	if err := removeTree(dir, goneOf(s.Key.Name)); err != nil {
		return false, err
	}
	if aside, err := h.putAside(root, s); err != nil || !aside {
		return false, err
	}
	if err := removeTree(dir, goneOf(s.Key.Name)); err != nil {
		return false, err
	}
	return true, h.forgetClaim(root, s.Key.Name)
}

func (h *Host) putAside(root *os.Root, s Stored) (bool, error) {
	h.claims.Lock()
	defer h.claims.Unlock()
	if h.uses[s.Key] != s.uses {
		return false, nil
	}
	if err := unmountBelow(h.ClaimPath(s.Key)); err != nil {
		return false, err
	}
	dir, err := root.Open(s.Key.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	if err := release(dir); err != nil {
		return false, err
	}
	err = root.Rename(s.Key.Name, goneOf(s.Key.Name))
	return err == nil, err
}

func (h *Host) forgetClaim(root *os.Root, name string) error {
	h.claims.Lock()
	defer h.claims.Unlock()
	if _, err := root.Lstat(name); err == nil {
		return nil // it came back
	}
	return root.RemoveAll(fileOf(name))
}
