package sources_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/sources"
	"github.com/podkeeper/podkeeper/sources/sourcestest"
)

// rig runs one source in a bubble and remembers what it sends.
type rig struct {
	t     *testing.T
	tree  *sourcestest.Tree
	store *sourcestest.Store
	log   *bytes.Buffer
	stop  func()

	mu       sync.Mutex
	supplies []sources.Supply
	at       []time.Time
	parsed   int
}

// world is a tree with the folder /m, and what files were left by.
func world(files map[string]string) *sourcestest.Tree {
	tree := sourcestest.New(nil)
	tree.MkdirAll("/m")
	for name, content := range files {
		tree.Write(name, content)
	}
	time.Sleep(time.Hour) // nobody is writing any of them
	return tree
}

// files starts a File source of /m, or of what edit says.
func files(t *testing.T, tree *sourcestest.Tree, store *sourcestest.Store, edit func(*sources.FileConfig)) *rig {
	t.Helper()
	if store == nil {
		store = &sourcestest.Store{}
	}
	r := &rig{t: t, tree: tree, store: store, log: &bytes.Buffer{}}
	cfg := sources.FileConfig{
		Path: "/m", Parse: r.parse, FS: tree, Watcher: tree, Store: store,
		Log: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	if edit != nil {
		edit(&cfg)
	}
	src, err := sources.NewFile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.start(src)
	return r
}

func (r *rig) parse(data []byte, origin pod.Origin) manifests.Result {
	r.mu.Lock()
	r.parsed++
	r.mu.Unlock()
	return parse(data, origin)
}

// start runs src until stop, which the test's end calls too.
func (r *rig) start(src sources.Source) {
	ctx, cancel := context.WithCancel(r.t.Context())
	out := make(chan sources.Supply)
	var running sync.WaitGroup
	running.Go(func() {
		if err := src.Run(ctx, out); err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
	running.Go(func() {
		for {
			select {
			case s := <-out:
				r.mu.Lock()
				r.supplies, r.at = append(r.supplies, s), append(r.at, time.Now())
				r.mu.Unlock()
			case <-ctx.Done():
				return
			}
		}
	})
	r.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	r.t.Cleanup(r.stop)
	synctest.Wait()
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// last returns the newest supply.
func (r *rig) last() sources.Supply {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.supplies) == 0 {
		r.t.Fatal("nothing was sent")
	}
	return r.supplies[len(r.supplies)-1]
}

func (r *rig) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.supplies)
}

func (r *rig) parses() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parsed
}

// pods tells what is supplied: "web=app:1 (a.yaml)", sorted; a Secret is told like
// a pod, its value in the place of the image.
func pods(s sources.Supply) string {
	var out []string
	for _, p := range s.Pods {
		name := p.Origin.Name[strings.LastIndex(p.Origin.Name, "/")+1:]
		out = append(out, fmt.Sprintf("%s=%s (%s)", p.Object.Name, p.Object.Spec.Containers[0].Image, name))
	}
	for _, o := range s.Objects {
		name := o.Origin.Name[strings.LastIndex(o.Origin.Name, "/")+1:]
		out = append(out, fmt.Sprintf("%s=%s (%s)", o.Key.Name, o.Data["k"].Reveal(), name))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// state tells all but the pods: "spoken present", and each origin that is not
// simply well: "a.yaml stale error".
func state(s sources.Supply) string {
	var words []string
	for word, is := range map[string]bool{"spoken": s.Source.Spoken, "present": s.Source.Present} {
		if is {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	for _, o := range s.Source.Origins {
		if !o.Stale && !o.Failed() {
			continue
		}
		w := o.Origin.Name[strings.LastIndex(o.Origin.Name, "/")+1:]
		if o.Stale {
			w += " stale"
		}
		if o.Failed() {
			w += " error"
		}
		words = append(words, w)
	}
	return strings.Join(words, ", ")
}

// want compares both with the newest supply.
func (r *rig) want(wantPods, wantState string) {
	r.t.Helper()
	s := r.last()
	if got := pods(s); got != wantPods {
		r.t.Errorf("supplies %q, want %q", got, wantPods)
	}
	if got := state(s); got != wantState {
		r.t.Errorf("state %q, want %q", got, wantState)
	}
}

// always checks every supply since the n-th.
func (r *rig) always(n int, what string, ok func(sources.Supply) bool) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, s := range r.supplies[n:] {
		if !ok(s) {
			r.t.Errorf("supply %d is not always %s: %s; %s", n+i, what, pods(s), state(s))
		}
	}
}

// within runs act and wants a supply no later than d after it.
func (r *rig) within(d time.Duration, act func()) {
	r.t.Helper()
	n := r.count()
	act()
	r.pass(d)
	if r.count() == n {
		r.t.Errorf("nothing was sent within %s", d)
	}
}

// discard is a log that nobody reads.
var discard = slog.New(slog.DiscardHandler)

func healthy(s sources.Supply) bool {
	return !slices.ContainsFunc(s.Source.Origins, func(o pod.OriginStatus) bool { return o.Failed() })
}

func supplies(name string) func(sources.Supply) bool {
	return func(s sources.Supply) bool {
		return slices.ContainsFunc(s.Pods, func(p *pod.Pod) bool { return p.Object.Name == name })
	}
}

// runReal runs src in real time. The caller receives from out until stop.
func runReal(t *testing.T, src sources.Source) (out chan sources.Supply, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out = make(chan sources.Supply)
	done := make(chan error, 1)
	go func() { done <- src.Run(ctx, out) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return out, stop
}

func originOf(name string) pod.Origin {
	return pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: "/m"}, Name: "/m/" + name}
}
