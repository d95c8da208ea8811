package reconcile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/podkeeper/podkeeper/manifests/defaults"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// C023: what $(VAR), $$ and unfinished references become.
func TestExpand(t *testing.T) {
	vars := map[string]string{"URL": "http://db:80/", "LATE": "$(PORT)", "PORT": "80", "EMPTY": ""}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	for in, want := range map[string]string{
		"echo $(URL)|$(LATE)|$$(PORT)|$(NOPE)|$$$(PORT)|100%|$PORT|$(BAD": "echo http://db:80/|$(PORT)|$(PORT)|$(NOPE)|$80|100%|$PORT|$(BAD",
		"":           "",
		"$":          "$",
		"$$":         "$",
		"$$$":        "$$",
		"a$(EMPTY)b": "ab",
		"$()":        "$()",
		"$(A$(PORT)": "$(A$(PORT)",
		"$(PORT))":   "80)",
	} {
		if got := reconcile.Expand(in, lookup); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// TestCrashBackOff holds the numbers of the crash loop against a naive twin: a
// list of delays, walked one by one.
func TestCrashBackOff(t *testing.T) {
	twin := []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 300 * time.Second}
	rapid.Check(t, func(t *rapid.T) {
		level, naive := 0, -1
		for _, ran := range rapid.SliceOf(rapid.SampledFrom([]time.Duration{0, time.Second, 10*time.Minute - 1, 10 * time.Minute, time.Hour})).Draw(t, "runs") {
			level = reconcile.NextLevel(level, ran)
			naive++
			if ran >= 10*time.Minute {
				naive = 0
			}
			if got, want := reconcile.CrashDelay(level), twin[min(naive, len(twin)-1)]; got != want {
				t.Fatalf("delay %s, want %s", got, want)
			}
		}
	})
}

// A clock that jumps makes nobody wait longer than once (law 5's remembered
// times are only wall clock times).
func TestHappenedAt(t *testing.T) {
	now := time.Now()
	wall := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		finished time.Time
		watched  bool
		want     time.Time
	}{
		"seen to end: now, whatever the clocks say":     {wall.Add(-time.Hour), true, now},
		"ended a minute ago while the agent was down":   {wall.Add(-time.Minute), false, now.Add(-time.Minute)},
		"ended in the future, as a clock set back says": {wall.Add(time.Hour), false, now},
		"ended at an unknown time":                      {time.Time{}, false, now},
	} {
		if got := reconcile.HappenedAt(now, wall, c.finished, c.watched); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func quantities(cpu, memory string) v1.ResourceList {
	list := v1.ResourceList{}
	if cpu != "" {
		list[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

// C028: CPU values at the edges, requests and limits given alone, and limits of
// the pod as a whole.
func TestResources(t *testing.T) {
	for name, c := range map[string]struct {
		requests, limits v1.ResourceList
		want             runtime.Resources
		pod              *v1.ResourceRequirements
	}{
		"tiny":         {quantities("1m", ""), quantities("1m", ""), runtime.Resources{CPUShares: 2, CPUPeriod: 100000, CPUQuota: 1000}, nil},
		"request only": {quantities("250m", "32Mi"), nil, runtime.Resources{CPUShares: 256}, nil},
		"limit only":   {nil, quantities("500m", "64Mi"), runtime.Resources{CPUShares: 512, CPUPeriod: 100000, CPUQuota: 50000, Memory: 67108864}, nil},
		"none":         {nil, nil, runtime.Resources{CPUShares: 2}, nil},
		"a whole rack": {quantities("1000", ""), nil, runtime.Resources{CPUShares: 262144}, nil},
		"only the pod has limits": {nil, nil, runtime.Resources{CPUShares: 1024, CPUPeriod: 100000, CPUQuota: 100000, Memory: 64 << 20},
			&v1.ResourceRequirements{Limits: quantities("1", "64Mi")}},
		"one of its own wins": {nil, quantities("500m", ""), runtime.Resources{CPUShares: 512, CPUPeriod: 100000, CPUQuota: 50000, Memory: 64 << 20},
			&v1.ResourceRequirements{Limits: quantities("1", "64Mi")}},
		"requests of the pod are its own": {nil, nil, runtime.Resources{CPUShares: 2}, &v1.ResourceRequirements{Requests: quantities("1", "64Mi")}},
	} {
		p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: c.requests, Limits: c.limits}}}, Resources: c.pod}}
		defaults.Pod(p)
		if diff := cmp.Diff(c.want, reconcile.Resources(p, &p.Spec.Containers[0], reconcile.Node{}, "")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The node's limit of processes is each container's.
func TestProcessLimit(t *testing.T) {
	got := reconcile.Resources(&v1.Pod{}, &v1.Container{}, reconcile.Node{PodPIDs: 100}, "")
	if want := (runtime.Resources{CPUShares: 2, Pids: 100}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// C116: the kernel is told whom to kill first.
func TestOOMScoreAdj(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want int // of the container c
	}{
		"best effort":                      {`containers: [{name: c}]`, 1000},
		"guaranteed":                       {`containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}}]`, -997},
		"only limits":                      {`containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi}}}]`, -997},
		"burstable by 1Gi of 8":            {`containers: [{name: c, resources: {requests: {memory: 1Gi}}}]`, 875},
		"burstable by CPU alone":           {`containers: [{name: c, resources: {requests: {cpu: 1}}}]`, 999},
		"burstable by another":             {`containers: [{name: c}, {name: d, resources: {requests: {memory: 1Gi}}}]`, 999},
		"asks for all":                     {`containers: [{name: c, resources: {requests: {memory: 8Gi}}}]`, 3},
		"of the highest priority":          {`{priority: 2000001000, containers: [{name: c}]}`, -997},
		"critical to the node":             {`{priorityClassName: system-node-critical, containers: [{name: c}]}`, -997},
		"critical to the cluster alone":    {`{priorityClassName: system-cluster-critical, containers: [{name: c}]}`, 1000},
		"a sidecar, as the one it serves":  {`{initContainers: [{name: c, restartPolicy: Always}], containers: [{name: d, resources: {requests: {memory: 1Gi}}}, {name: e, resources: {requests: {memory: 2Gi}}}]}`, 875},
		"a sidecar that asks for more":     {`{initContainers: [{name: c, restartPolicy: Always, resources: {requests: {memory: 2Gi}}}], containers: [{name: d, resources: {requests: {memory: 1Gi}}}]}`, 750},
		"an init container that is none":   {`{initContainers: [{name: c}], containers: [{name: d, resources: {requests: {memory: 1Gi}}}]}`, 999},
		"a share of what the pod asks for": {`{resources: {requests: {memory: 4Gi}}, containers: [{name: c, resources: {requests: {memory: 1Gi}}}, {name: d, resources: {requests: {memory: 1Gi}}}]}`, 750},
		"guaranteed as a whole":            {`{resources: {limits: {cpu: 1, memory: 1Gi}}, containers: [{name: c}]}`, -997},
	} {
		var p v1.Pod
		if err := yaml.UnmarshalStrict([]byte(c.spec), &p.Spec); err != nil {
			t.Fatal(err)
		}
		defaults.Pod(&p)
		all := append(p.Spec.InitContainers, p.Spec.Containers...)
		for i := range all {
			if all[i].Name != "c" {
				continue
			}
			if got := reconcile.OOMScoreAdj(&p, &all[i], 8<<30); got != c.want {
				t.Errorf("%s: %d, want %d", name, got, c.want)
			}
		}
	}
}

func portPod(name string, ports ...v1.ContainerPort) *pod.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Ports: ports}}}}
	p.Namespace, p.Name = "default", name
	defaults.Pod(p)
	return &pod.Pod{Object: p}
}

