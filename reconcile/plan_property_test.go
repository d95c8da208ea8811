package reconcile_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

func FuzzPlan(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkPlan)) }

func TestPlanProperties(t *testing.T) { rapid.Check(t, checkPlan) }

// checkPlan holds what is true of every plan, however strange the situation.
func checkPlan(t *rapid.T) {
	in := drawInput(t)
	plan := reconcile.PlanPod(in)

	if again := reconcile.PlanPod(in); again.String() != plan.String() {
		t.Fatalf("law 2: planned twice:\n%s\nthen\n%s", plan, again)
	}
	shuffled := in
	shuffled.Observed = slices.Clone(in.Observed)
	slices.Reverse(shuffled.Observed)
	if diff := cmp.Diff(plan.String(), reconcile.PlanPod(shuffled).String()); diff != "" {
		t.Fatalf("the order of observation matters (-one +reversed):\n%s", diff)
	}

	byID := make(map[string]runtime.Container)
	for _, c := range in.Observed {
		byID[c.ID] = c
	}
	stops := make(map[string]int) // id → wave
	for _, s := range plan.Steps {
		if c, ok := byID[s.ID]; s.ID != "" && (!ok || c.Name != s.Container) {
			t.Fatalf("a step is about what is not there: %s", s)
		}
		if s.Verb == reconcile.StopContainer {
			stops[s.ID] = s.Wave
		}
	}
	sandboxes := 0
	for i, s := range plan.Steps {
		if i > 0 && plan.Steps[i-1].Wave > s.Wave {
			t.Fatalf("the waves are out of order:\n%s", plan)
		}
		switch s.Verb {
		case reconcile.CreateSandbox:
			sandboxes++
			mustBeStopped(t, plan, s, in.Observed, stops, func(c runtime.Container) bool { return c.IsSandbox() })
		case reconcile.StartContainer:
			mustBeStopped(t, plan, s, in.Observed, stops, func(c runtime.Container) bool { return c.Name == s.Container })
		case reconcile.RemoveContainer:
			mustBeStopped(t, plan, s, in.Observed, stops, func(c runtime.Container) bool { return c.ID == s.ID })
		case reconcile.RemoveFolder:
			mustBeStopped(t, plan, s, in.Observed, stops, func(c runtime.Container) bool { return c.UID == s.UID })
		}
	}
	if sandboxes > 1 {
		t.Fatalf("two sandboxes:\n%s", plan)
	}
	if in.Desired == nil && !in.MayRemove {
		for _, s := range plan.Steps {
			if s.Reason == reconcile.Removed && containerNamed(plan.Pod, s.Container) || s.Verb == reconcile.RemoveFolder && plan.Pod == nil {
				t.Fatalf("law 1: nothing may be removed:\n%s", plan)
			}
		}
	}
	if !in.Held.IsZero() && slices.ContainsFunc(plan.Steps, func(s reconcile.Step) bool {
		return s.Verb == reconcile.CreateSandbox || s.Verb == reconcile.CreateContainer || s.Verb == reconcile.StartContainer
	}) {
		t.Fatalf("law 5: held by hand, and started:\n%s", plan)
	}
	checkOrder(t, plan, in)
	if in.Refused != (reconcile.Waiting{}) || in.Awaits != (reconcile.Waiting{}) {
		for _, s := range plan.Steps {
			if s.Verb == reconcile.CreateSandbox {
				t.Fatalf("a pod is started without its ports:\n%s", plan)
			}
		}
	}
}

// checkOrder: nothing starts before the init containers that come before it have
// done their work, and no sidecar ends with its pod before those that it serves.
func checkOrder(t *rapid.T, plan reconcile.Plan, in reconcile.Input) {
	if plan.Pod == nil {
		return
	}
	all := slices.Concat(plan.Pod.Object.Spec.InitContainers, plan.Pod.Object.Spec.Containers)
	place := func(name string) int {
		return slices.IndexFunc(all, func(c v1.Container) bool { return c.Name == name })
	}
	inits := len(plan.Pod.Object.Spec.InitContainers)
	for _, s := range plan.Steps {
		switch {
		case s.Verb == reconcile.StartContainer:
			for at := range min(place(s.Container), inits) {
				if all[at].RestartPolicy == nil && !hasInitialized(in, plan, all, at) {
					t.Fatalf("%s, and %s has not succeeded:\n%s", s, all[at].Name, plan)
				}
			}
		case s.Verb == reconcile.StopContainer && plan.Finished && s.Container != "POD" && in.Ending.IsZero():
			for _, o := range plan.Steps {
				at := place(o.Container)
				if o.Verb == s.Verb && at >= 0 && at < inits && all[at].RestartPolicy != nil && (place(s.Container) > at || place(s.Container) < 0) && s.Wave >= o.Wave {
					t.Fatalf("%s, although %s serves it:\n%s", s, o, plan)
				}
			}
		}
	}
}

