package reconcile_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/manifests/defaults"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

const pin = "4711"

// using is a pod of two containers: app has variables from a ConfigMap, a Secret
// and an optional ConfigMap as a whole, other has none.
func using(annotation string) *pod.Pod {
	ref := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	object := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Annotations: map[string]string{"podkeeper.io/restart-on-change": annotation}},
		Spec: v1.PodSpec{Containers: []v1.Container{
			{
				Name: "app", Image: "busybox:stable",
				Env: []v1.EnvVar{
					{Name: "LEVEL", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: ref("conf"), Key: "level"}}},
					{Name: "PIN", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: ref("login"), Key: "pin"}}},
				},
				EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: ref("more"), Optional: new(true)}}},
			},
			{Name: "other", Image: "busybox:stable"},
		}},
	}
	defaults.Pod(object)
	return &pod.Pod{Object: object, Origin: origin, Hash: manifests.PodHash(object), Containers: manifests.ContainerHashes(object)}
}

// world has what using refers to, but for the optional one.
func world() map[pod.ObjectKey]*pod.Object {
	all := map[pod.ObjectKey]*pod.Object{}
	give(all, pod.ConfigMap, "conf", map[string]pod.Value{"level": pod.PlainValue("1"), "unused": pod.PlainValue("1")})
	give(all, pod.Secret, "login", map[string]pod.Value{"pin": pod.SecretValue(pin)})
	return all
}

func give(all map[pod.ObjectKey]*pod.Object, kind pod.ObjectKind, name string, data map[string]pod.Value) {
	key := pod.ObjectKey{Kind: kind, Namespace: "ns", Name: name}
	all[key] = &pod.Object{Key: key, Data: data}
}

// situation is the pod as it runs, if attempts says of which; with what was
// remembered of it.
func situation(p *pod.Pod, objects map[pod.ObjectKey]*pod.Object, state reconcile.State, attempts map[string]int) reconcile.Input {
	uid := manifests.MintUID("/root", "node", p.Key(), p.Hash)
	in := reconcile.Input{
		Key: p.Key(), Desired: p, MayRemove: true, Objects: objects, DigestKey: reconcile.DigestKey("key"),
		Records: map[types.UID]reconcile.Record{uid: {Pod: p, State: state}},
		Images:  map[string]reconcile.Image{"busybox:stable": {Present: true}},
		Node:    reconcile.Node{Name: "node", RootDir: "/root"}, Now: start, Wall: start,
	}
	if len(attempts) == 0 {
		return in
	}
	sandbox := runtime.Container{ID: "pod-0", State: runtime.Running, Start: "t0"}
	sandbox.Identity = runtime.Identity{Key: in.Key, UID: uid, Source: pod.FileSource, Name: runtime.SandboxName, PodHash: p.Hash}
	in.Observed = append(in.Observed, sandbox)
	for _, name := range slices.Sorted(maps.Keys(attempts)) {
		c := runtime.Container{ID: idOf(name, attempts[name]), State: runtime.Running, Start: "t0", Resources: runtime.Resources{CPUShares: 2}}
		c.Identity = sandbox.Identity
		c.Name, c.Attempt, c.ContainerHash, c.Sandbox = name, attempts[name], p.Containers[name], sandbox.Ref()
		in.Observed = append(in.Observed, c)
	}
	return in
}

var both = map[string]int{"app": 0, "other": 0}

// remembered is what is remembered of the pod once it runs.
func remembered(p *pod.Pod, objects map[pod.ObjectKey]*pod.Object) reconcile.State {
	made := reconcile.PlanPod(situation(p, objects, reconcile.State{}, nil)).State
	return reconcile.PlanPod(situation(p, objects, made, both)).State
}

