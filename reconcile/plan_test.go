package reconcile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

var update = flag.Bool("update", false, "rewrite the golden plans")

// TestPlan holds every situation in testdata/plan: what is desired, what is
// observed and remembered, and the plan that follows.
func TestPlan(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no situations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := reconcile.PlanPod(readSituation(t, ar)).String()
			for i, f := range ar.Files {
				if f.Name != "want.plan" {
					continue
				}
				if *update {
					ar.Files[i].Data = []byte(got)
					if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				if diff := cmp.Diff(string(f.Data), got); diff != "" {
					t.Errorf("plan (-want +got):\n%s", diff)
				}
				return
			}
			t.Error("no want.plan")
		})
	}
}

// start is the instant at which every situation is looked at.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var origin = pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: "/m"}, Name: "/m/a.yaml"}

// observedFile is the shape of observed.yaml.
type observedFile struct {
	Containers []struct {
		Name    string `json:"name"`
		Attempt int    `json:"attempt"`
		State   runtime.State
		Exit    int
		// From names the manifest it was made from: desired (default) or admitted.
		From string
		// Hash replaces its hashes, as another version of the agent would write them.
		Hash string
		UID  types.UID
		// Sandbox is the attempt of the sandbox it was made in; Restarted says that the
		// sandbox has been started again since.
		Sandbox   int
		Restarted bool
		// Ran and Ago are how long it ran, and how long ago it ended; Ago alone, how long
		// ago it started.
		Ran, Ago string
		OOM      bool
		Memory   int64
		// Probed is what its probes say: started, ready, liveness or startup (failed).
		Probed string
		// Hook is how its postStart hook ended: done or failed.
		Hook reconcile.HookState
		// Said is what it said of its end; - is not read yet.
		Said string
	}
	// State is what state.json says; by default that nothing happened.
	State *reconcile.State
	// Lost: pod.json is lost.
	Lost bool
	// Active is for how long the pod has been.
	Active string
	// Verdict is about the generation observed; Out is for how long it is evicted,
	// Emptied says that its folder was emptied since.
	Verdict *pod.Verdict
	Out     string
	Emptied bool
	// Short is the resource that the node is short of: memory, disk or pids; Over is
	// in how long it will have been enough for long enough. "-" is not looked at.
	Short    string
	Over     string
	NoRemove string
	// KeepLogs is for how long containers of removed pods stay; Vacated says that its
	// volumes are gone already.
	KeepLogs string
	Vacated  bool
	// Held: it is stopped by hand. Anew has the attempts that are to be replaced by hand.
	Held bool
	Anew map[string]int
	// Unheard: what is desired is what a source kept from before.
	Unheard  bool
	Refused  string
	Images   map[string]string // name → present, absent, missed, failed, unknown
	Failures map[string]string // step → message
}

func parsePod(t *testing.T, data []byte) *pod.Pod {
	t.Helper()
	result := manifests.Parse(data, origin, manifests.Options{NodeName: "node"})
	for _, p := range result.Problems {
		if p.Severity == pod.Error {
			t.Fatal(p)
		}
	}
	if len(result.Documents) == 0 {
		return nil
	}
	return result.Documents[0].Pod
}

func parseObjects(data []byte) map[pod.ObjectKey]*pod.Object {
	objects := make(map[pod.ObjectKey]*pod.Object)
	for _, d := range manifests.Parse(data, origin, manifests.Options{}).Documents {
		objects[d.ObjectKey] = d.Object
	}
	return objects
}

// written returns what the volumes of a pod were given, with these objects.
func written(p *v1.Pod, uid types.UID, objects map[pod.ObjectKey]*pod.Object) map[reconcile.VolumeKey][]volume.File {
	out := make(map[reconcile.VolumeKey][]volume.File)
	for _, v := range p.Spec.Volumes {
		if files, shown, err := reconcile.Content(v, reconcile.About{Pod: p, UID: uid, Objects: objects}); shown && err == nil {
			out[reconcile.VolumeKey{UID: uid, Name: v.Name}] = files
		}
	}
	return out
}

