package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/sources"
)

// truth is what the sources have said, ever: for each origin and key every
// version that could be read there, and when a readable origin lacked it. What
// cannot be read (law 1) says nothing, and so leaves no event.
type truth struct {
	// mu is held by who changes it, the driver, and by the laws, which read it
	// wherever a change is observed.
	mu    sync.Mutex
	parse sources.ParseFunc
	said  map[pod.Key]map[pod.Origin][]saying
	// unsure has the origins that say something unreadable, or nothing, now.
	unsure  map[pod.Origin]bool
	objects map[pod.ObjectKey]map[pod.Origin][]content
}

// saying is what an origin said of a key since an instant: a version, or nil.
type saying struct {
	since time.Time
	pod   *pod.Pod
}

func newTruth(parse sources.ParseFunc) *truth {
	return &truth{parse: parse, said: map[pod.Key]map[pod.Origin][]saying{}, unsure: map[pod.Origin]bool{}, objects: map[pod.ObjectKey]map[pod.Origin][]content{}}
}

// says takes in what an origin holds from now on.
func (t *truth) says(o pod.Origin, text string) {
	res := t.parse([]byte(text), o)
	failed := slices.ContainsFunc(res.Problems, func(p pod.Problem) bool { return p.Severity == pod.Error })
	if o.Source.Kind == pod.HTTPSource && len(res.Documents) == 0 && !strings.Contains(text, `"items": []`) {
		failed = true
	}
	t.take(o, res, failed)
}

// gone: the origin is no more, which is a clear word.
func (t *truth) gone(o pod.Origin) { t.take(o, manifests.Result{}, false) }

// silent: the origin cannot be asked.
func (t *truth) silent(o pod.Origin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsure[o] = true
}

func (t *truth) take(o pod.Origin, res manifests.Result, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsure[o] = failed
	named := map[pod.Key]bool{}
	t.takeObjects(o, res, failed)
	for _, d := range res.Documents {
		if d.Pod != nil && !named[d.Pod.Key()] {
			named[d.Pod.Key()] = true
			t.add(d.Pod.Key(), o, d.Pod)
		}
	}
	if failed {
		return
	}
	for key, origins := range t.said {
		if _, ever := origins[o]; ever && !named[key] {
			t.add(key, o, nil)
		}
	}
}

func (t *truth) add(key pod.Key, o pod.Origin, p *pod.Pod) {
	if t.said[key] == nil {
		t.said[key] = map[pod.Origin][]saying{}
	}
	t.said[key][o] = append(t.said[key][o], saying{time.Now(), p})
}

// ever reports whether any origin ever said a version of the key that matches.
func (t *truth) ever(key pod.Key, match func(*pod.Pod) bool) bool {
	for _, said := range t.said[key] {
		if slices.ContainsFunc(said, func(s saying) bool { return s.pod != nil && match(s.pod) }) {
			return true
		}
	}
	return false
}

// stale is how long what an agent acts on may be out of date: a call that hung,
// a page that did not answer, a wait for its turn.
const stale = 15 * time.Minute

// unlike reports whether, since a container was made, any origin said anything
// but what it is: another version, or nothing at all. An absence that is long
// past when the container is made is no reason to stop it.
func (t *truth) unlike(key pod.Key, made time.Time, same func(*pod.Pod) bool) bool {
	for _, said := range t.said[key] {
		for i, s := range said {
			over := i+1 < len(said) && said[i+1].since.Before(made.Add(-stale))
			switch {
			case over, s.pod != nil && same(s.pod):
			case s.pod != nil, s.since.After(made.Add(-stale)):
				return true
			}
		}
	}
	return false
}

// versions counts the versions of a key that were said since a container was made.
func (t *truth) versions(key pod.Key, made time.Time) int {
	found := map[string]bool{}
	for _, said := range t.said[key] {
		for i, s := range said {
			if s.pod != nil && (i+1 == len(said) || said[i+1].since.After(made)) {
				found[fmt.Sprint(s.pod.Hash, s.pod.Containers)] = true
			}
		}
	}
	return len(found)
}

// now returns the versions of a key that are said now; sure is false where an
// origin that ever had it, or any origin of its kind, cannot be read.
func (t *truth) now(key pod.Key) (versions []*pod.Pod, sure bool) {
	sure = true
	for o, said := range t.said[key] {
		if last := said[len(said)-1]; last.pod != nil {
			versions = append(versions, last.pod)
		}
		sure = sure && !t.unsure[o]
	}
	slices.SortFunc(versions, func(a, b *pod.Pod) int { return a.Origin.Compare(b.Origin) })
	return versions, sure
}

// mute reports whether any origin that matches cannot be read now.
func (t *truth) mute(match func(pod.Origin) bool) bool {
	for o, unsure := range t.unsure {
		if unsure && match(o) {
			return true
		}
	}
	return false
}

// unwantedFor is how long nobody has said a version that matches.
func (t *truth) unwantedFor(key pod.Key, same func(*pod.Pod) bool) time.Duration {
	shortest := time.Since(time.Time{})
	for _, said := range t.said[key] {
		for i := len(said) - 1; i >= 0 && (said[i].pod == nil || !same(said[i].pod)); i-- {
			if i == 0 || said[i-1].pod != nil && same(said[i-1].pod) {
				shortest = min(shortest, time.Since(said[i].since))
			}
		}
	}
	return shortest
}
