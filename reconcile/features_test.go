package reconcile_test

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// What a pod asks for and the machine lacks has a reason; a machine that has it
// lets the same pod run.
func TestLacking(t *testing.T) {
	everything := runtime.Features{RecursiveReadOnly: true, ImageMounts: true, OwnUsers: true, AppArmor: true, SELinux: true, Seccomp: true, Handlers: []string{"nvidia"}}
	for name, test := range map[string]struct {
		pod    string
		lacks  reconcile.Reason
		always bool // on each machine
	}{
		"nothing special":        {"containers: [{name: a, securityContext: {runAsUser: 5}, volumeMounts: [{name: v, readOnly: true, recursiveReadOnly: IfPossible}]}]", "", false},
		"own users":              {"hostUsers: false", "PodFeatureUnsupported", false},
		"a runtime":              {"runtimeClassName: nvidia", "PodFeatureUnsupported", false},
		"another runtime":        {"runtimeClassName: kata", "PodFeatureUnsupported", true},
		"the host's users":       {"hostUsers: true", "", false},
		"an image volume":        {"volumes: [{name: v, image: {reference: data:1}}]", "PodFeatureUnsupported", false},
		"recursively read-only":  {"containers: [{name: a, volumeMounts: [{name: v, readOnly: true, recursiveReadOnly: Enabled}]}]", "PodFeatureUnsupported", false},
		"AppArmor of the pod":    {"securityContext: {appArmorProfile: {type: RuntimeDefault}}, containers: [{name: a}]", "AppArmor", false},
		"AppArmor of a sidecar":  {"initContainers: [{name: a, restartPolicy: Always, securityContext: {appArmorProfile: {type: Localhost, localhostProfile: p}}}]", "AppArmor", false},
		"no AppArmor":            {"containers: [{name: a, securityContext: {appArmorProfile: {type: Unconfined}}}]", "", false},
		"SELinux":                {"containers: [{name: a, securityContext: {seLinuxOptions: {level: s0}}}]", "PodFeatureUnsupported", false},
		"no SELinux":             {"containers: [{name: a, securityContext: {seLinuxOptions: {}}}]", "", false},
		"seccomp":                {"containers: [{name: a, securityContext: {seccompProfile: {type: RuntimeDefault}}}]", "PodFeatureUnsupported", false},
		"no seccomp":             {"containers: [{name: a, securityContext: {seccompProfile: {type: Unconfined}}}]", "", false},
		"SCTP on the host":       {"containers: [{name: a, ports: [{containerPort: 9, hostPort: 9, protocol: SCTP}]}]", "PodFeatureUnsupported", false},
		"SCTP in the pod":        {"containers: [{name: a, ports: [{containerPort: 9, protocol: SCTP}]}]", "", false},
		"SCTP of the host":       {"hostNetwork: true, containers: [{name: a, ports: [{containerPort: 9, hostPort: 9, protocol: SCTP}]}]", "", false},
		"strict groups":          {"securityContext: {supplementalGroupsPolicy: Strict, runAsUser: 5}, containers: [{name: a}]", "SupplementalGroupsPolicyNotSupported", true},
		"strict groups, a group": {"securityContext: {supplementalGroupsPolicy: Strict, runAsGroup: 5}, containers: [{name: a}, {name: b, securityContext: {runAsGroup: 6}}]", "", false},
		"merged groups":          {"securityContext: {supplementalGroupsPolicy: Merge}, containers: [{name: a}]", "", false},
	} {
		var p v1.Pod
		if err := yaml.UnmarshalStrict([]byte("spec: {"+test.pod+"}"), &p); err != nil {
			t.Fatal(err)
		}
		if got := reconcile.Lacking(&p, runtime.Features{}, reconcile.Node{}); got.Reason != test.lacks || (got.Message == "") != (test.lacks == "") {
			t.Errorf("%s, bare machine: %s, want %q", name, got, test.lacks)
		}
		want := reconcile.Reason("")
		if test.always {
			want = test.lacks
		}
		if got := reconcile.Lacking(&p, everything, reconcile.Node{SCTP: true}); got.Reason != want {
			t.Errorf("%s, full machine: %s, want %q", name, got, want)
		}
	}
}

