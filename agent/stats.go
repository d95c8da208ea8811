package agent

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// usage reads what the node and its pods use.
type usage struct {
	*stats.Reader
	walker *stats.Walker

	mu      sync.Mutex
	root    string // of the engine's data, as it told last
	version int    // of cgroups, 0 before it told

	first sync.Once
	told  chan struct{} // closed when it first did
}

func newUsage(volumes *volume.Host, log *slog.Logger) *usage {
	counted := func(folder string) (stats.Usage, bool) {
		bytes, inodes, ok := volumes.Counted(folder)
		return stats.Usage{Time: time.Now(), Bytes: bytes, Inodes: inodes}, ok
	}
	return &usage{Reader: stats.NewReader(log), walker: stats.NewWalker(counted, log), told: make(chan struct{})}
}

// RouteKlog has libraries that log by klog write to log. It is for the whole process,
// before any agent is started.
func RouteKlog(log *slog.Logger) { klog.SetSlogLogger(log) }

// accept takes over what the engine can do, each time it is connected.
func (p *parts) accept(ctx context.Context, f runtime.Features) error {
	u := p.usage
	u.mu.Lock()
	u.root, u.version = f.Root, f.CgroupVersion
	u.mu.Unlock()
	u.first.Do(func() { close(u.told) })
	err := p.cgroups.accept(ctx, f)
	p.awaitLook(ctx)
	return err
}

// awaitLook waits, not for ever, until the loop knows how the node is. No pod is made
// before the engine has been accepted, and so none on a disk that is full.
func (p *parts) awaitLook(ctx context.Context) {
	const patience = 5 * time.Second
	select {
	case <-p.known:
	case <-time.After(patience):
	case <-ctx.Done():
	}
}

func (u *usage) cgroupVersion() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.version
}

// engineRoot returns the folder of the engine's data, "" where it does not tell. One
// that has not answered yet is waited for, not for ever.
func (p *parts) engineRoot(ctx context.Context) string {
	const patience = 5 * time.Second
	u := p.usage
	select {
	case <-u.told:
	case <-time.After(patience):
	case <-ctx.Done():
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.root
}

// podsUse reads what the kernel counts for pods, in their order.
func (p *parts) podsUse(views []reconcile.View) []stats.Pod {
	list := make([]stats.Pod, len(views))
	for i, v := range views {
		list[i] = p.usage.Pod(target(v))
	}
	return list
}

// podsHold returns what the files of pods take, in their order, and nothing else of
// them. It does not wait for a walk; unseen are those pods that have files which nobody
// has looked at.
func (p *parts) podsHold(views []reconcile.View) (list []stats.Pod, unseen []bool) {
	list, unseen = make([]stats.Pod, len(views)), make([]bool, len(views))
	for i, v := range views {
		list[i].UID, list[i].Time = v.Object.UID, time.Now()
		where := p.files(v)
		p.usage.walker.Fill(&list[i], where)
		unseen[i] = p.usage.walker.Unseen(where.Walked())
	}
	return list, unseen
}

// target returns where a pod runs.
func target(v reconcile.View) stats.Target {
	t := stats.Target{UID: v.Object.UID, Containers: make(map[string]stats.Process)}
	for _, c := range newest(v) {
		if c.State != runtime.Running {
			continue
		}
		at := stats.Process{ID: c.ID, PID: c.PID}
		if c.IsSandbox() {
			t.Sandbox, t.HostNetwork = at, c.HostNetwork
			continue
		}
		t.Containers[c.Name] = at
	}
	return t
}

// files returns where a pod's files are that it made: writable layers, logs, and
// emptyDirs. Its other volumes are others' or hold what the agent put there.
func (p *parts) files(v reconcile.View) stats.Files {
	f := stats.Files{Containers: make(map[string]stats.ContainerFiles), Volumes: make(map[string]string)}
	for _, c := range newest(v) {
		if !c.IsSandbox() {
			f.Containers[c.Name] = stats.ContainerFiles{Writable: c.Writable, Log: c.LogPath}
		}
	}
	for _, vol := range v.Object.Spec.Volumes {
		if vol.EmptyDir != nil {
			f.Volumes[vol.Name] = p.volumeFolder(v, vol.Name)
		}
	}
	return f
}

// volumeFolder is where a volume of the pod is on the host; "" is nowhere.
func (p *parts) volumeFolder(v reconcile.View, name string) string {
	for _, vol := range v.Object.Spec.Volumes {
		if vol.Name == name {
			return p.volumes.Path(volume.Request{UID: v.Object.UID, Namespace: v.Object.Namespace, Volume: vol})
		}
	}
	return ""
}

// claims are those that volumes of a pod are of, by the volume's name; one that is the
// pod's own is called as Kubernetes would.
func claims(v reconcile.View) map[string]string {
	list := make(map[string]string)
	for _, vol := range v.Object.Spec.Volumes {
		switch {
		case vol.PersistentVolumeClaim != nil:
			list[vol.Name] = vol.PersistentVolumeClaim.ClaimName
		case vol.Ephemeral != nil:
			list[vol.Name] = v.Object.Name + "-" + vol.Name
		}
	}
	return list
}

// newest returns the last attempt of each container of a pod's generation, and of
// its sandbox.
func newest(v reconcile.View) map[string]runtime.Container {
	last := make(map[string]runtime.Container)
	for _, c := range v.Containers {
		if was, ok := last[c.Name]; c.UID == v.Object.UID && (!ok || was.Attempt < c.Attempt) {
			last[c.Name] = c
		}
	}
	return last
}

// byName returns containers in the order of their names.
func byName(list map[string]runtime.Container) []runtime.Container {
	return slices.SortedFunc(maps.Values(list), func(a, b runtime.Container) int { return strings.Compare(a.Name, b.Name) })
}
