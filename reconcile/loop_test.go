package reconcile_test

import (
	"context"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// rig is a loop on a model of an engine, in a bubble of virtual time.
type rig struct {
	t       *testing.T
	engine  *fake.Engine
	loop    *reconcile.Loop
	stop    func() // ends the loop
	sets    chan pod.Set
	files   *files
	volumes *shelf
	log     *lines
	told    told // events
	pinning reconcile.Pinning
	node    reconcile.Node
	cgroups reconcile.Cgroups
	accept  func(context.Context, runtime.Features) error
	vanish  string // an image that is gone whenever it was pulled
	// linked: links of logs cannot be removed.
	linked atomic.Bool
	// mute: no container can be inspected.
	mute atomic.Bool
	// hold, where it is not nil, is what the removal of an image waits for.
	hold chan struct{}
	// stuck, where it is not nil, is what the start of a container waits for; starts
	// counts those.
	stuck  chan struct{}
	starts atomic.Int64
	// lists, where it is not nil, is what a listing waits for.
	lists atomic.Pointer[chan struct{}]
	// login holds the password of the node's login to every registry, a string.
	login atomic.Value
	// check holds a func(probe.Check) probe.Result, ahead the lead of the wall clock
	// over the other one.
	check atomic.Value
	ahead atomic.Int64
	// asked counts how often the engine was asked what it can do.
	asked atomic.Int64
	// keepLogs is that of the next loop.
	keepLogs time.Duration
	counted  counted
}

// inRig runs f with a loop that is up, and stops it.
func inRig(t *testing.T, f func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{
			t: t, engine: fake.New(fake.Config{Fate: fake.Immediate()}), sets: make(chan pod.Set),
			files: &files{data: make(map[string][]byte)}, volumes: &shelf{files: make(map[string]string)}, log: new(lines), node: reconcile.Node{Name: "node", RootDir: "/root"},
		}
		r.engine.SetImage("present:1", fake.Image{Present: true})
		r.engine.SetImage("remote:1", fake.Image{Pullable: true})
		r.start(reconcile.Policy{})
		f(r)
		r.stop()
	})
}

func (r *rig) start(policy reconcile.Policy) {
	wall := func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }
	r.node.Pinning = r.pinning
	r.loop = reconcile.New(reconcile.Config{Node: r.node, Policy: policy, Wall: wall, KeepLogs: r.keepLogs}, reconcile.Deps{
		Runtime: forgetful{r.engine.Client("/root"), r}, Store: r.files, Volumes: r.volumes, Logs: noLogs{&r.linked}, Credentials: keyring{&r.login},
		Check: func(_ context.Context, c probe.Check) probe.Result {
			return r.check.Load().(func(probe.Check) probe.Result)(c)
		},
		Cgroups: r.cgroups, Accept: r.accept,
		Events: r.told.take, Counts: &r.counted, Log: slog.New(slog.NewTextHandler(r.log, nil)),
	})
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.loop.Run(ctx, r.sets) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	}
}

// want makes the pods of these manifests all that is desired.
func (r *rig) want(texts ...string) {
	r.t.Helper()
	r.wantWith("", texts...)
}

// wantWith does so with the objects of another manifest beside them.
func (r *rig) wantWith(objects string, texts ...string) {
	r.t.Helper()
	set := pod.Set{Objects: make(map[pod.ObjectKey][]*pod.Object), Claims: make(map[pod.Key][]*pod.Pod), Sources: []pod.Source{{ID: origin.Source, Spoken: true, Present: true}}}
	for key, object := range parseObjects([]byte(objects)) {
		set.Objects[key] = append(set.Objects[key], object)
	}
	for _, text := range texts {
		p := parsePod(r.t, []byte(text))
		set.Claims[p.Key()] = append(set.Claims[p.Key()], p)
	}
	r.sets <- set
}

// after lets that much time pass, and returns the state then.
func (r *rig) after(d time.Duration) reconcile.Snapshot {
	r.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	snap, err := r.loop.Snapshot(r.t.Context(), 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return snap
}

// phases returns the phase of each pod by name, without the node's suffix.
func phases(snap reconcile.Snapshot) map[string]v1.PodPhase {
	out := make(map[string]v1.PodPhase)
	for _, v := range snap.Pods {
		out[strings.TrimSuffix(v.Object.Name, "-node")] = v.Object.Status.Phase
	}
	return out
}

// lines is a log that can be counted.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// files is a root dir in memory.
type files struct {
	mu   sync.Mutex
	data map[string][]byte
	full bool
}

func (f *files) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.data[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return data, nil
}

func (f *files) WriteFile(name string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return unix.ENOSPC
	}
	f.data[name] = data
	return nil
}

