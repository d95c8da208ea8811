package reconcile_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

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

// TestWhatEditsRestart: what is stopped for an edit of a field, by the class that
// the table of fields gives it.
func TestWhatEditsRestart(t *testing.T) {
	const base = `apiVersion: v1
kind: Pod
metadata: {name: web, uid: u, labels: {x: "1"}}
spec:
  hostname: h1
  terminationGracePeriodSeconds: 5
  volumes: [{name: v, emptyDir: {}}]
  initContainers:
  - {name: i, image: "i:1"}
  - {name: s, image: "s:1", restartPolicy: Always}
  containers:
  - {name: a, image: "a:1", command: [c1], env: [{name: E, value: e1}], workingDir: /w1, tty: false, terminationMessagePath: /m1, imagePullPolicy: IfNotPresent, livenessProbe: {exec: {command: [p1]}}, lifecycle: {preStop: {exec: {command: [h1]}}}}
  - {name: b, image: "b:1"}
`
	for edit, want := range map[string]string{
		"hostname: h1 > hostname: h2":                       "POD a b s",
		"emptyDir: {} > emptyDir: {medium: Memory}":         "POD a b s",
		`image: "i:1" > image: "i:2"`:                       "POD a b s",
		`image: "s:1" > image: "s:2"`:                       "s",
		`image: "a:1" > image: "a:2"`:                       "a",
		"command: [c1] > command: [c2]":                     "a",
		"value: e1 > value: e2":                             "a",
		"workingDir: /w1 > workingDir: /w2":                 "a",
		"tty: false > tty: true":                            "a",
		"Path: /m1 > Path: /m2":                             "a",
		"IfNotPresent > Never":                              "",
		"command: [p1] > command: [p2]":                     "",
		"command: [h1] > command: [h2]":                     "",
		`x: "1" > x: "2"`:                                   "",
		"Seconds: 5 > Seconds: 6":                           "",
		"spec: > spec:\n  activeDeadlineSeconds: 99":        "",
		`image: "b:1" > image: "b:1", restartPolicy: Never`: "",
	} {
		from, to, _ := strings.Cut(edit, " > ")
		before, after := parsePod(t, []byte(base)), parsePod(t, []byte(strings.Replace(base, from, to, 1)))
		in := reconcile.Input{
			Key: after.Key(), Desired: after, MayRemove: true, Now: start, Wall: start, Node: reconcile.Node{Name: "node", RootDir: "/root"},
			Records: map[types.UID]reconcile.Record{"u": {Pod: before, State: reconcile.State{Key: after.Key()}}},
		}
		for _, name := range []string{"POD", "a", "b", "s"} {
			o := runtime.Container{ID: name, State: runtime.Running, Start: "t0", Resources: runtime.Resources{CPUShares: 2}}
			o.Identity = runtime.Identity{Key: after.Key(), UID: "u", Name: name, PodHash: before.Hash, ContainerHash: before.Containers[name], Sandbox: runtime.SandboxRef{ID: "POD", Start: "t0"}}
			in.Observed = append(in.Observed, o)
		}
		var stopped []string
		for _, s := range reconcile.PlanPod(in).Steps {
			if s.Verb == reconcile.StopContainer {
				stopped = append(stopped, s.Container)
			}
		}
		slices.Sort(stopped)
		if got := strings.Join(stopped, " "); got != want {
			t.Errorf("%s: stops %q, want %q", edit, got, want)
		}
	}
}
