package reconcile_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// TestPodLifecyclePage holds sentences of the Kubernetes page "Pod Lifecycle" (and
// of "Sidecar Containers" and "Init Containers"), retold, each with its section.
// What is observed is "name state [exit code]"; what follows is the phase, then the
// conditions that are true.
func TestPodLifecyclePage(t *testing.T) {
	const (
		scheduled = " PodScheduled"
		network   = scheduled + " PodReadyToStartContainers"
		up        = network + " Initialized"
		ready     = up + " ContainersReady Ready"
	)
	const initAndSide = "  initContainers: [{name: side, image: i, restartPolicy: Always}, {name: init, image: i}]\n"
	app, two := "  containers: [{name: app, image: i}]\n", "  containers: [{name: app, image: i}, {name: b, image: i}]\n"
	for sentence, c := range map[string]struct {
		spec     string
		observed []string
		probes   reconcile.ProbeState
		want     string
	}{
		"Pod phase: pending is a pod of which not every container was set up": {
			two, []string{"POD running", "app running"}, reconcile.ProbeState{}, "Pending" + up},
		"Pod phase: running is one whose containers are made and of which one runs or is about to again": {
			two, []string{"POD running", "app running", "b exited 1"}, reconcile.ProbeState{}, "Running" + up},
		"Pod phase: succeeded is one whose containers all ended well, for good": {
			"  restartPolicy: OnFailure\n" + two, []string{"app exited 0", "b exited 0"}, reconcile.ProbeState{}, "Succeeded" + scheduled + " Initialized"},
		"Pod phase: failed is one whose containers all ended, one of them badly and for good": {
			"  restartPolicy: Never\n" + two, []string{"app exited 1", "b exited 0"}, reconcile.ProbeState{}, "Failed" + scheduled + " Initialized"},
		"Container restart policy: a policy of its own counts more than the pod's": {
			"  containers: [{name: app, image: i, restartPolicy: Never}]\n", []string{"app exited 1"}, reconcile.ProbeState{}, "Failed" + scheduled + " Initialized"},
		"Container restart rules: while all containers are restarted a condition says so": {
			"  containers: [{name: app, image: i, restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [1]}}]}, {name: b, image: i}]\n",
			[]string{"POD running", "app exited 1", "b running"}, reconcile.ProbeState{}, "Running" + up + " AllContainersRestarting"},
		"Container restart rules: another exit of the same container restarts nothing but it": {
			"  containers: [{name: app, image: i, restartPolicy: Always, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [2]}}]}, {name: b, image: i}]\n",
			[]string{"POD running", "app exited 1", "b running"}, reconcile.ProbeState{}, "Running" + up},
		"Pod network readiness: there is no sandbox yet": {
			app, nil, reconcile.ProbeState{}, "Pending" + scheduled + " Initialized"},
		"Pod network readiness: a pod with init containers is initialised after its sandbox": {
			initAndSide + app, []string{"POD running"}, reconcile.ProbeState{}, "Pending" + network},
		"Init containers: a pod is pending while they run": {
			initAndSide + app, []string{"POD running", "side running", "init running"}, reconcile.ProbeState{}, "Pending" + network},
		"Pod conditions: initialised is one whose init containers have succeeded": {
			initAndSide + app, []string{"POD running", "side running", "init exited 0", "app running"}, reconcile.ProbeState{}, "Running" + ready},
		"Init containers: with policy Never one that fails ends the pod": {
			"  restartPolicy: Never\n  initContainers: [{name: init, image: i}]\n" + app, []string{"init exited 1"}, reconcile.ProbeState{}, "Failed" + scheduled},
		"Jobs with sidecars: how one ends does not matter": {
			"  restartPolicy: OnFailure\n" + initAndSide + app, []string{"side exited 137", "init exited 0", "app exited 0"}, reconcile.ProbeState{}, "Succeeded" + scheduled + " Initialized"},
		"Probes: without a readiness probe a container that runs is ready": {
			app, []string{"POD running", "app running"}, reconcile.ProbeState{}, "Running" + ready},
		"Probes: before the first result a container is not ready": {
			"  containers: [{name: app, image: i, readinessProbe: {exec: {command: [x]}}}]\n", []string{"POD running", "app running"}, reconcile.ProbeState{Started: true}, "Running" + up},
		"Probes: until the startup probe succeeds a container has not started": {
			"  containers: [{name: app, image: i, startupProbe: {exec: {command: [x]}}}]\n", []string{"POD running", "app running"}, reconcile.ProbeState{Ready: true}, "Running" + up},
		"Probes: one that is ready makes the pod ready": {
			"  containers: [{name: app, image: i, readinessProbe: {exec: {command: [x]}}}]\n", []string{"POD running", "app running"}, reconcile.ProbeState{Started: true, Ready: true}, "Running" + ready},
		"Container states: one counts as running when its postStart hook is over": {
			"  containers: [{name: app, image: i, lifecycle: {postStart: {exec: {command: [x]}}}}]\n", []string{"POD running", "app running"}, reconcile.ProbeState{}, "Pending" + up},
	} {
		p := parsePod(t, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: u}\nspec:\n"+c.spec))
		in := reconcile.Input{
			Key: p.Key(), Desired: p, MayRemove: true, Now: start, Wall: start,
			Node: reconcile.Node{Name: "node", RootDir: "/root"}, Learnt: map[string]reconcile.Learnt{"app": {Probes: &c.probes}},
			Records: map[types.UID]reconcile.Record{"u": {State: reconcile.State{Key: p.Key(), Admitted: start}}},
		}
		for _, text := range c.observed {
			words := strings.Fields(text)
			o := runtime.Container{ID: words[0], State: runtime.State(words[1]), Start: "t0"}
			o.Identity = runtime.Identity{Key: p.Key(), UID: "u", Name: words[0], PodHash: p.Hash, ContainerHash: p.Containers[words[0]], Sandbox: runtime.SandboxRef{ID: "POD", Start: "t0"}}
			if len(words) > 2 && words[2] != "0" {
				o.ExitCode = 1
			}
			in.Observed = append(in.Observed, o)
		}
		plan := reconcile.PlanPod(in)
		status := reconcile.Status(plan, in.Observed, plan.State, nil, start)
		got := string(status.Phase)
		for _, condition := range status.Conditions {
			if condition.Status == v1.ConditionTrue {
				got += " " + string(condition.Type)
			}
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", sentence, got, c.want)
		}
	}
}
