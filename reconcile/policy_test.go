package reconcile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
)

func TestPolicy(t *testing.T) {
	none := reconcile.Sources{}
	closed := reconcile.Policy{
		NoPrivileged: true, HostNetwork: none, HostPID: none, HostIPC: none, Privileged: none, HostPath: none,
		Sysctls: reconcile.SafeSysctls(5, 10),
	}
	open := reconcile.Policy{Sysctls: append(reconcile.SafeSysctls(5, 10), "net.*", "kernel.msg*", "user.max_user_namespaces")}
	files := reconcile.Policy{HostNetwork: reconcile.Sources{pod.FileSource}, HostPath: reconcile.Sources{pod.HTTPSource, reconcile.AnySource}}
	everything := `
hostNetwork: true
hostPID: true
hostIPC: true
volumes: [{name: e, emptyDir: {}}, {name: d, hostPath: {path: /d}}]
initContainers: [{name: i, securityContext: {privileged: true}}]
containers: [{name: a, securityContext: {capabilities: {add: [CHOWN, net_raw, CAP_KILL, CAP_SYS_ADMIN]}}}, {name: p, securityContext: {procMount: Unmasked}}]
`
	sysctl := func(more string, names ...string) string {
		text := more + "\nsecurityContext: {sysctls: ["
		for _, name := range names {
			text += "{name: " + name + "},"
		}
		return text + "]}"
	}
	for name, tt := range map[string]struct {
		policy reconcile.Policy
		kind   pod.SourceKind
		spec   string
		want   []string
	}{
		"everything is open by default": {reconcile.Policy{}, pod.HTTPSource, everything, nil},
		"all that is closed is named, with its flag": {closed, pod.FileSource, everything, []string{
			"Forbidden: hostNetwork is not for pods from file (--host-network-sources)",
			"Forbidden: hostPID is not for pods from file (--host-pid-sources)",
			"Forbidden: hostIPC is not for pods from file (--host-ipc-sources)",
			"Forbidden: hostPath (volume d) is not for pods from file (--host-path-sources)",
			"Forbidden: privileged (container i) is not for any pod (--allow-privileged=false)",
			"Forbidden: privileged (container i) is not for pods from file (--privileged-sources)",
			"Forbidden: capability SYS_ADMIN (container a) is not for pods from file (--privileged-sources)",
			"Forbidden: procMount Unmasked (container p) is not for pods from file (--privileged-sources)",
		}},
		"what asks for nothing is admitted": {closed, pod.HTTPSource, `
volumes: [{name: e, emptyDir: {}}]
securityContext: {}
containers: [{name: a, securityContext: {privileged: false, procMount: Default, capabilities: {add: [MKNOD], drop: [ALL]}}}, {name: b}]`, nil},
		"a source that is listed may":          {files, pod.FileSource, everything, nil},
		"* lists all, beside others":           {files, pod.APISource, `volumes: [{name: d, hostPath: {path: /d}}]`, nil},
		"a source that is not listed may not":  {files, pod.HTTPSource, `hostNetwork: true`, []string{"Forbidden: hostNetwork is not for pods from http (--host-network-sources)"}},
		"safe sysctls are for all":             {closed, pod.HTTPSource, sysctl("", "net.ipv4.tcp_syncookies", "kernel/shm_rmid_forced", "net.ipv4.tcp_rmem"), nil},
		"others have to be allowed, each":      {closed, pod.FileSource, sysctl("", "net.core.somaxconn", "kernel.msgmax"), []string{`SysctlForbidden: forbidden sysctl: "net.core.somaxconn" not allowlisted (--allowed-unsafe-sysctls)`, `SysctlForbidden: forbidden sysctl: "kernel.msgmax" not allowlisted (--allowed-unsafe-sysctls)`}},
		"those that are allowed may":           {open, pod.FileSource, sysctl("", "net/core/somaxconn", "net/ipv4/conf/eth0.1/rp_filter", "kernel.msgmax"), nil},
		"a prefix is no word of its own":       {open, pod.FileSource, sysctl("", "kernel.sem"), []string{`SysctlForbidden: forbidden sysctl: "kernel.sem" not allowlisted (--allowed-unsafe-sysctls)`}},
		"the host's network is not the pod's":  {open, pod.FileSource, sysctl("hostNetwork: true", "net.core.somaxconn", "kernel.msgmax"), []string{`SysctlForbidden: forbidden sysctl: "net.core.somaxconn" not allowed with host Net enabled`}},
		"nor is the host's IPC":                {open, pod.FileSource, sysctl("hostIPC: true", "net.core.somaxconn", "kernel.shm_rmid_forced"), []string{`SysctlForbidden: forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled`}},
		"nor are the host's users":             {open, pod.FileSource, sysctl("", "user.max_user_namespaces"), []string{`SysctlForbidden: forbidden sysctl: "user.max_user_namespaces" not allowed with host User enabled`}},
		"a pod with users of its own has them": {open, pod.FileSource, sysctl("hostUsers: false", "user.max_user_namespaces"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pod.Pod{Object: &v1.Pod{}, Origin: pod.Origin{Source: pod.SourceID{Kind: tt.kind}}}
			if err := yaml.UnmarshalStrict([]byte(tt.spec), &p.Object.Spec); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range tt.policy.Forbids(p) {
				got = append(got, f.Waiting.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What belongs to a namespace only since some version of Linux is not safe before.
func TestSafeSysctls(t *testing.T) {
	for version, want := range map[[2]int]int{{0, 0}: 5, {3, 10}: 5, {3, 16}: 6, {4, 4}: 6, {4, 5}: 9, {4, 14}: 11, {4, 15}: 14, {6, 1}: 14} {
		if got := reconcile.SafeSysctls(version[0], version[1]); len(got) != want {
			t.Errorf("Linux %d.%d has %d safe ones, want %d: %v", version[0], version[1], len(got), want, got)
		}
	}
}

func TestCheckSysctl(t *testing.T) {
	for pattern, good := range map[string]bool{
		"net.*": true, "net/core/somaxconn": true, "kernel.msg*": true, "kernel.shm*": true, "kernel.sem": true, "fs.mqueue.*": true, "user.*": true,
		"net.ipv4.tcp_*": true, "net.core.somaxconn": true, "kernel.domainname": true,
		"": false, "*": false, "net": false, "kernel.*": false, "vm.swappiness": false, "fs.mqueue": false, "net.*.x": false, "Net.x": false,
		"net..x": false, "net.x*y": false, "kernel.sem*": true,
	} {
		if err := (reconcile.Policy{}).CheckSysctl(pattern); (err == nil) != good {
			t.Errorf("%q: %v, want it taken: %t", pattern, err, good)
		}
	}
}

// A pod that runs is not ended by what the agent's flags forbid now, and nothing
// is created for it any more; an edit that asks for what is forbidden leaves the
// version up that does not.
func TestPolicyHoldsFromTheNextCreate(t *testing.T) {
	hostNetwork := func(image string) string {
		return manifest("web", "", "{name: a, image: "+image+"}, {name: b, image: present:1}") + "  hostNetwork: true\n"
	}
	inRig(t, func(r *rig) {
		r.want(hostNetwork("present:1"))
		if got := phases(r.after(time.Second))["web"]; got != v1.PodRunning {
			t.Fatalf("the pod is %s, want it running", got)
		}
		r.stop()
		r.start(reconcile.Policy{HostNetwork: reconcile.Sources{pod.HTTPSource}})
		r.want(hostNetwork("present:1"))
		snap := r.after(time.Second)
		if got := snap.Pods[0].Object.Status; got.Phase != v1.PodRunning || got.Reason != "" {
			t.Errorf("under the new flag it is %s (%s), want it running", got.Phase, got.Reason)
		}
		r.want(hostNetwork("remote:1"))
		snap = r.after(time.Second)
		if got := snap.Pods[0].Object.Status; got.Phase != v1.PodRunning || got.Reason != string(reconcile.NotAllowed) || !got.ContainerStatuses[0].Ready {
			t.Errorf("edited it is %s (%s), want the old version running, and why not the new one", got.Phase, got.Reason)
		}
		for _, c := range r.engine.Containers() {
			if c.Identity.Name == "b" {
				r.engine.Destroy(c.ID)
			}
		}
		snap = r.after(time.Minute)
		for _, c := range snap.Pods[0].Object.Status.ContainerStatuses {
			if running := c.State.Running != nil; running != (c.Name == "a") {
				t.Errorf("container %s: %+v; want a running still, b not again", c.Name, c.State)
			} else if !running && (c.State.Waiting == nil || c.State.Waiting.Reason != string(reconcile.NotAllowed)) {
				t.Errorf("container %s waits as %+v", c.Name, c.State.Waiting)
			}
		}
		r.want()
		if snap = r.after(time.Minute); len(snap.Pods) != 0 {
			t.Errorf("it is wanted no more, and still there: %v", phases(snap))
		}
		r.want(hostNetwork("present:1"))
		snap = r.after(time.Minute)
		if got := snap.Pods[0].Object.Status; got.Phase != v1.PodPending || got.Reason != string(reconcile.NotAllowed) || len(r.engine.Containers()) != 0 {
			t.Errorf("made anew it is %s (%s) with %d containers, want none", got.Phase, got.Reason, len(r.engine.Containers()))
		}
	})
}

// A container that an edit makes privileged is not restarted as one.
func TestPolicyOfAnEditedContainer(t *testing.T) {
	in := readSituation(t, txtar.Parse([]byte(`
-- desired.yaml --
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: a, image: "busybox:stable"}]}
-- observed.yaml --
containers: [{name: POD, state: running}, {name: a, state: running}]
`)))
	want := *in.Desired
	want.Object = want.Object.DeepCopy()
	want.Object.Annotations[manifests.HashAnnotation] = "another"
	want.Object.Spec.Containers[0].SecurityContext = &v1.SecurityContext{Privileged: new(true)}
	want.Containers = manifests.ContainerHashes(want.Object)
	in.Desired, in.Policy = &want, reconcile.Policy{NoPrivileged: true}
	in.Refused = in.Policy.Forbids(&want)[0].Waiting
	plan := reconcile.PlanPod(in)
	if plan.Blocked != in.Refused || !plan.Settled() {
		t.Errorf("the plan is\n%s", plan)
	}
	in.Policy, in.Refused = reconcile.Policy{}, reconcile.Waiting{}
	if plan = reconcile.PlanPod(in); plan.Settled() {
		t.Errorf("where it is allowed, the plan is\n%s", plan)
	}
}