// readSituation builds the input of a plan. desired.yaml is what the sources
// want, admitted.yaml (by default the same) what runs was made from. objects.yaml
// has what it may refer to, written.yaml what that was when volumes were written.
func readSituation(t *testing.T, ar *txtar.Archive) reconcile.Input {
	t.Helper()
	files := make(map[string][]byte)
	for _, f := range ar.Files {
		files[f.Name] = f.Data
	}
	desired, admitted := parsePod(t, files["desired.yaml"]), parsePod(t, files["desired.yaml"])
	if data, ok := files["admitted.yaml"]; ok {
		admitted = parsePod(t, data)
	}
	var obs observedFile
	if err := yaml.UnmarshalStrict(files["observed.yaml"], &obs); err != nil {
		t.Fatal(err)
	}
	in := reconcile.Input{
		Key: admitted.Key(), Desired: desired, MayRemove: obs.NoRemove == "", Why: obs.NoRemove, Unheard: obs.Unheard,
		Records: make(map[types.UID]reconcile.Record), Images: make(map[string]reconcile.Image),
		Failures: make(map[string]reconcile.Failure), Learnt: make(map[string]reconcile.Learnt),
		Begun: make(map[types.UID]time.Time), Node: reconcile.Node{Name: "node", RootDir: "/root", Memory: 8 << 30}, Now: start, Wall: start,
	}
	if obs.Refused != "" {
		in.Refused = reconcile.Waiting{Reason: reconcile.NodePorts, Message: obs.Refused}
	}
	in.Images["busybox:stable"] = reconcile.Image{Present: true}
	for name, state := range obs.Images {
		in.Images[name] = reconcile.Image{Present: state == "present"}
		switch state {
		case "unknown":
			delete(in.Images, name)
		case "missed":
			in.Images[name] = reconcile.Image{Missed: 1, Recheck: start.Add(10 * time.Second)}
		case "failed":
			in.Images[name] = reconcile.Image{Failed: 2, Retry: start.Add(20 * time.Second), Message: "no such host"}
		}
	}
	for step, message := range obs.Failures {
		in.Failures[step] = reconcile.Failure{Waiting: reconcile.Waiting{Reason: reconcile.FailedSync, Message: message}, Count: 3, Retry: start.Add(4 * time.Second)}
	}
	if obs.Held {
		in.Held = start
	}
	in.Anew = make(map[string]string)
	for name, attempt := range obs.Anew {
		in.Anew[name] = idOf(name, attempt)
	}
	uid := manifests.MintUID("/root", "node", admitted.Key(), admitted.Hash)
	if admitted.ExplicitUID() != "" {
		uid = admitted.ExplicitUID()
	}
	if obs.Active != "" {
		in.Begun[uid] = start.Add(-duration(t, obs.Active))
	}
	if obs.KeepLogs != "" {
		in.KeepLogs, in.Vacated = duration(t, obs.KeepLogs), map[types.UID]bool{uid: obs.Vacated}
	}
	setEviction(t, &in, obs, uid, admitted)
	in.Objects = parseObjects(files["objects.yaml"])
	if data, ok := files["written.yaml"]; ok {
		in.Written = written(admitted.Object, uid, parseObjects(data))
	}
	for _, c := range obs.Containers {
		from := admitted
		if c.From == "desired" {
			from = desired
		}
		o := runtime.Container{ID: idOf(c.Name, c.Attempt), State: c.State, ExitCode: c.Exit, OOMKilled: c.OOM, Start: "t0", Image: "busybox:stable"}
		o.Identity = runtime.Identity{
			Key: in.Key, UID: uid, Source: pod.FileSource, Name: c.Name, Attempt: c.Attempt,
			PodHash: from.Hash, ContainerHash: from.Containers[c.Name], Grace: 30 * time.Second,
			Sandbox: runtime.SandboxRef{ID: idOf(runtime.SandboxName, c.Sandbox), Start: "t0"},
		}
		if o.IsSandbox() {
			o.Sandbox, o.ContainerHash = runtime.SandboxRef{}, pod.Hash{}
		}
		o.Resources = runtime.Resources{CPUShares: 2, Memory: c.Memory}
		if c.UID != "" {
			o.UID = c.UID
		}
		if c.Hash != "" {
			o.PodHash, o.ContainerHash = pod.ParseHash(c.Hash), pod.ParseHash(c.Hash)
		}
		if c.Restarted {
			o.Start = "t1"
		}
		learnt := reconcile.Learnt{Hook: c.Hook}
		switch {
		case c.Ran == "" && c.Ago != "":
			o.Started = start.Add(-duration(t, c.Ago))
		case c.Ran != "":
			o.Finished = start.Add(-duration(t, c.Ago))
			o.Started = o.Finished.Add(-duration(t, c.Ran))
			learnt.Ended = o.Finished
			if c.Said != "-" {
				learnt.Message = &c.Said
			}
		}
		switch c.Probed {
		case "":
		case "started", "ready":
			learnt.Probes = &reconcile.ProbeState{Started: true, Ready: c.Probed == "ready"}
		default:
			learnt.Probes = &reconcile.ProbeState{Unhealthy: c.Probed}
		}
		in.Learnt[o.ID] = learnt
		in.Observed = append(in.Observed, o)
	}
	rec := reconcile.Record{}
	if !obs.Lost {
		rec.Pod = admitted
	}
	if obs.State != nil {
		rec.State = *obs.State
	} else if len(in.Observed) > 0 {
		rec.State = reconcile.State{Key: in.Key, Origin: &origin, Admitted: start.Add(-time.Hour)}
	}
	if len(in.Observed) > 0 || obs.State != nil {
		in.Records[uid] = rec
	}
	if obs.State == nil && len(in.Observed) > 0 {
		// What is observed has been seen before: its state is written down.
		before := in
		before.Desired, before.Begun, before.Verdict = admitted, nil, nil
		before.Held, before.Anew = time.Time{}, nil
		if plan := reconcile.PlanPod(before); plan.State.Key == in.Key {
			rec.State = plan.State
			in.Records[uid] = rec
		}
	}
	return in
}

// setEviction adds what was found about the pod, and how the node is.
func setEviction(t *testing.T, in *reconcile.Input, obs observedFile, uid types.UID, admitted *pod.Pod) {
	t.Helper()
	if obs.Verdict != nil {
		v := *obs.Verdict
		v.UID, v.Hash, v.At = uid, admitted.Hash, start
		in.Verdict = &v
	}
	if obs.State != nil && obs.State.Evicted != nil {
		obs.State.Evicted.Config = admitted.Object.Annotations["kubernetes.io/config.hash"]
	}
	if obs.Out != "" {
		in.Out = map[types.UID]time.Time{uid: start.Add(-duration(t, obs.Out))}
	}
	if obs.Emptied {
		in.Emptied = map[types.UID]time.Time{uid: obs.State.Evicted.At}
	}
	short := func(name string) (s reconcile.Shortage) {
		if obs.Short == name {
			s.Message = name + " is short"
		}
		if obs.Over != "" {
			s.Over = start.Add(duration(t, obs.Over))
		}
		return s
	}
	in.Pressure = reconcile.Pressure{Looked: obs.Short != "-", Memory: short("memory"), Disk: short("disk"), PIDs: short("pids")}
}

func idOf(name string, attempt int) string {
	return strings.ToLower(name) + "-" + string(rune('0'+attempt))
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