func (f *files) fill(full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = full
}

func (f *files) Entries(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for path := range f.data {
		if rest, ok := strings.CutPrefix(path, dir+"/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (f *files) RemovePod(uid types.UID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.data {
		if strings.HasPrefix(name, "pods/"+string(uid)+"/") {
			delete(f.data, name)
		}
	}
	return nil
}

// shelf keeps what volumes were last given.
type shelf struct {
	mu     sync.Mutex
	writes int
	files  map[string]string // path and content of each file, by volume
	// removed are the pods whose volumes were.
	removed []types.UID
}

func (v *shelf) Ensure(_ context.Context, r volume.Request) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	text := ""
	for _, f := range r.Files {
		text += f.Path + "=" + f.Data + " "
	}
	v.writes++
	v.files[r.Volume.Name] = text
	if r.Volume.Name == "broken" {
		return unix.EIO
	}
	return nil
}

func (v *shelf) Remove(uid types.UID) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.removed = append(v.removed, uid)
	return nil
}

// removals returns the pods whose volumes were removed.
func (v *shelf) removals() (uids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, uid := range v.removed {
		uids = append(uids, string(uid))
	}
	return uids
}

func (v *shelf) seen(name string) (text string, writes int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.files[name], v.writes
}

func (*shelf) Path(r volume.Request) string                           { return "/" + r.Volume.Name }
func (*shelf) SubPath(volume.Request, volume.Part) (string, error)    { return "", nil }
func (*shelf) ReadFile(volume.Request, string, int64) ([]byte, error) { return nil, nil }
func (*shelf) Hosts(types.UID, []byte) (string, error)                { return "/hosts", nil }

type noLogs struct{ linked *atomic.Bool }

func (noLogs) Link(runtime.Container) error { return nil }

func (l noLogs) Unlink(pod.Key, types.UID) error {
	if l.linked.Load() {
		return unix.EIO
	}
	return nil
}

// TestNeverPullDelaysNobody holds law 7: a pod that waits for an image that it
// may not pull does not keep another from pulling it, and is served by that.
func TestNeverPullDelaysNobody(t *testing.T) {
	inRig(t, func(r *rig) {
		never := manifest("a", "", "{name: c, image: remote:1, imagePullPolicy: Never}")
		r.want(never)
		if got := r.after(time.Minute).Pods[0].Plan.Waiting["c"].Reason; got != reconcile.ErrImageNeverPull {
			t.Errorf("a waits with %q", got)
		}
		r.want(never, manifest("b", "", "{name: c, image: remote:1, imagePullPolicy: IfNotPresent}"))
		if got := phases(r.after(time.Second)); got["b"] != v1.PodRunning {
			t.Errorf("b is %s", got["b"])
		}
		if got := phases(r.after(time.Second)); got["a"] != v1.PodRunning {
			t.Errorf("a is %s", got["a"])
		}
	})
}

// manifest returns a pod of one container; meta goes into its metadata.
func manifest(name, meta, container string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + meta + "}\nspec:\n  containers: [" + container + "]\n"
}

// TestAlwaysPullsForEachGeneration holds that the pull of one generation does not
// count for the next, whose attempts count from 0 again.
func TestAlwaysPullsForEachGeneration(t *testing.T) {
	inRig(t, func(r *rig) {
		const c = "{name: c, image: remote:1, imagePullPolicy: Always}"
		r.want(manifest("a", "", c))
		r.after(time.Second)
		r.want(manifest("a", "", c) + "  hostname: other\n")
		if got := phases(r.after(time.Minute)); got["a"] != v1.PodRunning {
			t.Errorf("a is %s", got["a"])
		}
		if n := r.log.count("image pulled"); n != 2 {
			t.Errorf("%d pulls, want 2", n)
		}
	})
}

// TestImageThatVanishesIsPulledWithBackOff holds that an engine that pulls an
// image, and then does not find it, is not asked as fast as it answers.
func TestImageThatVanishesIsPulledWithBackOff(t *testing.T) {
	inRig(t, func(r *rig) {
		r.vanish = "remote:1"
		r.want(manifest("a", "", "{name: c, image: remote:1}"))
		r.after(time.Minute)
		if n := r.log.count("image pulled"); n < 2 || n > 10 {
			t.Errorf("%d pulls in a minute", n)
		}
	})
}

// forgetful is an engine that loses an image as soon as it is pulled, and counts.
type forgetful struct {
	runtime.Runtime
	rig *rig
}

func (f forgetful) List(ctx context.Context) ([]runtime.Summary, error) {
	if wait := f.rig.lists.Load(); wait != nil {
		<-*wait
	}
	return f.Runtime.List(ctx)
}