// hasInitialized: the init container has ended well in the sandbox that runs, or
// one that comes after it was made there. Nothing else is remembered here.
func hasInitialized(in reconcile.Input, plan reconcile.Plan, all []v1.Container, at int) bool {
	var sandbox runtime.Container
	newest := make(map[string]runtime.Container)
	after := false
	for _, c := range in.Observed {
		if c.UID == plan.UID && c.IsSandbox() && c.State == runtime.Running && (sandbox.ID == "" || c.Attempt > sandbox.Attempt || c.Attempt == sandbox.Attempt && c.ID > sandbox.ID) {
			sandbox = c
		}
	}
	for _, c := range in.Observed {
		if c.UID != plan.UID || sandbox.ID == "" || c.Sandbox != sandbox.Ref() {
			continue
		}
		if n, ok := newest[c.Name]; !ok || n.Attempt < c.Attempt || n.Attempt == c.Attempt && n.ID < c.ID {
			newest[c.Name] = c
		}
		after = after || slices.ContainsFunc(all[at+1:], func(o v1.Container) bool { return o.Name == c.Name })
	}
	c, ok := newest[all[at].Name]
	return after || ok && c.State == runtime.Exited && c.ExitCode == 0
}

func containerNamed(p *pod.Pod, name string) bool {
	return p != nil && slices.ContainsFunc(slices.Concat(p.Object.Spec.InitContainers, p.Object.Spec.Containers), func(c v1.Container) bool { return c.Name == name })
}

// mustBeStopped: what the step must not meet running is stopped in a wave before.
func mustBeStopped(t *rapid.T, plan reconcile.Plan, s reconcile.Step, observed []runtime.Container, stops map[string]int, which func(runtime.Container) bool) {
	for _, c := range observed {
		if !which(c) || c.State != runtime.Running || c.ID == s.ID && s.Verb == reconcile.StartContainer {
			continue
		}
		if wave, stopped := stops[c.ID]; !stopped || wave >= s.Wave {
			t.Fatalf("%s, while %s/%d (%s) runs:\n%s", s, c.Name, c.Attempt, c.ID, plan)
		}
	}
}

var variants = []string{
	"",
	"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: a, image: busybox:1}, {name: b, image: busybox:1}]\n",
	"apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {x: y}}\nspec:\n  containers: [{name: a, image: busybox:1}, {name: b, image: busybox:2}]\n",
	"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  restartPolicy: Never\n  containers: [{name: a, image: busybox:1}]\n",
	"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  restartPolicy: OnFailure\n  hostname: h\n  containers: [{name: b, image: busybox:1}]\n",
	"apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u2}\nspec:\n  initContainers: [{name: i, image: busybox:1}, {name: s, image: busybox:1, restartPolicy: Always}, {name: j, image: busybox:2}]\n  containers: [{name: a, image: busybox:1, lifecycle: {postStart: {exec: {command: [x]}}}}, {name: b, image: busybox:2, restartPolicy: Never, lifecycle: {preStop: {sleep: {seconds: 1}}}}]\n",
	"apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u2}\nspec:\n  restartPolicy: Never\n  initContainers: [{name: s, image: busybox:1, restartPolicy: Always}, {name: i, image: busybox:1}, {name: t, image: busybox:1, restartPolicy: Always}]\n  containers: [{name: a, image: busybox:1}]\n",
	"apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u1}\nspec:\n  hostname: h\n  activeDeadlineSeconds: 10\n  containers: [{name: a, image: 'busybox:latest', ports: [{containerPort: 80, hostPort: 80}]}]\n",
}

func drawPod(t *rapid.T, label string) *pod.Pod {
	text := rapid.SampledFrom(variants).Draw(t, label)
	from := origin
	if rapid.Bool().Draw(t, label+" elsewhere") {
		from.Name = "/m/b.yaml"
	}
	for _, d := range manifests.Parse([]byte(text), from, manifests.Options{NodeName: "node"}).Documents {
		return d.Pod
	}
	return nil
}