func TestRestartOnChange(t *testing.T) {
	const restart = "0 stop-container app/0 id=app-0 grace=30s reason=DefinitionChanged (%s changed)\n" +
		"0 create-container app/1 image=busybox:stable reason=DefinitionChanged\n"
	conf, login := pod.ObjectKey{Kind: pod.ConfigMap, Namespace: "ns", Name: "conf"}, pod.ObjectKey{Kind: pod.Secret, Namespace: "ns", Name: "login"}
	more := func(all map[pod.ObjectKey]*pod.Object) {
		give(all, pod.ConfigMap, "more", map[string]pod.Value{"A": pod.PlainValue("1")})
	}
	tests := map[string]struct {
		annotation string
		before     func(map[pod.ObjectKey]*pod.Object)
		change     func(map[pod.ObjectKey]*pod.Object)
		want       string // the objects named in the restart, "" for none
	}{
		"what is used of a ConfigMap changes": {
			change: func(all map[pod.ObjectKey]*pod.Object) {
				give(all, pod.ConfigMap, "conf", map[string]pod.Value{"level": pod.PlainValue("2"), "unused": pod.PlainValue("1")})
			},
			want: "ConfigMap ns/conf",
		},
		"what is used of a Secret changes": {
			change: func(all map[pod.ObjectKey]*pod.Object) {
				give(all, pod.Secret, "login", map[string]pod.Value{"pin": pod.SecretValue("4712")})
			},
			want: "Secret ns/login",
		},
		"another key changes": {
			change: func(all map[pod.ObjectKey]*pod.Object) {
				give(all, pod.ConfigMap, "conf", map[string]pod.Value{"level": pod.PlainValue("1"), "unused": pod.PlainValue("2")})
			},
		},
		"both change": {
			change: func(all map[pod.ObjectKey]*pod.Object) {
				give(all, pod.ConfigMap, "conf", map[string]pod.Value{"level": pod.PlainValue("")})
				give(all, pod.Secret, "login", map[string]pod.Value{"pin": pod.SecretValue("")})
			},
			want: "ConfigMap ns/conf, Secret ns/login",
		},
		"an optional one comes": {change: more, want: "ConfigMap ns/more"},
		"a key is added to one that is used as a whole": {
			before: more,
			change: func(all map[pod.ObjectKey]*pod.Object) {
				give(all, pod.ConfigMap, "more", map[string]pod.Value{"A": pod.PlainValue("1"), "B": pod.PlainValue("")})
			},
			want: "ConfigMap ns/more",
		},
		"law 1: an optional one that is gone may only be unseen": {
			before: more,
			change: func(all map[pod.ObjectKey]*pod.Object) {
				delete(all, pod.ObjectKey{Kind: pod.ConfigMap, Namespace: "ns", Name: "more"})
			},
		},
		"law 1: one that is needed is gone":  {change: func(all map[pod.ObjectKey]*pod.Object) { delete(all, conf) }},
		"one changes while another is gone":  {change: func(all map[pod.ObjectKey]*pod.Object) { delete(all, login); give(all, pod.ConfigMap, "conf", nil) }},
		"its key is gone: nothing could run": {change: func(all map[pod.ObjectKey]*pod.Object) { give(all, pod.ConfigMap, "conf", nil) }},
		"the pod does not ask for it": {
			annotation: "false",
			change: func(all map[pod.ObjectKey]*pod.Object) {
				give(all, pod.ConfigMap, "conf", map[string]pod.Value{"level": pod.PlainValue("2")})
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.annotation == "" {
				test.annotation = "true"
			}
			p, all := using(test.annotation), world()
			if test.before != nil {
				test.before(all)
			}
			state := remembered(p, all)
			test.change(all)
			plan := reconcile.PlanPod(situation(p, all, state, both))
			got := ""
			for _, s := range plan.Steps {
				if s.Verb == reconcile.StopContainer || s.Verb == reconcile.CreateContainer {
					got += s.String() + "\n"
				}
			}
			want := ""
			if test.want != "" {
				want = strings.ReplaceAll(restart, "%s", test.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			// The stop may fail, and what was to be made is remembered by then.
			if again := reconcile.PlanPod(situation(p, all, plan.State, both)); !slices.ContainsFunc(again.Steps, func(s reconcile.Step) bool { return s.Verb == reconcile.StopContainer }) && want != "" {
				t.Errorf("the stop is given up:\n%s", again)
			}
		})
	}
}

// What is made anew stays as long as nothing changes again, and so does what was
// made before anything was remembered.
func TestRestartOnChangeSettles(t *testing.T) {
	p, all := using("true"), world()
	state := remembered(p, all)
	give(all, pod.ConfigMap, "conf", map[string]pod.Value{"level": pod.PlainValue("2")})
	state = reconcile.PlanPod(situation(p, all, state, both)).State
	next := map[string]int{"app": 1, "other": 0}
	for range 2 {
		plan := reconcile.PlanPod(situation(p, all, state, next))
		if slices.ContainsFunc(plan.Steps, func(s reconcile.Step) bool { return s.Changes() }) {
			t.Fatalf("it does not settle:\n%s", plan)
		}
		state = plan.State
	}
	for name, test := range map[string]struct {
		state reconcile.State
		key   string
	}{
		"the record is lost":           {reconcile.State{}, "key"},
		"the root dir has another key": {state, "another"},
		"the pod begins to ask for it": {remembered(using("false"), all), "key"},
	} {
		t.Run(name, func(t *testing.T) {
			in := situation(p, all, test.state, next)
			in.DigestKey = reconcile.DigestKey(test.key)
			plan := reconcile.PlanPod(in)
			if slices.ContainsFunc(plan.Steps, func(s reconcile.Step) bool { return s.Verb == reconcile.StopContainer }) {
				t.Fatalf("law 5: a lost file costs a container:\n%s", plan)
			}
			give(all, pod.ConfigMap, "more", nil) // of which nobody knows whether it is new
			in = situation(p, all, plan.State, next)
			in.DigestKey = reconcile.DigestKey(test.key)
			if plan = reconcile.PlanPod(in); len(test.state.Containers["app"].Uses) == 0 && slices.ContainsFunc(plan.Steps, func(s reconcile.Step) bool { return s.Verb == reconcile.StopContainer }) {
				t.Errorf("it counts as new:\n%s", plan)
			}
			give(all, pod.ConfigMap, "conf", map[string]pod.Value{"level": pod.PlainValue("3")})
			in = situation(p, all, plan.State, next)
			in.DigestKey = reconcile.DigestKey(test.key)
			plan = reconcile.PlanPod(in)
			if !slices.ContainsFunc(plan.Steps, func(s reconcile.Step) bool { return s.Verb == reconcile.StopContainer }) {
				t.Errorf("the next change is not seen:\n%s", plan)
			}
			give(all, pod.ConfigMap, "conf", map[string]pod.Value{"level": pod.PlainValue("2")})
			delete(all, pod.ObjectKey{Kind: pod.ConfigMap, Namespace: "ns", Name: "more"})
		})
	}
}

// What does not run is not restarted: a container that crashes waits as long as
// it would, and takes what there is then.
func TestRestartOnChangeOfWhatHasEnded(t *testing.T) {
	p, all := using("true"), world()
	state := remembered(p, all)
	give(all, pod.ConfigMap, "conf", map[string]pod.Value{"level": pod.PlainValue("2")})
	app := state.Containers["app"]
	app.Level, app.Hash = 2, p.Containers["app"]
	state.Containers["app"] = app
	in := situation(p, all, state, both)
	in.Learnt = map[string]reconcile.Learnt{"app-0": {Ended: start}}
	for i, c := range in.Observed {
		if c.Name == "app" {
			in.Observed[i].State, in.Observed[i].ExitCode, in.Observed[i].Started, in.Observed[i].Finished = runtime.Exited, 1, start, start
		}
	}
	plan := reconcile.PlanPod(in)
	if plan.Waiting["app"].Reason != reconcile.CrashLoopBackOff {
		t.Errorf("app does not wait:\n%s", plan)
	}
}

func TestRestartOnChangeIsGivenUp(t *testing.T) {
	p, all := using("true"), world()
	state := remembered(p, all)
	give(all, pod.ConfigMap, "conf", map[string]pod.Value{"level": pod.PlainValue("2")})
	plan := reconcile.PlanPod(situation(using("false"), all, state, both))
	if slices.ContainsFunc(plan.Steps, func(s reconcile.Step) bool { return s.Verb == reconcile.StopContainer }) {
		t.Errorf("the pod does not ask for it any more:\n%s", plan)
	}
}

// C104: what is remembered of a value says nothing without the key, and does not
// hold the value.
func TestDigestsOfValuesSayNothing(t *testing.T) {
	p := using("true")
	keyed := regexp.MustCompile(`[0-9a-f]{8}-`)
	digests := func(key string) string {
		in := situation(p, world(), reconcile.State{}, nil)
		in.DigestKey = reconcile.DigestKey(key)
		data, err := reconcile.EncodeState(reconcile.PlanPod(in).State)
		if err != nil {
			t.Fatal(err)
		}
		return keyed.ReplaceAllString(string(data), "")
	}
	one := digests("one")
	if !strings.Contains(one, "Secret ns/login") || strings.Contains(one, pin) {
		t.Errorf("remembered: %s", one)
	}
	if one == digests("two") {
		t.Error("the key has no part in it")
	}
	if one != digests("one") {
		t.Error("the same values give another digest")
	}
}