func (f forgetful) Inspect(ctx context.Context, id string) (runtime.Container, error) {
	if f.rig.mute.Load() {
		return runtime.Container{}, unix.EIO
	}
	return f.Runtime.Inspect(ctx, id)
}

func (f forgetful) Features(ctx context.Context) (runtime.Features, error) {
	f.rig.asked.Add(1)
	return f.Runtime.Features(ctx)
}

func (f forgetful) RemoveImage(ctx context.Context, id string) error {
	if f.rig.hold != nil {
		<-f.rig.hold
	}
	return f.Runtime.RemoveImage(ctx, id)
}

func (f forgetful) Start(ctx context.Context, id string) error {
	if f.rig.stuck != nil {
		f.rig.starts.Add(1)
		<-f.rig.stuck
	}
	return f.Runtime.Start(ctx, id)
}

func (f forgetful) Pull(ctx context.Context, ref string, auth runtime.Auth, progress func(runtime.PullProgress)) error {
	err := f.Runtime.Pull(ctx, ref, auth, progress)
	if ref == f.rig.vanish {
		f.rig.engine.SetImage(ref, fake.Image{Pullable: true})
	}
	return err
}

const port = "ports: [{containerPort: 1, hostPort: "

// TestPortsPassOn holds that a pod that waits for a port gets it as soon as an
// edit of its holder gives it up, and that a reverted edit leaves none behind.
func TestPortsPassOn(t *testing.T) {
	web := func(hostPort string) string {
		return manifest("web", "", "{name: c, image: present:1, "+port+hostPort+"}]}")
	}
	other := func(hostPort string) string {
		return manifest("z", "", "{name: c, image: present:1, "+port+hostPort+"}]}")
	}
	inRig(t, func(r *rig) {
		r.want(web("80"), other("80"))
		if got := phases(r.after(time.Second)); got["web"] != v1.PodRunning || got["z"] != v1.PodPending {
			t.Fatalf("at first: %v", got)
		}
		r.want(web("81"), other("80"))
		if got := phases(r.after(20 * time.Second)); got["web"] != v1.PodRunning || got["z"] != v1.PodRunning {
			t.Errorf("after the edit: %v", got)
		}
	})
	inRig(t, func(r *rig) {
		r.want(web("80"))
		r.after(time.Second)
		r.want(web("81"))
		r.want(web("80"), other("81"))
		if got := phases(r.after(20 * time.Second)); got["web"] != v1.PodRunning || got["z"] != v1.PodRunning {
			t.Errorf("after an edit and back: %v", got)
		}
	})
}

// TestUIDPassesOn holds that a pod that was refused a UID gets it when who had it
// is gone, folder and all, though no source says anything new.
func TestUIDPassesOn(t *testing.T) {
	const c, uid = "{name: c, image: present:1}", ", uid: u-1"
	inRig(t, func(r *rig) {
		r.want(manifest("old", uid, c))
		r.after(time.Second)
		r.want(manifest("new", uid, c))
		snap := r.after(time.Minute)
		if got := phases(snap); got["new"] != v1.PodRunning || len(got) != 1 {
			t.Errorf("after a rename: %v", got)
		}
		if len(snap.Conflicts) != 0 {
			t.Errorf("conflicts: %v", snap.Conflicts)
		}
		r.want(manifest("new", ", uid: u-2", c), manifest("old", uid, c))
		if got := phases(r.after(time.Minute)); got["new"] != v1.PodRunning || got["old"] != v1.PodRunning {
			t.Errorf("after the UID went to another: %v", got)
		}
		if _, err := r.files.ReadFile("pods/u-1/pod.json"); err != nil {
			t.Error(err)
		}
	})
}

// TestEngineAwayIsSaidOnce holds that an outage does not fill the log, whatever
// was under way when it began, and that everything is looked at after it.
func TestEngineAwayIsSaidOnce(t *testing.T) {
	inRig(t, func(r *rig) {
		c := "{name: c, image: present:1}"
		r.want(manifest("a", "", c), manifest("b", "", c))
		r.after(time.Second)
		r.want() // two stops are cut off
		r.engine.Down(false)
		r.after(10 * time.Minute)
		if n := r.log.count("level=WARN"); n > 10 {
			t.Errorf("%d warnings of one outage", n)
		}
		r.engine.Up()
		if snap := r.after(time.Minute); len(snap.Pods) != 0 {
			t.Errorf("after the outage: %v", phases(snap))
		}
	})
}

