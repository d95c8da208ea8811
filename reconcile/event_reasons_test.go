package reconcile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// What a pod or a container waits for is told by the reason that people look for, once.
func TestWhatIsToldOfAWait(t *testing.T) {
	key := pod.Key{Namespace: "default", Name: "web-n"}
	one := func(w reconcile.Waiting) reconcile.Plan {
		return reconcile.Plan{Key: key, UID: "u", Waiting: map[string]reconcile.Waiting{"c": w}}
	}
	whole := func(w reconcile.Waiting) reconcile.Plan { return reconcile.Plan{Key: key, UID: "u", Blocked: w} }
	for name, c := range map[string]struct {
		plan reconcile.Plan
		want string
	}{
		"an image cannot be pulled":        {one(reconcile.Waiting{Reason: reconcile.ErrImagePull, Message: "no such tag"}), "Warning Failed c Failed to pull image: no such tag"},
		"and is not tried again yet":       {one(reconcile.Waiting{Reason: reconcile.ImagePullBackOff, Message: "back-off pulling x"}), "Warning BackOff c Back-off pulling x"},
		"an image may not be pulled":       {one(reconcile.Waiting{Reason: reconcile.ErrImageNeverPull, Message: "it is not here"}), "Warning ErrImageNeverPull c It is not here"},
		"an image's name is none":          {one(reconcile.Waiting{Reason: reconcile.InvalidImageName, Message: "A:"}), "Warning InspectFailed c Failed to apply default image tag: A:"},
		"a container cannot be made":       {one(reconcile.Waiting{Reason: reconcile.CreateContainerError, Message: "no"}), "Warning Failed c Error: no"},
		"what it refers to is not there":   {one(reconcile.Waiting{Reason: reconcile.CreateContainerConfigError, Message: "no"}), "Warning Failed c Error: no"},
		"a container cannot be started":    {one(reconcile.Waiting{Reason: reconcile.RunContainerError, Message: "no"}), "Warning Failed c Error: no"},
		"a container cannot be ended":      {one(reconcile.Waiting{Reason: reconcile.FailedSync, Message: "no"}), "Warning FailedSync c Error syncing pod: no"},
		"it crashes":                       {one(reconcile.Waiting{Reason: reconcile.CrashLoopBackOff}), "Warning BackOff c Back-off restarting failed container c in pod web-n_default(u)"},
		"it is only its turn":              {one(reconcile.Waiting{Reason: reconcile.PodInitializing}), ""},
		"a sandbox cannot be made":         {whole(reconcile.Waiting{Reason: reconcile.FailedCreatePodSandBox, Message: "no"}), "Warning FailedCreatePodSandBox  Failed to create pod sandbox: no"},
		"the network of pods is not there": {whole(reconcile.Waiting{Reason: reconcile.NetworkNotReady, Message: "network is not ready"}), "Warning NetworkNotReady  network is not ready"},
		"a volume cannot be had":           {whole(reconcile.Waiting{Reason: reconcile.FailedMount, Message: "no"}), "Warning FailedMount  no"},
		"the node does not have room":      {whole(reconcile.Waiting{Reason: "OutOfcpu", Message: "1 of 2"}), "Warning OutOfcpu  1 of 2"},
		"a port is taken":                  {whole(reconcile.Waiting{Reason: reconcile.NodePorts, Message: "80 is taken"}), "Warning NodePorts  80 is taken"},
		"the node has other labels":        {whole(reconcile.Waiting{Reason: reconcile.NodeAffinity, Message: "no"}), "Warning NodeAffinity  no"},
		"it is of another system":          {whole(reconcile.Waiting{Reason: reconcile.PodOSNotSupported, Message: "no"}), "Warning PodOSNotSupported  no"},
		"a sysctl is not allowed":          {whole(reconcile.Waiting{Reason: reconcile.SysctlForbidden, Message: "no"}), "Warning SysctlForbidden  no"},
		"a profile is not loaded":          {whole(reconcile.Waiting{Reason: reconcile.AppArmor, Message: "no"}), "Warning AppArmor  no"},
		"the machine goes down":            {whole(reconcile.Waiting{Reason: reconcile.NodeShutdown, Message: "no"}), "Warning NodeShutdown  no"},
		"it may not run for longer":        {reconcile.Plan{Key: key, UID: "u", State: reconcile.State{End: reconcile.End{Reason: reconcile.DeadlineExceeded, Message: "too long"}}}, "Normal DeadlineExceeded  too long"},
		"its CPUs cannot be found":         {whole(reconcile.Waiting{Reason: reconcile.UnexpectedAdmissionError, Message: "no"}), "Warning UnexpectedAdmissionError  no"},
		"who evicts it has told of that":   {whole(reconcile.Waiting{Reason: reconcile.Evicted, Message: "no"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, spelled(reconcile.WaitEvents(reconcile.Plan{}, c.plan))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := reconcile.WaitEvents(c.plan, c.plan); again != nil {
				t.Errorf("it is told again: %+v", again)
			}
		})
	}
}

// What is found of a pod that runs is told by the reason that people look for.
func TestWhatIsToldOfAStepAndAProbe(t *testing.T) {
	key := pod.Key{Namespace: "default", Name: "web-n"}
	stop := reconcile.Step{Verb: reconcile.StopContainer, Pod: key, Container: runtime.SandboxName, Reason: reconcile.SandboxChanged}
	if got, want := spelled(reconcile.TakenEvents(stop)), "Normal SandboxChanged  Pod sandbox changed, it will be killed and re-created."; got != want {
		t.Errorf("of a sandbox that is another: %q, want %q", got, want)
	}
	stop.Reason = reconcile.Removed
	if got := spelled(reconcile.TakenEvents(stop)); got != "" {
		t.Errorf("of a sandbox that goes with its pod: %q", got)
	}
	found := reconcile.Complaint{Container: "c", Message: "Liveness probe warning: Probe terminated redirects"}
	if got, want := spelled([]pod.Event{reconcile.ProbeEvent(key, "u", found, true)}), "Warning ProbeWarning c "+found.Message; got != want {
		t.Errorf("of a probe that is led elsewhere: %q, want %q", got, want)
	}
	if got, want := spelled([]pod.Event{reconcile.ProbeEvent(key, "u", found, false)}), "Warning Unhealthy c "+found.Message; got != want {
		t.Errorf("of a probe that fails: %q, want %q", got, want)
	}
}

func spelled(list []pod.Event) string {
	var texts []string
	for _, e := range list {
		texts = append(texts, string(e.Type)+" "+e.Reason+" "+e.Container+" "+e.Message)
	}
	return strings.Join(texts, "\n")
}
