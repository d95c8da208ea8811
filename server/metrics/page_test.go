package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/server/metrics"
)

var quiet = slog.New(slog.DiscardHandler)

// read is a page as Prometheus' parser has it: each sample as name{labels} value, with
// " @" where it bears a time.
func read(t *testing.T, h http.Handler) (text string, types map[string]string, samples []string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	text = w.Body.String()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	types = make(map[string]string)
	for name, f := range families {
		types[name] = f.GetType().String()
		for _, m := range f.Metric {
			samples = append(samples, name+"{"+labels(m)+"} "+value(m))
		}
	}
	slices.Sort(samples)
	return text, types, samples
}

func labels(m *dto.Metric) string {
	var list []string
	for _, l := range m.Label {
		if l.GetValue() != "" {
			list = append(list, l.GetName()+"="+l.GetValue())
		}
	}
	return strings.Join(list, ",")
}

func value(m *dto.Metric) string {
	var n float64
	switch {
	case m.Gauge != nil:
		n = m.Gauge.GetValue()
	case m.Counter != nil:
		n = m.Counter.GetValue()
	default:
		n = float64(m.Histogram.GetSampleCount())
	}
	text := model.SampleValue(n).String()
	if m.TimestampMs != nil {
		text += " @"
	}
	return text
}

func looking(f metrics.Facts, err error) metrics.Look {
	return func(context.Context, bool) (metrics.Facts, error) { return f, err }
}

// facts are of a node with one pod, of which some is not known.
func facts() metrics.Facts {
	app := container("app")
	app.Use.Cgroup = stats.Cgroup{
		Path: "/kubepods/pod1/id-app", CPU: new(1500 * time.Millisecond), WorkingSet: new(int64(7)), MemoryUsage: new(int64(8)),
		Throttled: &stats.Throttled{Periods: 10, Held: 3, Time: time.Second},
	}
	app.Use.RootFS = &stats.Usage{Bytes: 5}
	app.OOMKills = new(int64(2))
	app.Resources.Memory, app.Resources.CPUShares = 64, 102
	p := podWith("web-n", stats.Pod{
		Cgroup:  stats.Cgroup{Path: "/kubepods/pod1", CPU: new(2 * time.Second), WorkingSet: new(int64(9))},
		Network: &stats.Network{Interfaces: []stats.Interface{{Name: "eth0", RxBytes: 11, TxDropped: 1}}},
		Sandbox: stats.Cgroup{Path: "/kubepods/pod1/id-POD", WorkingSet: new(int64(1))},
	}, app, container("unknown"))
	f := metrics.Facts{Time: at, Pods: []metrics.Pod{p}, Machine: stats.Machine{Cores: 2, Memory: 100, BootID: "b"}}
	f.Host.All = stats.Cgroup{Path: "/", CPU: new(time.Minute), WorkingSet: new(int64(99))}
	f.Node.ContainerFS = &stats.Filesystem{Device: "none", Capacity: 1000, Used: 400}
	return f
}

func TestResourcePage(t *testing.T) {
	_, types, got := read(t, metrics.Resource(looking(facts(), nil), quiet))
	want := []string{
		"container_cpu_usage_seconds_total{container=app,namespace=default,pod=web-n} 1.5 @",
		"container_memory_working_set_bytes{container=app,namespace=default,pod=web-n} 7 @",
		"container_start_time_seconds{container=app,namespace=default,pod=web-n} 1767319445",
		"container_start_time_seconds{container=unknown,namespace=default,pod=web-n} 1767319445",
		"node_cpu_usage_seconds_total{} 60 @",
		"node_memory_working_set_bytes{} 99 @",
		"pod_cpu_usage_seconds_total{namespace=default,pod=web-n} 2 @",
		"pod_memory_working_set_bytes{namespace=default,pod=web-n} 9 @",
		"resource_scrape_error{} 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if types["node_cpu_usage_seconds_total"] != "COUNTER" || types["pod_memory_working_set_bytes"] != "GAUGE" {
		t.Errorf("types: %v", types)
	}
}