// TestRefusedEditKeepsTheOldVersionUp holds that what runs while an edit waits
// for a port is kept running, images and all, and gives way when the port is free.
func TestRefusedEditKeepsTheOldVersionUp(t *testing.T) {
	web := manifest("web", "", "{name: c, image: present:1, "+port+"80}]}")
	inRig(t, func(r *rig) {
		r.want(web, manifest("z", "", "{name: c, image: remote:1}"))
		r.after(time.Second)
		edited := manifest("z", "", "{name: c, image: present:1, "+port+"80}]}")
		r.want(web, edited)
		r.after(time.Second)
		r.engine.SetImage("remote:1", fake.Image{Pullable: true})
		for _, c := range r.engine.Containers() {
			if c.Key.Name == "z-node" && c.Identity.Name == "c" {
				r.engine.Destroy(c.ID)
			}
		}
		snap := r.after(10 * time.Second)
		if got := snap.Pods[1].Object.Status; got.Reason != string(reconcile.NodePorts) || got.ContainerStatuses[0].Image != "remote:1" || !got.ContainerStatuses[0].Ready {
			t.Errorf("after somebody removed its container: %s %s, %+v", got.Phase, got.Reason, got.ContainerStatuses[0])
		}
		r.want(edited)
		snap = r.after(20 * time.Second)
		if got := snap.Pods[0].Object.Status; got.Phase != v1.PodRunning || got.Reason != "" || got.ContainerStatuses[0].Image != "present:1" {
			t.Errorf("with the port free: %s %s, image %s", got.Phase, got.Reason, got.ContainerStatuses[0].Image)
		}
	})
}

// Law 5: what is remembered of a pod that was removed stays on the disk, as it does in
// memory, as long as anything else of it cannot be removed.
func TestWhatIsRememberedGoesLast(t *testing.T) {
	inRig(t, func(r *rig) {
		remembered := func() bool { names, _ := r.files.Entries("pods"); return len(names) > 0 }
		r.want(onePod("a"))
		r.after(time.Minute)
		r.linked.Store(true)
		r.want()
		if r.after(time.Minute); !remembered() || len(r.engine.Containers()) > 0 {
			t.Errorf("remembered: %t, %d containers", remembered(), len(r.engine.Containers()))
		}
		r.linked.Store(false)
		if r.after(10 * time.Minute); remembered() {
			t.Error("it stays though it could go")
		}
	})
}

// A folder that was made for a pod is removed with it, though neither it nor the
// pod could be written down.
func TestFolderOfAPodThatCannotBeMade(t *testing.T) {
	inRig(t, func(r *rig) {
		r.files.fill(true)
		r.want(manifest("a", ", uid: u", "{name: c, image: present:1, volumeMounts: [{name: broken, mountPath: /v}]}") + "  volumes: [{name: broken, emptyDir: {}}]\n")
		if got := phases(r.after(time.Minute))["a"]; got != v1.PodPending || len(r.volumes.removals()) > 0 {
			t.Fatalf("the pod is %q, removed: %v", got, r.volumes.removals())
		}
		r.want()
		r.after(5 * time.Minute)
		if want := []string{"u"}; !slices.Equal(r.volumes.removals(), want) {
			t.Errorf("removed: %v, want %v", r.volumes.removals(), want)
		}
	})
}

// A pod waits as long as nobody can tell what became of one of its containers: here one
// that had ended, and that somebody started again.
func TestPodWaitsForWhatCannotBeInspected(t *testing.T) {
	inRig(t, func(r *rig) {
		text := func(image string) string {
			return manifest("a", "", "{name: done, image: present:1, args: [exit=0, after=5s]}, {name: app, image: "+image+", imagePullPolicy: Never}") + "  restartPolicy: OnFailure\n"
		}
		r.engine.SetImage("present:2", fake.Image{Present: true})
		r.want(text("present:1"))
		r.after(time.Minute)
		ids := make(map[string]string)
		for _, c := range the(t, r.after(0), "a").Containers {
			ids[c.Name] = c.ID
		}
		r.mute.Store(true)
		if !r.engine.Restart(ids["done"]) {
			t.Fatal("it cannot be started again")
		}
		r.after(time.Second)
		r.want(text("present:2"))
		r.after(10 * time.Second)
		for _, c := range r.engine.Containers() {
			if c.ID == ids["app"] && c.State != runtime.Running {
				t.Errorf("app is %s while nobody can tell of its neighbour", c.State)
			}
		}
		r.mute.Store(false)
		if c := the(t, r.after(time.Minute), "a").Object.Status.ContainerStatuses[1]; c.Image != "present:2" || c.State.Running == nil {
			t.Errorf("app in the end: %+v", c)
		}
	})
}
