package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
)

// probedPod has a container a with all probes, and b with none.
func probedPod() *pod.Pod {
	tcp := &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(80)}}}
	return &pod.Pod{Object: &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
		{Name: "a", Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 80}}, StartupProbe: tcp, LivenessProbe: tcp, ReadinessProbe: tcp},
		{Name: "b"},
	}}}}
}

// probedInput has both of its containers running.
func probedInput() reconcile.ProbeInput {
	sandbox := runtime.Container{ID: "s", State: runtime.Running, IPs: []string{"10.0.0.1", "fd00::1"}}
	sandbox.Identity = runtime.Identity{UID: "u", Name: runtime.SandboxName}
	in := reconcile.ProbeInput{
		Pod: probedPod(), UID: "u", HostIP: "192.0.2.1", Observed: []runtime.Container{sandbox},
		Known: make(map[string]reconcile.ProbeState), Began: map[string]time.Time{"a-0": start},
	}
	for _, name := range []string{"a", "b"} {
		c := runtime.Container{ID: name + "-0", State: runtime.Running}
		c.Identity = runtime.Identity{UID: "u", Name: name, Sandbox: sandbox.Ref()}
		in.Observed = append(in.Observed, c)
	}
	return in
}

func TestProbeTargets(t *testing.T) {
	find := func(in *reconcile.ProbeInput, id string) *runtime.Container {
		for i := range in.Observed {
			if in.Observed[i].ID == id {
				return &in.Observed[i]
			}
		}
		return nil
	}
	container := func(in *reconcile.ProbeInput) *v1.Container { return &in.Pod.Object.Spec.Containers[0] }
	known := func(s reconcile.ProbeState) func(*reconcile.ProbeInput) {
		return func(in *reconcile.ProbeInput) { in.Known["a-0"] = s }
	}
	stopping := func(in *reconcile.ProbeInput) {
		in.Wave = []reconcile.Step{{Verb: reconcile.StopContainer, ID: "a-0"}}
	}
	tests := map[string]struct {
		edit func(*reconcile.ProbeInput)
		// want is a line a target: id, address, kinds of probes, what is known.
		want string
	}{
		"a container that runs":              {func(*reconcile.ProbeInput) {}, "a-0 10.0.0.1 startup liveness readiness"},
		"what is known goes along":           {known(reconcile.ProbeState{Started: true, Ready: true}), "a-0 10.0.0.1 startup liveness readiness known-started known-ready"},
		"no pod is kept":                     {func(in *reconcile.ProbeInput) { in.Pod = nil }, ""},
		"another generation is kept":         {func(in *reconcile.ProbeInput) { in.UID = "v" }, ""},
		"the container has ended":            {func(in *reconcile.ProbeInput) { find(in, "a-0").State = runtime.Exited }, ""},
		"the sandbox has ended":              {func(in *reconcile.ProbeInput) { find(in, "s").State = runtime.Exited }, ""},
		"the container is in another one":    {func(in *reconcile.ProbeInput) { find(in, "a-0").Sandbox = runtime.SandboxRef{} }, ""},
		"the pod has no such container":      {func(in *reconcile.ProbeInput) { container(in).Name = "c" }, ""},
		"the probes were taken out":          {func(in *reconcile.ProbeInput) { in.Pod.Object.Spec.Containers = in.Pod.Object.Spec.Containers[1:] }, ""},
		"only one probe":                     {func(in *reconcile.ProbeInput) { container(in).StartupProbe, container(in).LivenessProbe = nil, nil }, "a-0 10.0.0.1 readiness"},
		"on the host's network":              {func(in *reconcile.ProbeInput) { find(in, "s").HostNetwork = true }, "a-0 192.0.2.1 startup liveness readiness"},
		"on that of a host without address":  {func(in *reconcile.ProbeInput) { find(in, "s").HostNetwork, in.HostIP = true, "" }, "a-0 127.0.0.1 startup liveness readiness"},
		"being stopped, it may still turn":   {func(in *reconcile.ProbeInput) { stopping(in); known(reconcile.ProbeState{Started: true})(in) }, "a-0 10.0.0.1 startup readiness known-started"},
		"being stopped before it started up": {stopping, ""},
		"being stopped, without a startup probe": {
			func(in *reconcile.ProbeInput) { stopping(in); container(in).StartupProbe = nil }, "a-0 10.0.0.1 readiness",
		},
		"its postStart hook runs": {
			func(in *reconcile.ProbeInput) {
				container(in).Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{}}
			}, "",
		},
		"its postStart hook is over": {
			func(in *reconcile.ProbeInput) {
				container(in).Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{}}
				in.State.Containers = map[string]reconcile.ContainerState{"a": {PostStarted: "a-0"}}
			}, "a-0 10.0.0.1 startup liveness readiness",
		},
		"another is being stopped": {
			func(in *reconcile.ProbeInput) { stopping(in); in.Wave[0].ID = "b-0" }, "a-0 10.0.0.1 startup liveness readiness",
		},
		"its liveness probe failed for good": {
			known(reconcile.ProbeState{Started: true, Unhealthy: reconcile.LivenessProbe}), "a-0 10.0.0.1 startup readiness known-started",
		},
		"its startup probe failed for good": {known(reconcile.ProbeState{Unhealthy: reconcile.StartupProbe}), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := probedInput()
			tt.edit(&in)
			var lines []string
			for _, target := range reconcile.ProbeTargets(in) {
				line := target.ContainerID + " " + target.Address
				for _, part := range []struct {
					there bool
					name  string
				}{
					{target.Startup != nil, "startup"}, {target.Liveness != nil, "liveness"}, {target.Readiness != nil, "readiness"},
					{target.Known.Started, "known-started"}, {target.Known.Ready, "known-ready"},
				} {
					if part.there {
						line += " " + part.name
					}
				}
				if !target.Began.Equal(start) || len(target.Ports) != 1 {
					t.Errorf("target %+v", target)
				}
				lines = append(lines, line)
			}
			if got := strings.Join(lines, "\n"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestProbeCommandsAreExpanded(t *testing.T) {
	in := probedInput()
	c := &in.Pod.Object.Spec.Containers[0]
	c.Env = []v1.EnvVar{{Name: "PORT", Value: "81"}, {Name: "SECRET", ValueFrom: &v1.EnvVarSource{}}}
	written := []string{"check", "$(PORT)", "$$(PORT)", "$(NONE)", "x$(SECRET)x"}
	c.LivenessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: written}}}
	got := reconcile.ProbeTargets(in)[0].Liveness.Exec.Command
	if d := cmp.Diff([]string{"check", "81", "$(PORT)", "$(NONE)", "xx"}, got); d != "" {
		t.Errorf("command (-want +got):\n%s", d)
	}
	if d := cmp.Diff("$(PORT)", c.LivenessProbe.Exec.Command[1]); d != "" {
		t.Errorf("the manifest's own (-want +got):\n%s", d)
	}
}