// C118, C119: what a container's end is called.
func TestTerminationReasons(t *testing.T) {
	for name, c := range map[string]struct {
		c    runtime.Container
		want reconcile.Reason
	}{
		"killed for memory":                         {runtime.Container{State: runtime.Exited, ExitCode: 137, OOMKilled: true}, "OOMKilled"},
		"a child was, the main process ended later": {runtime.Container{State: runtime.Exited, ExitCode: 143, OOMKilled: true}, "Error"},
		"a child was, the main process succeeded":   {runtime.Container{State: runtime.Exited, ExitCode: 0, OOMKilled: true}, "Completed"},
		"killed by hand":                            {runtime.Container{State: runtime.Exited, ExitCode: 137}, "Error"},
		"a child was, and we had to kill the rest":  {runtime.Container{ID: "stopped", State: runtime.Exited, ExitCode: 137, OOMKilled: true}, "Error"},
		"could not start":                           {runtime.Container{State: runtime.Created, ExitCode: 127, Error: "no such file"}, "ContainerCannotRun"},
	} {
		c.c.Name = "c"
		p := portPod("p")
		was := reconcile.State{Containers: map[string]reconcile.ContainerState{"c": {Attempt: -1, Ended: -1, Stopped: reconcile.Stopped{ID: "stopped"}}}}
		status := reconcile.Status(reconcile.Plan{Pod: p, Finished: true}, []runtime.Container{c.c}, was.Fold([]runtime.Container{c.c}), nil, start)
		got := status.ContainerStatuses[0].State.Terminated
		if got == nil || got.Reason != string(c.want) || int(got.ExitCode) != c.c.ExitCode {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}
