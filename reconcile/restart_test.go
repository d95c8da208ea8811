package reconcile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// A rule decides where it applies, then the container's policy, then the pod's;
// an init container is not started again when it has done its work.
func TestRestartRules(t *testing.T) {
	const rules = `restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [3]}}, {action: Restart, exitCodes: {operator: NotIn, values: [0, 1, 2]}}]`
	for name, c := range map[string]struct {
		pod, container string
		again, not     []int
	}{
		"the pod's policy":                    {"Always", "", []int{0, 1}, nil},
		"that of a pod that runs to its end":  {"OnFailure", "", []int{1}, []int{0}},
		"that of a pod that runs once":        {"Never", "", nil, []int{0, 1}},
		"the container's own":                 {"Always", "restartPolicy: Never", nil, []int{0, 1}},
		"the container's own, the other way":  {"Never", "restartPolicy: OnFailure", []int{1}, []int{0}},
		"rules before the container's policy": {"Always", "restartPolicy: Never, " + rules, []int{3, 4, 42}, []int{0, 1, 2}},
		"a rule that restarts all":            {"Never", "restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [3]}}]", []int{3}, []int{0, 1}},
		"rules, and a policy where none is":   {"Never", "restartPolicy: OnFailure, " + rules, []int{1, 2, 3}, []int{0}},
	} {
		p := parsePod(t, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  restartPolicy: "+c.pod+
			"\n  initContainers: [{name: init, image: i, "+c.container+"}]\n  containers: [{name: app, image: i, "+c.container+"}]\n"))
		for want, codes := range map[bool][]int{true: c.again, false: c.not} {
			for _, code := range codes {
				if got := reconcile.Restarts(p.Object, "app", code); got != want {
					t.Errorf("%s: restarted after exit code %d: %t, want %t", name, code, got, want)
				}
				if got := reconcile.Restarts(p.Object, "init", code); got != (want && code != 0) {
					t.Errorf("%s: init container restarted after exit code %d: %t, want %t", name, code, got, want && code != 0)
				}
			}
		}
	}
}

// What has done its work as all containers are restarted is in no crash loop, however
// often it did; what asked for it, or was to be tried again, is.
func TestRestartOfAllAfterWork(t *testing.T) {
	in := readSituation(t, txtar.Parse([]byte(`
-- desired.yaml --
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: OnFailure
  initContainers: [{name: init, image: "busybox:stable"}]
  containers:
  - {name: app, image: "busybox:stable", restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [0]}}]}
  - {name: work, image: "busybox:stable"}
  - {name: once, image: "busybox:stable", restartPolicy: Never}
  - {name: bad, image: "busybox:stable"}
-- observed.yaml --
containers:
- {name: POD, attempt: 0, state: running}
- {name: init, attempt: 4, state: exited, exit: 0, ran: 1s, ago: 9s}
- {name: work, attempt: 4, state: exited, exit: 0, ran: 1s, ago: 8s}
- {name: once, attempt: 4, state: exited, exit: 1, ran: 1s, ago: 8s}
- {name: bad, attempt: 4, state: exited, exit: 1, ran: 1s, ago: 8s}
- {name: app, attempt: 4, state: exited, exit: 0, ran: 3s, ago: 4s}
`)))
	got := make(map[string]int)
	for name, c := range reconcile.PlanPod(in).State.Containers {
		got[name] = c.Level
	}
	if diff := cmp.Diff(map[string]int{"init": 0, "work": 0, "once": 0, "bad": 5, "app": 5}, got); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}

// An attempt that a restart of all ended is none of a crash loop, but if it ran for
// long enough, it ends one.
func TestRestartOfAllEndsCrashLoops(t *testing.T) {
	for ran, want := range map[time.Duration]int{10*time.Minute - 1: 4, 10 * time.Minute: 0} {
		c := runtime.Container{ID: "id", State: runtime.Exited, ExitCode: 143, Started: start, Finished: start.Add(ran)}
		c.Name, c.Attempt, c.ContainerHash = "side", 5, pod.Hash{Version: 1, Digest: "a"}
		state := reconcile.State{Containers: map[string]reconcile.ContainerState{
			"side": {Attempt: 5, Ended: 4, From: 6, Level: 4, Hash: c.ContainerHash, Last: &reconcile.Termination{Attempt: 4}},
		}}
		if got := state.Fold([]runtime.Container{c}).Containers["side"].Level; got != want {
			t.Errorf("after %s: level %d, want %d", ran, got, want)
		}
	}
}

// The condition of a pod that has ended says why it is not being restarted.
func TestRestartConditionOfAnEndedPod(t *testing.T) {
	const rule = "restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [88]}}]"
	p := parsePod(t, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: app, image: i, restartPolicy: Never, "+rule+"}]}\n"))
	for code, want := range map[int]string{0: "PodCompleted", 1: "PodFailed"} {
		app := runtime.Container{ID: "id", State: runtime.Exited, ExitCode: code}
		app.Name = "app"
		observed := []runtime.Container{app}
		status := reconcile.Status(reconcile.Plan{Pod: p, Finished: true}, observed, reconcile.State{}.Fold(observed), nil, start)
		got := status.Conditions[len(status.Conditions)-1]
		got.LastTransitionTime = metav1.Time{}
		if diff := cmp.Diff(v1.PodCondition{Type: v1.AllContainersRestarting, Status: v1.ConditionFalse, Reason: want}, got); diff != "" {
			t.Errorf("exit code %d (-want +got):\n%s", code, diff)
		}
	}
}