func TestWhatProbesComeTo(t *testing.T) {
	state := reconcile.ProbeState{}
	for _, step := range []struct {
		kind    probe.Kind
		outcome probe.Outcome
		want    reconcile.ProbeState
	}{
		{probe.Startup, probe.Success, reconcile.ProbeState{Started: true}},
		{probe.Readiness, probe.Success, reconcile.ProbeState{Started: true, Ready: true}},
		{probe.Readiness, probe.Failure, reconcile.ProbeState{Started: true}},
		{probe.Liveness, probe.Failure, reconcile.ProbeState{Started: true, Unhealthy: reconcile.LivenessProbe}},
	} {
		state = state.Fold(probe.Report{Kind: step.kind, Changed: true, Result: probe.Result{Outcome: step.outcome}})
		if d := cmp.Diff(step.want, state); d != "" {
			t.Errorf("after %s %s (-want +got):\n%s", step.kind, step.outcome, d)
		}
	}
	failed := reconcile.ProbeState{}.Fold(probe.Report{Kind: probe.Startup, Changed: true, Result: probe.Result{Outcome: probe.Failure}})
	if d := cmp.Diff(reconcile.ProbeState{Unhealthy: reconcile.StartupProbe}, failed); d != "" {
		t.Errorf("after a failed startup (-want +got):\n%s", d)
	}
}
