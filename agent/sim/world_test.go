package sim

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
	"github.com/podkeeper/podkeeper/sources"
)

const (
	rootDir  = "/var/lib/podkeeper"
	nodeName = "node"
	folder   = "/etc/manifests"
	pageURL  = "http://manifests.example/pods"
	// neighbour is the number of the client that belongs to another agent.
	neighbour = 1
)

var (
	folderID = pod.SourceID{Kind: pod.FileSource, Name: folder}
	pageID   = pod.SourceID{Kind: pod.HTTPSource, Name: pageURL}
	page     = pod.Origin{Source: pageID, Name: pageURL}
)

func fileOrigin(name string) pod.Origin { return pod.Origin{Source: folderID, Name: name} }

// newParser returns a parser that reads no text of an origin twice: what it returns
// is never modified, and the truth and each incarnation of the agent read the same.
func newParser() sources.ParseFunc {
	type said struct {
		by   pod.Origin
		text string
	}
	var mu sync.Mutex
	read := map[said]manifests.Result{}
	return func(data []byte, o pod.Origin) manifests.Result {
		mu.Lock()
		defer mu.Unlock()
		what := said{o, string(data)}
		res, ok := read[what]
		if !ok {
			res = manifests.Parse(data, o, manifests.Options{NodeName: nodeName})
			read[what] = res
		}
		return res
	}
}

// lies are what a planted bug puts between the agent and the world.
type lies struct {
	// breaks is the law whose first violation ends the run.
	breaks  string
	runtime func(*world, runtime.Runtime) runtime.Runtime
	set     func(pod.Set) pod.Set
	store   func(session) reconcile.Store
	volumes func(volumes) reconcile.Volumes
	images  func(*gc.ImageConfig, runtime.Runtime)
	evictor func(*gc.Evictor)
	// room is what the agent takes the node's room for.
	room func(amounts) amounts
	// shutdown is what an agent makes of what it is told of a shutdown.
	shutdown func(*reconcile.Shutdown) *reconcile.Shutdown
	// hurry: no group of a shutdown gets any time.
	// stubborn: that a shutdown was called off is not heard of.
	hurry, stubborn bool
	// mute: no pod says what it waits for.
	mute bool
	// atStart runs before an incarnation does anything.
	atStart func(context.Context, *world, runtime.Runtime)
}

// world is the machine, and whoever lives on it.
type world struct {
	fate   *fake.Fate
	engine *fake.Engine
	tree   *tree
	site   *site
	disk   *disk
	truth  *truth
	laws   *laws
	lies   lies
	log    *slog.Logger

	clockMu sync.Mutex
	shift   time.Duration // of the wall clock

	short atomic.Int32 // what the machine is short of: see shortage

	agent *incarnation // nil while it is dead
	lives int
	// goesDown: the machine does so now and then.
	goesDown bool
	// collects: the disk is full, so that every image goes that may.
	collects bool
	// keepLogs is for how long containers of removed pods stay.
	keepLogs time.Duration
}

func newWorld(seed uint64, hints bool, l lies, log *slog.Logger) *world {
	if log == nil {
		log = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	}
	w := &world{fate: fake.NewFate(seed), truth: newTruth(newParser()), lies: l, log: log}
	w.laws = newLaws(w.truth)
	w.laws.lastLaw = l.breaks
	w.engine = fake.New(fake.Config{Fate: w.fate, Wall: w.wall, Observe: w.laws.observe, Removed: w.laws.imageGone})
	w.engine.SetFeatures(runtime.Features{Seccomp: true})
	w.engine.SetImage(somebodys, fake.Image{Present: true})
	for _, image := range images {
		switch image {
		case "missing:1":
		case "secret:1":
			w.engine.SetImage(image, fake.Image{Denied: true})
		case "app:1", "app:2":
			w.engine.SetImage(image, fake.Image{Present: true, Pullable: true})
		default:
			w.engine.SetImage(image, fake.Image{Pullable: true})
		}
	}
	w.tree = newTree(w.fate, w.wall, hints)
	for _, dir := range []string{"/", "/etc"} {
		w.tree.makeDir(dir)
	}
	w.site = &site{fate: w.fate}
	w.disk = newDisk(w.fate)
	w.disk.onRemove = w.laws.removedFolder
	return w
}

// wall is the machine's wall clock.
func (w *world) wall() time.Time {
	w.clockMu.Lock()
	defer w.clockMu.Unlock()
	return time.Now().Add(w.shift)
}

func (w *world) jump(d time.Duration) {
	w.clockMu.Lock()
	defer w.clockMu.Unlock()
	w.fate.Trace("the clock jumps by %s", d)
	w.shift += d
}

// incarnation is one life of the agent.
type incarnation struct {
	client *fake.Client
	loop   *reconcile.Loop
	cancel context.CancelFunc
	ended  chan error

	mu    sync.Mutex
	fence <-chan struct{} // the client's, closed at its death: nothing outlives the rest
	// fuse is how many effects it has left; negative is no end.
	fuse int
}