func TestContainerPage(t *testing.T) {
	_, types, got := read(t, metrics.Containers(looking(facts(), nil), quiet))
	const app = "{container=app,id=/kubepods/pod1/id-app,image=busybox:stable,name=k8s_app_web-n_default_u-1_0,namespace=default,pod=web-n"
	const sandbox = "{container=POD,id=/kubepods/pod1/id-POD,image=busybox:stable,name=k8s_POD_web-n_default_u-1_0,namespace=default,pod=web-n"
	for _, want := range []string{
		"container_cpu_usage_seconds_total{cpu=total,id=/} 60",
		"container_cpu_usage_seconds_total{cpu=total,id=/kubepods/pod1,namespace=default,pod=web-n} 2",
		"container_cpu_usage_seconds_total" + strings.Replace(app, ",id=", ",cpu=total,id=", 1) + "} 1.5",
		"container_cpu_cfs_throttled_periods_total" + app + "} 3",
		"container_memory_working_set_bytes" + app + "} 7",
		"container_memory_working_set_bytes" + sandbox + "} 1",
		"container_network_receive_bytes_total" + strings.Replace(sandbox, ",name=", ",interface=eth0,name=", 1) + "} 11",
		"container_network_transmit_packets_dropped_total" + strings.Replace(sandbox, ",name=", ",interface=eth0,name=", 1) + "} 1",
		"container_fs_usage_bytes" + strings.Replace(app, ",id=", ",device=none,id=", 1) + "} 5",
		"container_fs_limit_bytes" + strings.Replace(app, ",id=", ",device=none,id=", 1) + "} 1000",
		"container_fs_usage_bytes{device=none,id=/} 400",
		"container_spec_memory_limit_bytes" + app + "} 64",
		"container_spec_cpu_shares" + app + "} 102",
		"container_oom_events_total" + app + "} 2",
		"container_start_time_seconds" + app + "} 1767319445",
		"container_last_seen" + app + "} 1767323045",
		"machine_cpu_cores{boot_id=b} 2",
		"machine_memory_bytes{boot_id=b} 100",
		"container_scrape_error{} 0",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, sample := range got {
		if strings.Contains(sample, "container=unknown") && (strings.Contains(sample, "_memory_working") || strings.Contains(sample, "_cpu_usage") || strings.Contains(sample, "_oom_")) {
			t.Errorf("nobody knows this: %s", sample)
		}
		if strings.HasSuffix(sample, "@") {
			t.Errorf("a series with a time outlives what it is of: %s", sample)
		}
	}
	if types["container_cpu_usage_seconds_total"] != "COUNTER" || types["container_memory_rss"] != "" {
		t.Errorf("types: %v", types)
	}
	if t.Failed() {
		t.Logf("there is:\n%s", strings.Join(got, "\n"))
	}
}

// What cannot be read is said by the page, as monitoring expects: the page is there.
func TestPagesWithoutFacts(t *testing.T) {
	nobody := looking(metrics.Facts{}, errors.New("broken"))
	for name, h := range map[string]http.Handler{"resource_scrape_error{} 1": metrics.Resource(nobody, quiet), "container_scrape_error{} 1": metrics.Containers(nobody, quiet)} {
		if _, _, got := read(t, h); !cmp.Equal(got, []string{name}) {
			t.Errorf("want %s, got %v", name, got)
		}
	}
}

// A page has no series of what is not there any more.
func TestSeriesLeaveWithTheirPod(t *testing.T) {
	f := facts()
	look := func(context.Context, bool) (metrics.Facts, error) { return f, nil }
	h, r := metrics.Containers(look, quiet), metrics.Resource(look, quiet)
	if text, _, _ := read(t, h); !strings.Contains(text, "web-n") {
		t.Fatal("there is no pod")
	}
	f.Pods = nil
	for _, page := range []http.Handler{h, r} {
		if text, _, _ := read(t, page); strings.Contains(text, "web-n") {
			t.Errorf("it outlives its pod:\n%s", text)
		}
	}
}

// A page has the machine read once, and as many series for each pod, however many there
// are.
func TestPagesGrowWithThePods(t *testing.T) {
	size := func(page func(metrics.Look, *slog.Logger) http.Handler, pods int) int {
		f, looks := facts(), 0
		for i := 1; i < pods; i++ {
			more := facts().Pods[0]
			more.Object.Name = fmt.Sprint("more-", i)
			for j := range more.Containers {
				more.Containers[j].Key.Name = more.Object.Name
			}
			more.Sandbox.Key.Name = more.Object.Name
			f.Pods = append(f.Pods, more)
		}
		_, _, samples := read(t, page(func(context.Context, bool) (metrics.Facts, error) { looks++; return f, nil }, quiet))
		if looks != 1 {
			t.Errorf("%d looks for a page", looks)
		}
		return len(samples)
	}
	for name, page := range map[string]func(metrics.Look, *slog.Logger) http.Handler{"cadvisor": metrics.Containers, "resource": metrics.Resource} {
		one, two, fifty := size(page, 1), size(page, 2), size(page, 50)
		if fifty-one != 49*(two-one) || two == one {
			t.Errorf("%s: %d series with one pod, %d with two, %d with fifty", name, one, two, fifty)
		}
	}
}

// Whoever can reach a page cannot have it made any number of times at once.
func TestScrapesAtOnceAreFew(t *testing.T) {
	began, held := make(chan struct{}), make(chan struct{})
	h := metrics.Resource(func(context.Context, bool) (metrics.Facts, error) {
		began <- struct{}{}
		<-held
		return facts(), nil
	}, quiet)
	codes := make(chan int, 100)
	ask := func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		codes <- w.Code
	}
	for range 4 {
		go ask()
		<-began
	}
	for range 10 {
		if ask(); <-codes != http.StatusTooManyRequests {
			t.Error("more than four are made at once")
		}
	}
	close(held)
	for range 4 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one that was begun: %d", code)
		}
	}
	go func() { <-began }()
	if ask(); <-codes != http.StatusOK {
		t.Error("it stays so")
	}
}
