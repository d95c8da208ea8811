package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/server/dashboard"
)

// model is an agent of which the test says what it knows.
type model struct {
	// opened has each log that is read, to be written to.
	opened chan openLog
	done   chan string // what was done to pods

	mu      sync.Mutex
	away    bool
	state   server.State
	events  server.Events
	used    int
	changed chan struct{} // closed at the next change
}

// stage is a model, and a page that shows it.
type stage struct {
	*model
	url  string
	stop func()
}

type openLog struct {
	of  string
	how dashboard.LogOptions
	w   *io.PipeWriter
}

func newModel(pods ...server.Pod) *model {
	return &model{
		opened: make(chan openLog, 10), done: make(chan string, 10), changed: make(chan struct{}),
		state:  server.State{Revision: 1, Version: "v1", Ready: true, Online: true, NodeName: "vm", RootDir: "/r", Pods: pods},
		events: server.Events{Revision: 1},
	}
}

func (s *model) answers(actions bool) dashboard.Answers {
	a := dashboard.Answers{
		State: s.getState, Events: s.getEvents, Usage: s.usage, Log: s.log, Actions: []string{"restart", "stop", "start"},
		Line: func(p server.Pod) dashboard.Line {
			line := dashboard.Line{Status: p.Pod.Status.Reason, Tone: dashboard.Bad, Ready: "0/1", Restarts: int(p.Pod.Status.ContainerStatuses[0].RestartCount)}
			if p.Pod.Status.Phase == v1.PodRunning {
				line.Status, line.Tone, line.Ready = "Running", dashboard.Good, "1/1"
			}
			return line
		},
	}
	if actions {
		a.Act = func(_ context.Context, at pod.Key, action string) error {
			s.done <- action + " " + at.String()
			return nil
		}
	}
	return a
}

func newStage(t *testing.T, actions bool, pods ...server.Pod) *stage {
	t.Helper()
	s := &stage{model: newModel(pods...)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler, token := dashboard.New(netip.MustParseAddrPort(listener.Addr().String()), s.answers(actions))
	s.url = "http://" + listener.Addr().String() + "/#" + token
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler, slog.New(slog.DiscardHandler)) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// set changes what the agent knows.
func (s *model) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.state.Revision++
	s.events.Revision = s.state.Revision
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *model) happen(about server.Pod, reason, message string) {
	s.set(func() {
		e := v1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: about.Pod.Namespace, Name: fmt.Sprintf("e.%d", s.state.Revision)},
			InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: about.Pod.Namespace, Name: about.Pod.Name, FieldPath: "spec.containers{app}"},
			Type:           v1.EventTypeWarning, Reason: reason, Message: message, Count: 3,
			FirstTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)), LastTimestamp: metav1.Now(),
		}
		s.events.Items = append(s.events.Items, e)
	})
}

func (s *model) getState(ctx context.Context, after uint64) (server.State, error) {
	for {
		s.mu.Lock()
		state, changed, away := s.state, s.changed, s.away
		state.Pods = slices.Clone(state.Pods)
		s.mu.Unlock()
		switch {
		case away:
			return server.State{}, server.ErrNoAgent
		case state.Revision > after:
			return state, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state, ctx.Err()
		}
	}
}

func (s *model) getEvents(ctx context.Context, after uint64) (server.Events, error) {
	state, err := s.getState(ctx, after)
	s.mu.Lock()
	defer s.mu.Unlock()
	return server.Events{Revision: state.Revision, Items: slices.Clone(s.events.Items)}, err
}

// usage is more each time.
func (s *model) usage(context.Context) (*stats.Summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
	at := metav1.Now()
	cpu, memory, free := uint64(100e6*s.used), uint64(s.used)<<20, uint64(1)<<30
	found := &stats.Summary{Node: stats.NodeStats{
		CPU: &stats.CPUStats{Time: at, UsageNanoCores: &cpu}, Memory: &stats.MemoryStats{Time: at, WorkingSetBytes: &memory, AvailableBytes: &free},
		Fs: &stats.FsStats{AvailableBytes: &memory, CapacityBytes: &free},
	}}
	for _, p := range s.state.Pods {
		found.Pods = append(found.Pods, stats.PodStats{
			PodRef: stats.PodReference{Namespace: p.Pod.Namespace, Name: p.Pod.Name},
			CPU:    &stats.CPUStats{Time: at, UsageNanoCores: &cpu}, Memory: &stats.MemoryStats{Time: at, WorkingSetBytes: &memory},
		})
	}
	return found, nil
}

func (s *model) log(ctx context.Context, at pod.Key, container string, how dashboard.LogOptions) (io.ReadCloser, error) {
	if container != "app" {
		return nil, &server.StatusError{Code: 404, Message: "no container " + container}
	}
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	select {
	case s.opened <- openLog{at.String() + "/" + container, how, w}:
		return r, nil
	default:
		return nil, errors.New("nobody reads the logs of this test")
	}
}

// running is a pod that runs, well.
func running(name string) server.Pod {
	since := metav1.NewTime(time.Now().Add(-time.Hour))
	return server.Pod{
		Origin: pod.Origin{Name: "/m/" + name + ".yaml"}, Line: 7,
		Pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: since,
				Labels: map[string]string{"app": name}, Annotations: map[string]string{"secret": "annotated-secret"},
			},
			Spec: v1.PodSpec{
				Containers: []v1.Container{{
					Name: "app", Image: "busybox:stable", Command: []string{"sh", "-c", "secret-command"}, Args: []string{"secret-argument"},
					Env: []v1.EnvVar{
						{Name: "PASSWORD", Value: "secret-value"},
						{Name: "TOKEN", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{
							LocalObjectReference: v1.LocalObjectReference{Name: "credentials"}, Key: "token",
						}}},
					},
					Ports:     []v1.ContainerPort{{ContainerPort: 80, HostPort: 8080}},
					Resources: v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")}},
				}},
				Volumes: []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
			},
			Status: v1.PodStatus{
				Phase: v1.PodRunning, PodIP: "10.0.0.1", QOSClass: v1.PodQOSBurstable,
				Conditions:        []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}},
				ContainerStatuses: []v1.ContainerStatus{{Name: "app", Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: since}}}},
			},
		},
	}
}

// crashing is one that does not.
func crashing(name string) server.Pod {
	p := running(name)
	p.Pod.Status.Phase, p.Pod.Status.Reason, p.Pod.Status.Conditions = v1.PodPending, "CrashLoopBackOff", nil
	p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{{
		Name: "app", RestartCount: 4,
		State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting"}},
		LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: 3, Reason: "Error", FinishedAt: metav1.NewTime(time.Now().Add(-time.Minute)),
		}},
	}}
	return p
}