// startAgent starts an incarnation that dies of its fuse-th effect.
func (w *world) startAgent(fuse int) {
	w.lives++
	w.fate.Trace("agent %d starts", w.lives)
	w.laws.began = time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	client := w.engine.Client(rootDir)
	i := &incarnation{client: client, cancel: cancel, ended: make(chan error, 1), fence: client.Fenced(), fuse: fuse}
	client.OnEffect = i.boundary
	store := session{disk: w.disk, fence: i.fence, onEffect: i.boundary}
	files := files{tree: w.tree, fence: i.fence}
	list := w.sources(files, store, browser{w.site, i.fence})

	var rt runtime.Runtime = client
	if w.lies.runtime != nil {
		rt = w.lies.runtime(w, rt)
	}
	deps := reconcile.Deps{Runtime: rt, Store: store, Volumes: volumes{store}, Logs: links{store}, Log: w.log, Check: probe.NewChecker(commands{rt}).Check, Cgroups: cgroups{store, w.laws.removedCgroup}}
	if w.lies.store != nil {
		deps.Store = w.lies.store(store)
	}
	if w.lies.volumes != nil {
		deps.Volumes = w.lies.volumes(volumes{store})
	}
	images := w.imageCollector(i, rt, store)
	deps.Ran = images.Ran
	i.loop = reconcile.New(reconcile.Config{Node: reconcile.Node{Name: nodeName, RootDir: rootDir, Memory: 4 << 30, Pinning: pinning(), Allocatable: w.allocatable(), Addresses: []string{"192.0.2.1"}}, Wall: w.wall, KeepLogs: w.keepLogs}, deps)
	w.agent = i
	go func() {
		if w.lies.atStart != nil {
			w.lies.atStart(ctx, w, rt)
		}
		i.ended <- w.run(ctx, i, images, list, rt)
	}()
}

// commands runs those of probes; no others are simulated.
type commands struct{ runtime.Runtime }

func (c commands) Exec(ctx context.Context, id string, command []string, most int) (int, []byte, error) {
	result, err := c.Runtime.Exec(ctx, id, command, most)
	return result.ExitCode, result.Output, err
}

func (w *world) sources(files files, store session, transport http.RoundTripper) []sources.Source {
	file, err := sources.NewFile(sources.FileConfig{
		Path: folder, Parse: w.truth.parse, FS: files, Watcher: files, Store: store, Now: w.wall, Log: w.log,
	})
	if err != nil {
		panic(err)
	}
	web, err := sources.NewHTTP(sources.HTTPConfig{
		URL: pageURL, Transport: transport, Parse: w.truth.parse, Store: store, Now: w.wall, Log: w.log,
	})
	if err != nil {
		panic(err)
	}
	return []sources.Source{file, web}
}

// run is agent.Run without what is not simulated: socket and systemd.
func (w *world) run(ctx context.Context, i *incarnation, images *gc.ImageCollector, list []sources.Source, rt runtime.Runtime) error {
	loop := i.loop
	group, ctx := errgroup.WithContext(ctx)
	sets := make(chan pod.Set)
	told := sets
	if w.lies.set != nil {
		told = make(chan pod.Set)
		group.Go(func() error {
			for {
				select {
				case s := <-sets:
					select {
					case told <- w.lies.set(s):
					case <-ctx.Done():
						return nil
					}
				case <-ctx.Done():
					return nil
				}
			}
		})
	}
	group.Go(func() error { return sources.Run(ctx, list, sets) })
	group.Go(func() error { return loop.Run(ctx, told) })
	group.Go(func() error {
		none := func(context.Context) error { return nil }
		return gc.NewContainerCollector(gc.ContainerConfig{Policy: gc.DefaultPolicy(), Inventory: inventory(loop), Remove: rt.Remove, Links: none, Claims: none, Event: pod.LogEvents(w.log), Log: w.log}).Run(ctx)
	})
	group.Go(func() error { return images.Run(ctx) })
	group.Go(func() error { return w.evictor(i).Run(ctx) })
	return group.Wait()
}

func inventory(loop *reconcile.Loop) func(context.Context) ([]gc.Dead, error) {
	return func(ctx context.Context) ([]gc.Dead, error) {
		snap, err := loop.Snapshot(ctx, 0)
		return agent.DeadContainers(snap), err
	}
}

// boundary is one effect of the incarnation. It may be its last.
func (i *incarnation) boundary(verb string) {
	switch verb {
	case "list", "inspect", "watch", "image", "images", "features", "logs", "exec":
		return // an observer that dies leaves nothing half done
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fuse < 0 {
		return
	}
	if i.fuse--; i.fuse < 0 {
		i.die()
	}
}

// die fences the incarnation, with mu held.
func (i *incarnation) die() {
	if !dead(i.fence) {
		i.client.Fence()
	}
}

func dead(fence <-chan struct{}) bool {
	select {
	case <-fence:
		return true
	default:
		return false
	}
}

// crash kills the agent, where it lives, and joins it.
func (w *world) crash() {
	if w.agent == nil {
		return
	}
	synctest.Wait() // what it died of has left its line in the trace
	w.agent.mu.Lock()
	w.agent.die()
	w.agent.mu.Unlock()
	w.fate.Trace("agent %d is dead", w.lives)
	w.agent.cancel()
	<-w.agent.ended
	w.agent = nil
}

// pass lets virtual time pass. It is cut short when the agent dies, or enough was
// seen.
func (w *world) pass(d time.Duration) {
	woken := make(chan struct{})
	w.fate.After("driver", "", d, 0, func() { close(woken) })
	var fence <-chan struct{}
	if w.agent != nil {
		fence = w.agent.fence
	}
	select {
	case <-woken:
	case <-w.laws.enough:
	case <-fence:
		w.crash()
	}
}