// Nothing is made for a pod that needs what the engine lacks; another engine in
// its place, and it runs. An edit that needs it leaves the pod as it runs.
func TestEngineThatLacksAFeature(t *testing.T) {
	inRig(t, func(r *rig) {
		const profile = "  securityContext: {seccompProfile: {type: RuntimeDefault}}\n"
		plain := manifest("runs", "", "{name: c, image: present:1}")
		r.want(manifest("a", "", "{name: c, image: present:1}")+profile, plain)
		snap := r.after(time.Minute)
		if got := phases(snap); got["a"] != v1.PodPending || got["runs"] != v1.PodRunning {
			t.Fatalf("the pods are %v", got)
		}
		r.want(manifest("a", "", "{name: c, image: present:1}")+profile, plain+profile)
		snap = r.after(time.Minute)
		for _, p := range snap.Pods {
			if p.Plan.Blocked.Reason != reconcile.PodFeatureUnsupported {
				t.Errorf("%s waits for %q", p.Plan.Key, p.Plan.Blocked)
			}
		}
		if got := len(r.engine.Containers()); got != 2 {
			t.Errorf("the engine has %d containers, want those of the pod that runs", got)
		}
		r.engine.Down(true)
		r.engine.SetFeatures(runtime.Features{Seccomp: true})
		r.engine.Up()
		if got := phases(r.after(time.Minute)); got["a"] != v1.PodRunning || got["runs"] != v1.PodRunning {
			t.Errorf("with another engine the pods are %v", got)
		}
		if got := len(r.engine.Containers()); got != 4 {
			t.Errorf("the engine has %d containers, want 4", got)
		}
	})
}

// What an engine can do costs it time to say: it is asked where a pod needs to know,
// from then on each time that another may have come, and not before.
func TestAnEngineIsAskedOnlyForAPodThatNeedsToKnow(t *testing.T) {
	inRig(t, func(r *rig) {
		const profile = "  securityContext: {seccompProfile: {type: RuntimeDefault}}\n"
		asked := func(when string, want int64) {
			r.t.Helper()
			r.after(time.Minute)
			if got := r.asked.Load(); got != want {
				t.Errorf("%s the engine was asked %d times, want %d", when, got, want)
			}
		}
		back := func() { r.engine.Down(true); r.engine.Up() }
		r.engine.SetFeatures(runtime.Features{Seccomp: true})
		plain := manifest("plain", "", "{name: c, image: present:1}")
		r.want(plain)
		asked("for a plain pod", 0)
		back()
		asked("back again", 0)
		r.want(plain, manifest("a", "", "{name: c, image: present:1}")+profile)
		asked("for a profile", 1)
		r.want(plain, manifest("a", "", "{name: c, image: present:1}")+profile, manifest("b", "", "{name: c, image: present:1}")+profile)
		asked("for another", 1)
		back()
		asked("back again", 2)
	})
}

// A version that goes on since its edit is refused needs to know as well.
func TestAnEngineIsAskedForTheFormerVersion(t *testing.T) {
	inRig(t, func(r *rig) {
		const profile = "  securityContext: {seccompProfile: {type: RuntimeDefault}}\n"
		r.engine.SetFeatures(runtime.Features{Seccomp: true})
		holder := manifest("holder", "", "{name: c, image: present:1, "+port+"80}]}")
		r.want(holder, manifest("a", "", "{name: c, image: present:1, "+port+"81}]}")+profile)
		r.after(time.Minute)
		r.stop()
		r.start(reconcile.Policy{})
		r.want(holder, manifest("a", "", "{name: c, image: present:1, "+port+"80}]}"))
		r.after(time.Minute)
		for _, c := range r.engine.Containers() {
			if c.Key.Name == "a-node" && !c.IsSandbox() {
				r.engine.Kill(c.ID)
			}
		}
		r.after(time.Minute)
		if !slices.ContainsFunc(r.engine.Containers(), func(c fake.View) bool {
			return c.Key.Name == "a-node" && c.Attempt == 1 && !c.IsSandbox() && c.State == runtime.Running
		}) {
			t.Error("the former version was not restarted")
		}
	})
}