func drawInput(t *rapid.T) reconcile.Input {
	key := pod.Key{Namespace: "default", Name: "p-node"}
	in := reconcile.Input{
		Key: key, Desired: drawPod(t, "desired"), MayRemove: rapid.Bool().Draw(t, "may remove"), Why: "silent",
		Records: make(map[types.UID]reconcile.Record), Images: make(map[string]reconcile.Image), Pulled: make(map[reconcile.Pull]bool),
		Failures: make(map[string]reconcile.Failure), Learnt: make(map[string]reconcile.Learnt),
		Node: reconcile.Node{Name: "node", RootDir: "/root"}, Now: start, Wall: start,
	}
	if rapid.Bool().Draw(t, "is active") {
		in.Begun = map[types.UID]time.Time{"u1": start.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "for")) * time.Second)}
	}
	if rapid.IntRange(0, 3).Draw(t, "is ending") == 0 {
		in.Ending = start.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "since")) * time.Second)
	}
	if rapid.IntRange(0, 4).Draw(t, "held") == 0 {
		in.Held = start.Add(-time.Minute)
	}
	in.Anew = make(map[string]string)
	if rapid.IntRange(0, 3).Draw(t, "restarted by hand") == 0 {
		in.Anew["a"] = string(rune('A' + rapid.IntRange(1, 8).Draw(t, "id")))
	}
	if rapid.Bool().Draw(t, "refused") {
		in.Refused = reconcile.Waiting{Reason: reconcile.NodePorts, Message: "taken"}
	}
	if rapid.Bool().Draw(t, "awaits") {
		in.Awaits = reconcile.Waiting{Reason: reconcile.ContainerCreating, Message: "not yet free"}
	}
	for _, image := range []string{"busybox:1", "busybox:2", "busybox:latest"} {
		switch rapid.IntRange(0, 3).Draw(t, image) {
		case 1:
			in.Images[image] = reconcile.Image{Present: true}
		case 2:
			in.Images[image] = reconcile.Image{Failed: 1, Retry: start.Add(time.Second)}
		case 3:
			in.Pulled[reconcile.Pull{Container: "a", UID: "u1", Image: image, Attempt: rapid.IntRange(0, 3).Draw(t, "pulled")}] = true
		}
	}
	for _, what := range []string{"a", "b", "POD"} {
		if rapid.IntRange(0, 4).Draw(t, "failed "+what) == 0 {
			in.Failures[what] = reconcile.Failure{Retry: start.Add(time.Second)}
		}
	}
	// A tidy pod is as one finds most: made from what is wanted, in a sandbox that runs.
	tidy := in.Desired != nil && rapid.Bool().Draw(t, "tidy")
	ids := 0
	for range rapid.IntRange(0, 8).Draw(t, "containers") {
		from := in.Desired
		if !tidy {
			from = drawPod(t, "made from")
		}
		if from == nil {
			continue
		}
		uid := from.ExplicitUID()
		if uid == "" {
			uid = manifests.MintUID("/root", "node", key, from.Hash)
		}
		ids++
		c := runtime.Container{ID: string(rune('A' + ids)), Start: "t0", State: rapid.SampledFrom([]runtime.State{runtime.Created, runtime.Running, runtime.Exited}).Draw(t, "state")}
		c.ExitCode = rapid.SampledFrom([]int{0, 1}).Draw(t, "exit")
		c.Identity = runtime.Identity{
			Key: key, UID: uid, Source: pod.FileSource, Name: rapid.SampledFrom([]string{"POD", "a", "b", "i", "j", "s", "t", "gone"}).Draw(t, "name"),
			Attempt: rapid.IntRange(0, 2).Draw(t, "attempt"), PodHash: from.Hash, Grace: time.Second,
			Sandbox: runtime.SandboxRef{ID: string(rune('A' + rapid.IntRange(1, 3).Draw(t, "sandbox"))), Start: "t0"},
		}
		if tidy {
			c.Name = rapid.SampledFrom(slices.Sorted(maps.Keys(from.Containers))).Draw(t, "its name")
			c.Sandbox = runtime.SandboxRef{ID: "B", Start: "t0"}
		}
		if tidy && ids == 1 {
			c.Name, c.State = runtime.SandboxName, runtime.Running
		}
		c.ContainerHash = from.Containers[c.Name]
		if rapid.IntRange(0, 3).Draw(t, "other version") == 0 {
			c.PodHash, c.ContainerHash = pod.Hash{Version: 99, Digest: "x"}, pod.Hash{Version: 99, Digest: "x"}
		}
		var learnt reconcile.Learnt
		if c.Ended() {
			c.Finished = start.Add(-time.Duration(rapid.IntRange(0, 700).Draw(t, "ago")) * time.Second)
			c.Started = c.Finished.Add(-time.Second)
			learnt.Ended = c.Finished
		}
		learnt.Hook = rapid.SampledFrom([]reconcile.HookState{"", reconcile.HookDone, reconcile.HookFailed}).Draw(t, "hook")
		if rapid.Bool().Draw(t, "probed") {
			learnt.Probes = &reconcile.ProbeState{
				Started: rapid.Bool().Draw(t, "started"), Ready: rapid.Bool().Draw(t, "ready"),
				Unhealthy: rapid.SampledFrom([]string{"", reconcile.LivenessProbe, reconcile.StartupProbe}).Draw(t, "unhealthy"),
			}
		}
		in.Learnt[c.ID] = learnt
		in.Observed = append(in.Observed, c)
		if rapid.Bool().Draw(t, "recorded") {
			o := from.Origin
			in.Records[uid] = reconcile.Record{Pod: from, State: reconcile.State{Key: key, Origin: &o}}
		}
	}
	return in
}
