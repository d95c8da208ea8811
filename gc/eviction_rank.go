package gc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
)

// Candidate is a pod that runs, and what it uses.
type Candidate struct {
	UID types.UID
	Pod *pod.Pod
	// Since is when it was last started on the node, by the wall clock. What was found
	// of its files before that is of another life of it, and does not count.
	Since time.Time
	// Stats is nil where nobody knows.
	Stats *stats.Pod
	// Unseen: there are files of it that nobody has looked at yet.
	Unseen bool
}

// Place is where on the disk the files of pods lie.
type Place struct {
	// Layers are the writable layers and logs of containers, Volumes those of the
	// pod's own volumes that are on the disk.
	Layers, Volumes bool
}

// filesystem returns the one that a signal is about; nil where there is none.
func filesystem(s Signal, n stats.Node) *stats.Filesystem {
	switch s {
	case NodeFSAvailable, NodeFSInodesFree:
		return n.NodeFS
	case ImageFSAvailable, ImageFSInodesFree:
		return n.ImageFS
	case ContainerFSAvailable, ContainerFSInodesFree:
		return n.ContainerFS
	default:
		return nil
	}
}

// places returns what of pods lies on the filesystem that a signal is about.
func places(s Signal, n stats.Node) Place {
	fs := filesystem(s, n)
	on := func(o *stats.Filesystem) bool { return fs != nil && o != nil && o.Device == fs.Device }
	return Place{Layers: on(n.ContainerFS), Volumes: on(n.NodeFS)}
}

// imagesOn reports whether the images are known to lie on the filesystem that a signal
// is about.
func imagesOn(s Signal, n stats.Node) bool {
	fs := filesystem(s, n)
	return fs != nil && n.ImageFS != nil && n.ImageFS.Device == fs.Device
}

// compare orders candidates: who comes first is to be ended first.
type compare func(a, b Candidate) int

// Rank returns the pods that may be ended for the sake of the node, the first to
// end first: those of which nobody knows what they use, then those that use more
// than they asked for; by rising priority; and by how much more they use. With
// processes, for which nobody asks, priority and number decide.
func Rank(s Shortfall, n stats.Node, all []Candidate) []Candidate {
	use := usage(s.Signal, n)
	order := []compare{unknown(use), exceeding(use), byPriority, byExcess(use)}
	if s.Signal == PIDAvailable {
		order = []compare{byPriority, byExcess(use)}
	}
	list := slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool { return pod.Exempt(c.Pod.Object) })
	slices.SortStableFunc(list, func(a, b Candidate) int {
		for _, by := range order {
			if d := by(a, b); d != 0 {
				return d
			}
		}
		return cmp.Compare(a.UID, b.UID)
	})
	return list
}

// use is what a pod uses, and asked for; ok is false where that is not known.
type use func(Candidate) (used, asked int64, ok bool)

func usage(s Signal, n stats.Node) use {
	place := places(s, n)
	return func(c Candidate) (used, asked int64, ok bool) {
		if s != PIDAvailable && !s.inodes() {
			asked = request(c.Pod.Object, v1.ResourceName(s.resource()))
		}
		if c.Stats == nil {
			return 0, asked, false
		}
		switch s {
		case MemoryAvailable:
			return known(c.Stats.WorkingSet, asked)
		case PIDAvailable:
			return known(c.Stats.Processes, 0)
		default:
			total, found := c.files(place, nil)
			found = found || c.awaited() // it is no worse than others, as far as anybody knows
			if s.inodes() {
				return total.Inodes, 0, found
			}
			return total.Bytes, asked, found
		}
	}
}

func known(n *int64, asked int64) (int64, int64, bool) {
	if n == nil {
		return 0, asked, false
	}
	return *n, asked, true
}

// request returns what a pod asked for of a resource.
func request(p *v1.Pod, name v1.ResourceName) int64 {
	if r := p.Spec.Resources; r != nil {
		if q, ok := r.Requests[name]; ok {
			return q.Value()
		}
	}
	asked := manifests.ContainerRequests(p)[name]
	return asked.Value()
}

// files adds up what a pod has in a place, of its containers only those chosen; nil
// chooses all. ok is false where it has something there and nobody has looked.
func (c Candidate) files(place Place, chosen func(container string) bool) (total stats.Usage, ok bool) {
	found, missing := false, false
	add := func(u *stats.Usage) {
		if u == nil || u.Time.Before(c.Since) {
			missing = true
			return
		}
		total.Bytes, total.Inodes, found = total.Bytes+u.Bytes, total.Inodes+u.Inodes, true
	}
	if place.Layers {
		for name, used := range c.Stats.Containers {
			if chosen == nil || chosen(name) {
				add(used.RootFS)
				add(used.Logs)
			}
		}
	}
	if place.Volumes {
		for _, v := range c.Pod.Object.Spec.Volumes {
			if used, looked := c.Stats.Volumes[v.Name]; onDisk(v) && looked {
				add(&used)
			} else if onDisk(v) {
				missing = true
			}
		}
	}
	return total, found || !missing
}

// awaited reports whether more of its files is yet to be known.
func (c Candidate) awaited() bool {
	if c.Unseen || c.Stats == nil {
		return c.Unseen
	}
	old := func(u *stats.Usage) bool { return u != nil && u.Time.Before(c.Since) }
	for _, used := range c.Stats.Containers {
		if old(used.RootFS) || old(used.Logs) {
			return true
		}
	}
	for _, used := range c.Stats.Volumes {
		if old(&used) {
			return true
		}
	}
	return false
}

func unknown(of use) compare {
	return func(a, b Candidate) int {
		_, _, x := of(a)
		_, _, y := of(b)
		return first(!x, !y)
	}
}

func exceeding(of use) compare {
	return func(a, b Candidate) int {
		x, askedX, _ := of(a)
		y, askedY, _ := of(b)
		return first(x > askedX, y > askedY)
	}
}

func byPriority(a, b Candidate) int {
	return cmp.Compare(pod.Priority(a.Pod.Object), pod.Priority(b.Pod.Object))
}

func byExcess(of use) compare {
	return func(a, b Candidate) int {
		x, askedX, _ := of(a)
		y, askedY, _ := of(b)
		return cmp.Compare(y-askedY, x-askedX)
	}
}

// Verdict returns what is to be said of the pod that is ended for a shortfall.
func (p EvictionPolicy) Verdict(s Shortfall, n stats.Node, c Candidate) pod.Verdict {
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %s. Threshold of %s: %s, available: %s.",
		s.Signal.resource(), s.Signal, s.show(s.Capacity), s.Signal.show(s.Available))
	of := usage(s.Signal, n)
	if used, asked, ok := of(c); ok {
		fmt.Fprintf(&b, " The pod was using %s", s.Signal.show(used))
		if s.Signal != PIDAvailable && !s.Signal.inodes() {
			fmt.Fprintf(&b, ", its request is %s", s.Signal.show(asked))
		}
		b.WriteString(".")
	}
	return pod.Verdict{
		UID: c.UID, Hash: c.Pod.Hash, Reason: pod.Evicted, Message: b.String(), Cause: s.Signal.cause(), Signal: string(s.Signal), Grace: p.grace(s.Threshold),
	}
}
