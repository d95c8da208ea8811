package main

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/server"
)

func running(ready bool) v1.ContainerStatus {
	return v1.ContainerStatus{Ready: ready, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
}

func waiting(reason string) v1.ContainerStatus {
	return v1.ContainerStatus{State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}}
}

func ended(code int32, reason string) v1.ContainerStatus {
	return v1.ContainerStatus{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}
}

func called(name string, s v1.ContainerStatus) v1.ContainerStatus {
	s.Name = name
	return s
}

// The words are those that kubectl prints for the same status.
func TestPodWord(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	yes := true
	initPod := func(p *server.Pod, statuses ...v1.ContainerStatus) {
		p.Pod.Spec.InitContainers = []v1.Container{{Name: "side", RestartPolicy: &always}, {Name: "init"}}
		p.Pod.Status.InitContainerStatuses = statuses
		p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{waiting("PodInitializing")}
		p.Pod.Status.Phase = v1.PodPending
	}
	sidecarUp := called("side", running(true))
	sidecarUp.Started = &yes
	// Each changes a pod that runs with one container that is ready.
	for name, test := range map[string]struct {
		change func(*server.Pod)
		want   string
	}{
		"it runs": {func(*server.Pod) {}, "Running"},
		"the phase, where no container says more": {func(p *server.Pod) {
			p.Pod.Status = v1.PodStatus{Phase: v1.PodPending}
		}, "Pending"},
		"nothing is known": {func(p *server.Pod) { p.Pod.Status = v1.PodStatus{} }, "Unknown"},
		"the pod's own reason": {func(p *server.Pod) {
			p.Pod.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted"}
		}, "Evicted"},
		"a container's reason is nearer than the pod's": {func(p *server.Pod) {
			p.Pod.Status.Reason = "NodePorts"
			p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{waiting("CrashLoopBackOff")}
		}, "CrashLoopBackOff"},
		"the old version runs while the new one waits for a port": {func(p *server.Pod) {
			p.Pod.Status.Reason = "NodePorts"
		}, "NodePorts"},
		"the first container that waits has the word": {func(p *server.Pod) {
			p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{running(true), waiting("ErrImagePull"), waiting("CrashLoopBackOff")}
		}, "ErrImagePull"},
		"an end without a reason": {func(p *server.Pod) {
			p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{ended(2, "")}
		}, "ExitCode:2"},
		"an end by a signal": {func(p *server.Pod) {
			s := ended(137, "")
			s.State.Terminated.Signal = 9
			p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{s}
		}, "Signal:9"},
		"one has completed, the other runs, the pod is ready": {func(p *server.Pod) {
			p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{ended(0, "Completed"), running(true)}
			p.Pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		}, "Running"},
		"one has completed, the other runs, the pod is not ready": {func(p *server.Pod) {
			p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{ended(0, "Completed"), running(true)}
		}, "NotReady"},
		"all have completed": {func(p *server.Pod) {
			p.Pod.Status.Phase = v1.PodSucceeded
			p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{ended(0, "Completed")}
		}, "Completed"},
		"it is being removed":     {func(p *server.Pod) { p.Removing = true }, "Terminating"},
		"it is marked as deleted": {func(p *server.Pod) { p.Pod.DeletionTimestamp = &metav1.Time{} }, "Terminating"},
		"it has ended and is being removed": {func(p *server.Pod) {
			p.Removing = true
			p.Pod.Status.Phase = v1.PodSucceeded
			p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{ended(0, "Completed")}
		}, "Completed"},
		"a sidecar runs and an init container has its turn": {func(p *server.Pod) {
			initPod(p, sidecarUp, called("init", running(false)))
		}, "Init:1/2"},
		"an init container fails": {func(p *server.Pod) {
			initPod(p, sidecarUp, called("init", ended(1, "Error")))
		}, "Init:Error"},
		"an init container waits": {func(p *server.Pod) {
			initPod(p, called("side", waiting("ErrImagePull")), called("init", waiting("PodInitializing")))
		}, "Init:ErrImagePull"},
		"initialization is over": {func(p *server.Pod) {
			initPod(p, sidecarUp, called("init", ended(0, "Completed")))
		}, "PodInitializing"},
	} {
		t.Run(name, func(t *testing.T) {
			p := server.Pod{Pod: &v1.Pod{Status: v1.PodStatus{
				Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{running(true)},
			}}}
			test.change(&p)
			if got := podWord(p); got != test.want {
				t.Errorf("podWord = %q, want %q", got, test.want)
			}
		})
	}
}

// Sidecars count as containers that are to be ready, other init containers do not.
func TestReadinessAndRestarts(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	p := &v1.Pod{}
	p.Spec.InitContainers = []v1.Container{{Name: "side", RestartPolicy: &always}, {Name: "init"}}
	p.Spec.Containers = []v1.Container{{Name: "app"}}
	side, init, app := called("side", running(true)), called("init", ended(0, "Completed")), called("app", running(false))
	side.RestartCount, init.RestartCount, app.RestartCount = 1, 2, 4
	p.Status.InitContainerStatuses = []v1.ContainerStatus{side, init}
	p.Status.ContainerStatuses = []v1.ContainerStatus{app}
	if got := readiness(p); got != "1/2" {
		t.Errorf("readiness %s, want 1/2", got)
	}
	for initialized, want := range map[v1.ConditionStatus]string{v1.ConditionFalse: "3", v1.ConditionTrue: "5"} {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodInitialized, Status: initialized}}
		if got := restarts(p, time.Time{}); got != want {
			t.Errorf("initialized %s: %s restarts, want %s", initialized, got, want)
		}
	}
}
