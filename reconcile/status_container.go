package reconcile

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/runtime"
)

// statusMaker is what the status of a container follows from.
type statusMaker struct {
	plan        Plan
	observed    []runtime.Container // by rising attempt
	state       State
	initialized bool
}

func (s statusMaker) container(m member) v1.ContainerStatus {
	remembered := s.state.container(m.Name)
	newest, found := s.newest(m.Name)
	status := v1.ContainerStatus{Name: m.Name, Image: m.Image, AllocatedResources: m.Resources.Requests}
	status.RestartCount = int32(max(0, remembered.Attempt))
	if found {
		status.ContainerID, status.ImageID = "docker://"+newest.ID, newest.ImageID
		status.RestartCount = int32(newest.Attempt)
	}
	status.State = s.containerState(m, newest, found)
	started := status.State.Running != nil && remembered.started(m, newest.ID)
	status.Started = &started
	status.Ready = started && remembered.ready(m, newest.ID)
	switch {
	case status.State.Terminated == nil:
		status.LastTerminationState = terminated(remembered.Last)
	case m.kind == initial:
		status.Ready = status.State.Terminated.ExitCode == 0
	}
	if status.State.Running != nil {
		status.Resources = m.Resources.DeepCopy()
	}
	return status
}

// newest returns the newest attempt that was started, or could not be.
func (s statusMaker) newest(name string) (newest runtime.Container, found bool) {
	for _, c := range s.observed {
		if c.Name == name && !(c.State == runtime.Created && !c.FailedStart()) {
			newest, found = c, true
		}
	}
	if newest.Attempt < s.state.container(name).Attempt && newest.State != runtime.Running {
		return runtime.Container{}, false // a newer one is gone
	}
	return newest, found
}

func (s statusMaker) containerState(m member, newest runtime.Container, found bool) v1.ContainerState {
	remembered := s.state.container(m.Name)
	last := remembered.Last
	waiting, waits := s.plan.Waiting[m.Name]
	switch {
	case found && newest.State == runtime.Running && remembered.runs(m, newest.ID):
		return v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(newest.Started)}}
	case waits:
	case found && newest.Ended():
		return terminated(last)
	case last != nil && (s.plan.Finished || m.kind == initial && s.initialized):
		return terminated(last)
	case m.kind == initial && s.initialized: // and nobody remembers how
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: string(Completed)}}
	default:
		waiting = Waiting{ContainerCreating, s.plan.Blocked.Message}
		if len(s.plan.Pod.Object.Spec.InitContainers) > 0 {
			waiting.Reason = PodInitializing
		}
		if s.plan.Blocked.Reason != "" {
			waiting.Reason = s.plan.Blocked.Reason
		}
	}
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: string(waiting.Reason), Message: waiting.Message}}
}

func terminated(t *Termination) v1.ContainerState {
	if t == nil {
		return v1.ContainerState{}
	}
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		ExitCode:    int32(t.ExitCode),
		Reason:      string(t.Reason),
		Message:     t.Message,
		StartedAt:   metav1.NewTime(t.Started),
		FinishedAt:  metav1.NewTime(t.Finished),
		ContainerID: "docker://" + t.ID,
	}}
}
