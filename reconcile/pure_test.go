package reconcile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/podkeeper/podkeeper/manifests"
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

// C028: CPU values at the edges, and requests and limits given alone.
func TestResources(t *testing.T) {
	for name, c := range map[string]struct {
		requests, limits v1.ResourceList
		want             runtime.Resources
	}{
		"tiny":         {quantities("1m", ""), quantities("1m", ""), runtime.Resources{CPUShares: 2, CPUPeriod: 100000, CPUQuota: 1000}},
		"request only": {quantities("250m", "32Mi"), nil, runtime.Resources{CPUShares: 256}},
		"limit only":   {nil, quantities("500m", "64Mi"), runtime.Resources{CPUShares: 512, CPUPeriod: 100000, CPUQuota: 50000, Memory: 67108864}},
		"none":         {nil, nil, runtime.Resources{CPUShares: 2}},
		"a whole rack": {quantities("1000", ""), nil, runtime.Resources{CPUShares: 262144}},
	} {
		p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: c.requests, Limits: c.limits}}}}}
		defaults.Pod(p)
		if diff := cmp.Diff(c.want, reconcile.Resources(&p.Spec.Containers[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// C116: the kernel is told whom to kill first.
func TestOOMScoreAdj(t *testing.T) {
	const memory = 8 << 30
	for name, c := range map[string]struct {
		requests, limits v1.ResourceList
		priority         int32
		class            v1.PodQOSClass
		want             int
	}{
		"best effort":            {nil, nil, 0, v1.PodQOSBestEffort, 1000},
		"guaranteed":             {quantities("1", "1Gi"), quantities("1", "1Gi"), 0, v1.PodQOSGuaranteed, -997},
		"only limits":            {nil, quantities("1", "1Gi"), 0, v1.PodQOSGuaranteed, -997},
		"burstable by 1Gi of 8":  {quantities("", "1Gi"), nil, 0, v1.PodQOSBurstable, 875},
		"burstable by CPU alone": {quantities("1", ""), nil, 0, v1.PodQOSBurstable, 999},
		"asks for all":           {quantities("", "8Gi"), nil, 0, v1.PodQOSBurstable, 3},
		"critical":               {nil, nil, 2000001000, v1.PodQOSBestEffort, -997},
	} {
		p := &v1.Pod{Spec: v1.PodSpec{Priority: &c.priority, Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: c.requests, Limits: c.limits}}}}}
		defaults.Pod(p)
		if got := manifests.QOSClass(p); got != c.class {
			t.Errorf("%s: class %s, want %s", name, got, c.class)
		}
		if got := reconcile.OOMScoreAdj(p, &p.Spec.Containers[0], memory); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
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
		"could not start":                           {runtime.Container{State: runtime.Created, ExitCode: 127, Error: "no such file"}, "ContainerCannotRun"},
	} {
		c.c.Name, c.c.ID = "c", "id"
		p := portPod("p")
		status := reconcile.Status(reconcile.Plan{Pod: p, Finished: true}, []runtime.Container{c.c}, reconcile.State{}.Fold([]runtime.Container{c.c}), nil, start)
		got := status.ContainerStatuses[0].State.Terminated
		if got == nil || got.Reason != string(c.want) || int(got.ExitCode) != c.c.ExitCode {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}
