package metrics_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server/metrics"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// podWith is a pod with one container, of which something runs.
func podWith(name string, use stats.Pod, containers ...metrics.Container) metrics.Pod {
	o := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u-1"}}
	use.Time = at
	return metrics.Pod{Object: o, Use: use, Containers: containers, Sandbox: container(runtime.SandboxName).Container}
}

func container(name string) metrics.Container {
	c := runtime.Container{ID: "id-" + name, Image: "busybox:stable", State: runtime.Running, Started: at.Add(-time.Hour)}
	c.Name, c.UID, c.Key.Namespace, c.Key.Name = name, "u-1", "default", "web-n"
	return metrics.Container{Container: c}
}

func asJSON(t *testing.T, value any) (tree map[string]any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// Of what nobody could read there is no number: a zero would be one.
func TestWhatIsNotKnownIsNotSaid(t *testing.T) {
	f := metrics.Facts{NodeName: "n", Time: at, Pods: []metrics.Pod{podWith("web-n", stats.Pod{}, container("app"))}}
	want := map[string]any{
		"node": map[string]any{"nodeName": "n", "startTime": nil, "runtime": map[string]any{}, "rlimit": map[string]any{"time": nil}},
		"pods": []any{map[string]any{
			"podRef": map[string]any{"name": "web-n", "namespace": "default", "uid": "u-1"}, "startTime": nil,
			"containers": []any{map[string]any{"name": "app", "startTime": "2026-01-02T02:04:05Z"}},
		}},
	}
	if diff := cmp.Diff(want, asJSON(t, metrics.Summarize(f, false))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSummaryOfAVolume(t *testing.T) {
	small := &stats.Filesystem{Capacity: 100, Available: 60, Used: 40, Inodes: new(int64(10)), InodesFree: new(int64(4))}
	p := podWith("web-n", stats.Pod{Volumes: map[string]stats.Usage{
		"cache": {Time: at, Bytes: 40, Inodes: 6, FS: small}, "data": {Time: at, Bytes: 7, Inodes: 2}, "scratch": {Time: at, Bytes: 5, Inodes: 1},
	}}, container("app"))
	p.Claims = map[string]string{"data": "claim"}
	p.Object.Spec.Volumes = []v1.Volume{
		{Name: "cache", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}},
		{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}},
		{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
	}
	f := metrics.Facts{Time: at, Pods: []metrics.Pod{p}}
	f.Node.NodeFS = &stats.Filesystem{Capacity: 1000, Available: 500, Used: 450}
	if got := metrics.Summarize(f, false).Pods[0]; got.EphemeralStorage != nil {
		t.Errorf("nobody looked at the writable layer, and the pod takes %d", *got.EphemeralStorage.UsedBytes)
	}
	f.Pods[0].Containers[0].Use.RootFS = &stats.Usage{Time: at, Bytes: 30, Inodes: 3}
	got := asJSON(t, metrics.Summarize(f, false).Pods[0])
	const when = "2026-01-02T03:04:05Z"
	disk := func(used, inodes float64) map[string]any {
		return map[string]any{"time": when, "availableBytes": 500., "capacityBytes": 1000., "usedBytes": used, "inodesUsed": inodes}
	}
	data, scratch := disk(7, 2), disk(5, 1)
	data["name"], data["pvcRef"] = "data", map[string]any{"name": "claim", "namespace": "default"}
	scratch["name"] = "scratch"
	want := []any{
		map[string]any{
			"name": "cache", "time": when, "availableBytes": 60., "capacityBytes": 100., "usedBytes": 40., "inodes": 10., "inodesFree": 4., "inodesUsed": 6.,
		}, data, scratch,
	}
	if diff := cmp.Diff(want, got["volume"]); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	// What is in memory, or outlives the pod, is no part of it.
	if diff := cmp.Diff(any(disk(35, 4)), got["ephemeral-storage"]); diff != "" {
		t.Errorf("ephemeral storage (-want +got):\n%s", diff)
	}
}

func TestPressureIsInNanoseconds(t *testing.T) {
	p := &stats.Pressure{Some: stats.Stall{Total: time.Second, Avg10: 1.5}, Full: stats.Stall{Total: time.Millisecond}}
	f := metrics.Facts{Time: at}
	f.Host.All = stats.Cgroup{CPU: new(time.Minute), CPUPressure: p, IOPressure: p}
	n := metrics.Summarize(f, false).Node
	if n.CPU.PSI.Some.Total != 1e9 || n.CPU.PSI.Some.Avg10 != 1.5 || n.IO.PSI.Full.Total != 1e6 {
		t.Errorf("%+v, %+v", n.CPU.PSI, n.IO.PSI)
	}
}

func TestRates(t *testing.T) {
	app := metrics.Owner{UID: "u-1", Container: "app/id"}
	at0 := func(cpu time.Duration) metrics.Readings {
		return metrics.Readings{app: {At: at, CPU: cpu, Since: at.Add(-time.Hour)}}
	}
	for name, c := range map[string]struct {
		was, now metrics.Reading
		none     bool
		want     metrics.Rates
	}{
		"half a core":                       {metrics.Reading{At: at}, metrics.Reading{At: at.Add(10 * time.Second), CPU: 5 * time.Second}, false, metrics.Rates{app: 5e8}},
		"four cores":                        {metrics.Reading{At: at, CPU: time.Hour}, metrics.Reading{At: at.Add(time.Second), CPU: time.Hour + 4*time.Second}, false, metrics.Rates{app: 4e9}},
		"idle is a zero":                    {metrics.Reading{At: at, CPU: 9}, metrics.Reading{At: at.Add(time.Second), CPU: 9}, false, metrics.Rates{app: 0}},
		"it counts from the beginning":      {metrics.Reading{At: at, CPU: 9}, metrics.Reading{At: at.Add(time.Second), CPU: 8}, false, metrics.Rates{}},
		"no time between":                   {metrics.Reading{At: at, CPU: 9}, metrics.Reading{At: at, CPU: 9}, false, metrics.Rates{}},
		"not seen before, and old":          {metrics.Reading{}, metrics.Reading{At: at, CPU: time.Second, Since: at.Add(-time.Hour)}, true, metrics.Rates{}},
		"not seen before, as it just began": {metrics.Reading{}, metrics.Reading{At: at, CPU: time.Second, Since: at.Add(-4 * time.Second)}, true, metrics.Rates{app: 25e7}},
	} {
		t.Run(name, func(t *testing.T) {
			was := metrics.Readings{app: c.was}
			if c.none {
				was = metrics.Readings{}
			}
			if diff := cmp.Diff(c.want, metrics.Readings{app: c.now}.Rates(was)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := at0(time.Second).Rates(nil); len(got) > 0 {
		t.Errorf("of one reading: %v", got)
	}
}

// Another attempt counts from its own start: what the one before used is not taken off.
func TestReadingsKeepAttemptsApart(t *testing.T) {
	one, two := container("app"), container("app")
	two.ID = "id-2"
	one.Use.CPU, two.Use.CPU = new(time.Hour), new(2*time.Hour)
	readings := func(c metrics.Container, at time.Time) metrics.Readings {
		p := podWith("web-n", stats.Pod{}, c)
		p.Use.Time = at
		return metrics.Facts{Pods: []metrics.Pod{p}}.Readings()
	}
	if got := readings(two, at.Add(time.Second)).Rates(readings(one, at)); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
