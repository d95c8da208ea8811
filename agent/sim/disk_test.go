package sim

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
	"github.com/podkeeper/podkeeper/sources"
)

// disk is the root dir. It survives the agent; a write that had not come to its
// instant when the agent died did not happen.
type disk struct {
	fate *fake.Fate
	// full makes writes fail now and then.
	full atomic.Bool
	// onRemove sees a pod's folder go, at the instant.
	onRemove func(types.UID)

	mu      sync.Mutex
	files   map[string][]byte
	volumes map[types.UID][]string // that were made, by pod
	// claims are the folders that say whose a cgroup is, groups the cgroups of pods.
	claims  map[types.UID]bool
	groups  map[types.UID]cgroup.Limits
	content map[reconcile.VolumeKey]string
}

func newDisk(fate *fake.Fate) *disk {
	return &disk{fate: fate, onRemove: func(types.UID) {}, files: map[string][]byte{}, volumes: map[types.UID][]string{}, claims: map[types.UID]bool{}, groups: map[types.UID]cgroup.Limits{}, content: map[reconcile.VolumeKey]string{}}
}

// pods returns the UIDs of all folders of pods.
func (d *disk) pods() []types.UID {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[types.UID]bool{}
	for name := range d.files {
		if rest, ok := strings.CutPrefix(name, "pods/"); ok {
			uid, _, _ := strings.Cut(rest, "/")
			found[types.UID(uid)] = true
		}
	}
	for uid := range d.volumes {
		found[uid] = true
	}
	for uid := range d.claims {
		found[uid] = true
	}
	for uid := range d.groups {
		found[uid] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// group returns the cgroup of a pod.
func (d *disk) group(uid types.UID) (cgroup.Limits, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.groups[uid]
	return l, ok
}

// names returns the names of all files.
func (d *disk) names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.files))
}

// shows returns the content of the one file in a volume.
func (d *disk) shows(uid types.UID, name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.content[reconcile.VolumeKey{UID: uid, Name: name}]
}

func (d *disk) read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	data, ok := d.files[name]
	if !ok {
		return nil, missing("open", name)
	}
	return slices.Clone(data), nil
}

// lose is a file that is not there after a crash of the machine.
func (d *disk) lose(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fate.Trace("%s is lost", name)
	delete(d.files, name)
}

// session is the root dir in the hands of one incarnation of the agent.
type session struct {
	*disk
	fence    <-chan struct{}
	onEffect func(verb string)
}

var (
	_ reconcile.Store   = session{}
	_ reconcile.Volumes = volumes{}
	_ sources.Store     = session{}
)

func (s session) do(verb, name string, effect func()) error {
	rates := fake.Rates{}
	if s.full.Load() {
		rates.Fail = 0.3
	}
	call := fake.Call{Verb: verb, Object: name, Min: time.Millisecond, Max: 10 * time.Millisecond, Fence: s.fence, Rates: &rates}
	return s.fate.Do(context.Background(), call, func() error {
		s.mu.Lock()
		effect()
		s.mu.Unlock()
		s.onEffect(verb)
		return nil
	})
}

// WriteFile implements reconcile.Store and sources.Store.
func (s session) WriteFile(name string, data []byte) error {
	return s.do("write", name, func() { s.files[name] = slices.Clone(data) })
}

// ReadFile implements reconcile.Store and sources.Store.
func (s session) ReadFile(name string) ([]byte, error) { return s.read(name) }

// Remove implements sources.Store.
func (s session) Remove(name string) error {
	if _, err := s.ReadFile(name); err != nil {
		return nil
	}
	return s.do("unlink", name, func() { delete(s.files, name) })
}

// Entries implements reconcile.Store and sources.Store.
func (s session) Entries(dir string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]bool{}
	for name := range s.files {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			first, _, _ := strings.Cut(rest, "/")
			found[first] = true
		}
	}
	if dir == "pods" { // a folder that has volumes only
		for uid := range s.volumes {
			found[string(uid)] = true
		}
		for uid := range s.claims {
			found[string(uid)] = true
		}
	}
	if uid, ok := strings.CutPrefix(dir, "pods/"); ok && len(s.volumes[types.UID(uid)]) > 0 {
		found["volumes"] = true
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// RemovePod implements reconcile.Store.
func (s session) RemovePod(uid types.UID) error {
	return s.do("rmdir", string(uid), func() {
		delete(s.claims, uid)
		if left := s.volumes[uid]; len(left) > 0 {
			panic(fmt.Sprintf("the folder of %s is removed with volumes in it: %v", uid, left))
		}
		for name := range s.files {
			if strings.HasPrefix(name, "pods/"+string(uid)+"/") {
				delete(s.files, name)
			}
		}
		s.onRemove(uid)
	})
}

// Ensure implements reconcile.Volumes.
func (s session) Ensure(_ context.Context, r volume.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.fence:
		return fs.ErrClosed
	default:
	}
	if !slices.Contains(s.volumes[r.UID], r.Volume.Name) {
		s.volumes[r.UID] = append(s.volumes[r.UID], r.Volume.Name)
	}
	for _, f := range r.Files {
		s.content[reconcile.VolumeKey{UID: r.UID, Name: r.Volume.Name}] = string(f.Data)
	}
	return nil
}

// Path implements reconcile.Volumes.
func (session) Path(r volume.Request) string {
	if r.Volume.HostPath != nil {
		return r.Volume.HostPath.Path
	}
	return rootDir + "/pods/" + string(r.UID) + "/volumes/kubernetes.io~empty-dir/" + r.Volume.Name
}

// Hosts implements reconcile.Volumes.
func (session) Hosts(uid types.UID, _ []byte) (string, error) {
	return rootDir + "/pods/" + string(uid) + "/etc-hosts", nil
}

// SubPath implements reconcile.Volumes.
func (s session) SubPath(r volume.Request, p volume.Part) (string, error) {
	return fmt.Sprintf("%s/pods/%s/volume-subpaths/%s/%s/%d", rootDir, r.UID, r.Volume.Name, p.Container, p.Index), nil
}

// volumes is a session whose ReadFile and Remove are those of reconcile.Volumes.
type volumes struct{ session }

// ReadFile implements reconcile.Volumes. No pod of a simulation writes files.
func (volumes) ReadFile(volume.Request, string, int64) ([]byte, error) { return nil, fs.ErrNotExist }

// Remove implements reconcile.Volumes.
func (v volumes) Remove(uid types.UID) error {
	return v.do("umount", string(uid), func() { delete(v.volumes, uid) })
}

// links is a session that makes links to logs. Only their time counts.
type links struct{ session }

func (l links) Link(c runtime.Container) error {
	return l.do("link", c.Identity.ContainerName(), func() {})
}

func (l links) Unlink(_ pod.Key, uid types.UID) error {
	return l.do("unlink", string(uid), func() {})
}
