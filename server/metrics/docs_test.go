package metrics_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
	"github.com/podkeeper/podkeeper/server/metrics"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/metrics.md")

const docs = "../../docs/metrics.md"

// docs/metrics.md has every metric of every page, with its type, its labels and what it
// says, and no other.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for path, h := range everyPage(t) {
		begin, end := "<!-- "+path+" -->\n", "<!-- end -->"
		before, rest, ok := strings.Cut(text, begin)
		was, after, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("%s has no table of %s", docs, path)
		}
		want := tableOf(t, h)
		if diff := gocmp.Diff(was, want); diff != "" && !*update {
			t.Errorf("%s: the table of %s (-is +should be; -update rewrites it):\n%s", docs, path, diff)
		}
		text = before + begin + want + end + after
	}
	if *update {
		if err := os.WriteFile(docs, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// everyPage are the pages, with everything on them that can be there.
func everyPage(t *testing.T) map[string]http.Handler {
	t.Helper()
	f := facts()
	whole := stats.Cgroup{
		Path: "/x", CPU: new(time.Second), CPUUser: new(time.Second), CPUSystem: new(time.Second), Throttled: &stats.Throttled{},
		WorkingSet: new(int64(1)), MemoryUsage: new(int64(1)), RSS: new(int64(1)), Cache: new(int64(1)), Mapped: new(int64(1)), Kernel: new(int64(1)),
		Peak: new(int64(1)), Swap: new(int64(1)), LimitHits: new(int64(1)), PageFaults: new(int64(1)), MajorFaults: new(int64(1)),
		CPUPressure: &stats.Pressure{}, MemoryPressure: &stats.Pressure{}, IOPressure: &stats.Pressure{}, Processes: new(int64(1)),
	}
	app := &f.Pods[0].Containers[0]
	app.Use.Cgroup, app.Resources = whole, runtime.Resources{CPUShares: 1, CPUPeriod: 1, CPUQuota: 1, Memory: 1, Pids: 1}
	f.Pods[0].Use.Cgroup = whole
	f.Host.Swap, f.Host.SwapFree = new(int64(2)), new(int64(1))
	f.Machine.PhysicalCores, f.Machine.Sockets = 1, 1
	f.Node.ContainerFS.Inodes, f.Node.ContainerFS.InodesFree = new(int64(2)), new(int64(1))
	c := everyCount(t)
	now := func(context.Context) (metrics.Now, error) {
		one := map[string]int{"x": 1}
		return metrics.Now{
			NodeName: "n", CgroupVersion: 2, Phases: one, Containers: one, Waiting: one,
			Sources: []pod.Source{{Read: at, Origins: []pod.OriginStatus{{Origin: pod.Origin{Name: "/m/a.yaml"}}}}},
			Volumes: []metrics.Volume{{
				Namespace: "default", Claim: "data", Use: &stats.Usage{},
				FS: &stats.Filesystem{Inodes: new(int64(2)), InodesFree: new(int64(1))},
			}},
		}, nil
	}
	return map[string]http.Handler{
		"/metrics": c.Kubelet(now, quiet), "/metrics/probes": c.Probes(quiet),
		"/metrics/slis":     c.SLIs(map[string]func(context.Context) error{"ping": func(context.Context) error { return nil }}, quiet),
		"/metrics/cadvisor": metrics.Containers(looking(f, nil), quiet), "/metrics/resource": metrics.Resource(looking(f, nil), quiet),
	}
}

// everyCount are counters of which each has counted something.
func everyCount(t *testing.T) *metrics.Counters {
	t.Helper()
	c := metrics.NewCounters("v1")
	c.Turned(time.Millisecond)
	c.Planned(1, time.Millisecond)
	c.Orphaned()
	c.Up(time.Second)
	c.Rejected("NodeAffinity")
	c.Evicted("memory.available")
	c.ImageRemoved("age")
	c.Event(pod.Event{Type: pod.EventNormal, Reason: "Started"})
	c.Pressure(pod.DiskPressure, true)
	c.Probed(metrics.Check{Pod: pod.Key{Namespace: "default", Name: "web-n"}, UID: "u-1", Container: "app", Type: "Liveness", Result: "successful"})
	c.Took([]metrics.Taken{
		{Step: "create-sandbox", Makes: true, Container: runtime.SandboxName, Attempt: 1}, {Step: "start-container", Starts: true, Container: "app"},
		{Step: "create-container", Makes: true, Container: "app", Code: "CreateContainerError", Err: errors.New("no")},
	})
	engine := c.Count(fake.New(fake.Config{Fate: fake.Immediate()}).Client("/root"))
	if _, err := engine.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := engine.Pull(t.Context(), "absent:1", runtime.Auth{}, nil); err == nil {
		t.Fatal("an image came from nowhere")
	}
	c.Pulling(runtime.PullProgress{Image: "remote:1", Bytes: 1, Total: 2})
	return c
}

// tableOf is a page as a table. What Go and the process say of themselves has a
// sentence instead.
func tableOf(t *testing.T, h http.Handler) string {
	t.Helper()
	text, _, _ := read(t, h)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	list := slices.SortedFunc(values(families), func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	var b strings.Builder
	b.WriteString("| metric | type | labels | |\n|---|---|---|---|\n")
	for _, f := range list {
		if strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_") {
			continue
		}
		names := make(map[string]bool)
		for _, m := range f.Metric {
			for _, l := range m.Label {
				names[l.GetName()] = true
			}
		}
		var labels []string
		for name := range names {
			labels = append(labels, name)
		}
		slices.Sort(labels)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	return b.String()
}

func values(families map[string]*dto.MetricFamily) func(func(*dto.MetricFamily) bool) {
	return func(yield func(*dto.MetricFamily) bool) {
		for _, f := range families {
			if !yield(f) {
				return
			}
		}
	}
}

// A probe's series leave with the generation of the pod that it was of.
func TestGone(t *testing.T) {
	c := everyCount(t)
	if _, _, got := read(t, c.Probes(quiet)); len(got) != 2 {
		t.Fatalf("probes: %v", got)
	}
	c.Gone(pod.Key{Namespace: "default", Name: "web-n"}, "u-1")
	if _, _, got := read(t, c.Probes(quiet)); len(got) != 0 {
		t.Errorf("they outlive the pod: %v", got)
	}
}

// An answer that is no fault of the engine's counts as no error of it.
func TestOperations(t *testing.T) {
	c := metrics.NewCounters("v1")
	engine := c.Count(fake.New(fake.Config{Fate: fake.Immediate()}).Client("/root"))
	if _, err := engine.Image(t.Context(), "absent:1"); !errors.Is(err, runtime.ErrImageNotFound) {
		t.Fatal(err)
	}
	if err := engine.Start(t.Context(), "nothing"); err == nil {
		t.Fatal("nothing was started")
	}
	_, _, got := read(t, c.Kubelet(func(context.Context) (metrics.Now, error) { return metrics.Now{}, nil }, quiet))
	for want, there := range map[string]bool{
		"kubelet_runtime_operations_total{operation_type=image_status} 1":            true,
		"kubelet_runtime_operations_total{operation_type=start_container} 1":         true,
		"kubelet_runtime_operations_errors_total{operation_type=start_container} 1":  true,
		"kubelet_runtime_operations_errors_total{operation_type=image_status} 1":     false,
		"kubelet_runtime_operations_duration_seconds{operation_type=image_status} 1": true,
	} {
		if slices.Contains(got, want) != there {
			t.Errorf("%s: there is %t, want %t", want, !there, there)
		}
	}
}
