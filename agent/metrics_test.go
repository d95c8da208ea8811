package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podkeeper/podkeeper/server"
)

// get asks the agent's socket for a page of the kubelet API.
func (w *world) get(path string) []byte {
	w.t.Helper()
	c := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", w.cfg.Socket)
		},
	}}
	resp, err := c.Get("http://agent" + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %s, %v: %s", path, resp.Status, err, body)
	}
	return body
}

func (w *world) uses(query string) (s statsapi.Summary) {
	w.t.Helper()
	if err := json.Unmarshal(w.get("/stats/summary"+query), &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// The types of the summary API, which metrics-server and others decode it with, hold
// what the machine and a pod on it use.
func TestSummaryOfANode(t *testing.T) {
	w := newWorld(t)
	w.write("busy.yaml", manifest("{name: busy, annotations: {a: b}}",
		shell("app", "dd if=/dev/zero of=/disk/a bs=1M count=3; echo up; while :; do :; done", "resources: {limits: {memory: 64Mi, cpu: 200m}}",
			"volumeMounts: [{name: disk, mountPath: /disk}, {name: memory, mountPath: /memory}]"),
		sleeping("beside"))+"  volumes: [{name: disk, emptyDir: {}}, {name: memory, emptyDir: {medium: Memory, sizeLimit: 8Mi}}]\n")
	w.start()
	w.await("it runs", runs("busy", "app", 0), runs("busy", "beside", 0))
	var s statsapi.Summary
	// A machine with much else to do gives it less than it may have for a while.
	w.poll("its files were looked at, and it is busy", func() bool {
		s = w.uses("")
		return len(s.Pods) == 1 && s.Pods[0].EphemeralStorage != nil &&
			s.Pods[0].CPU != nil && s.Pods[0].CPU.UsageNanoCores != nil && *s.Pods[0].CPU.UsageNanoCores >= 5e7
	})
	n := s.Node
	if n.NodeName != "node" || n.StartTime.IsZero() || n.Network == nil || n.Runtime == nil || n.Runtime.ImageFs == nil {
		t.Errorf("of the node it says %+v", n)
	}
	between := func(what string, got *uint64, least, most uint64) {
		t.Helper()
		if got == nil {
			t.Errorf("%s: not known", what)
		} else if *got < least || *got > most {
			t.Errorf("%s: %d, want %d to %d", what, *got, least, most)
		}
	}
	const mib = 1 << 20
	between("processors of the node", n.CPU.UsageNanoCores, 1e7, 256e9)
	between("memory of the node", n.Memory.WorkingSetBytes, 10*mib, 1<<50)
	between("available memory of the node", n.Memory.AvailableBytes, mib, 1<<50)
	between("disk of the node", n.Fs.UsedBytes, mib, 1<<60)
	if n.Rlimit == nil || n.Rlimit.NumOfRunningProcesses == nil || *n.Rlimit.NumOfRunningProcesses < 3 {
		t.Errorf("processes of the node: %+v", n.Rlimit)
	}
	p := s.Pods[0]
	if p.PodRef.Name != "busy-node" || p.PodRef.Namespace != "default" || p.PodRef.UID == "" || time.Since(p.StartTime.Time) > time.Hour {
		t.Errorf("the pod is %+v since %v", p.PodRef, p.StartTime)
	}
	if p.Network == nil || p.Network.Name != "eth0" || len(p.Network.Interfaces) != 1 {
		t.Errorf("its network is %+v", p.Network)
	}
	between("received by it", p.Network.RxBytes, 0, mib)
	between("processes of it", p.ProcessStats.ProcessCount, 3, 6)
	between("page faults of it", p.Memory.PageFaults, 100, 1e9)
	if faults := n.Memory.PageFaults; faults != nil && *faults < *p.Memory.PageFaults {
		t.Errorf("%d page faults of everything, and %d of the pod", *faults, *p.Memory.PageFaults)
	}
	between("processors that it uses", p.CPU.UsageNanoCores, 5e7, 4e8)
	between("what it takes of the disk", p.EphemeralStorage.UsedBytes, 3*mib, 8*mib)
	if len(p.VolumeStats) != 2 || p.VolumeStats[0].Name != "disk" || p.VolumeStats[1].Name != "memory" {
		t.Fatalf("its volumes are %+v", p.VolumeStats)
	}
	between("a volume on the disk", p.VolumeStats[0].UsedBytes, 3*mib, 4*mib)
	between("what a volume in memory may hold", p.VolumeStats[1].CapacityBytes, 8*mib, 8*mib)
	if len(p.Containers) != 2 || p.Containers[0].Name != "app" || p.Containers[1].Name != "beside" {
		t.Fatalf("its containers are %+v", p.Containers)
	}
	app := p.Containers[0]
	if time.Since(app.StartTime.Time) > time.Hour {
		t.Errorf("app runs since %v", app.StartTime)
	}
	between("processors that app uses", app.CPU.UsageNanoCores, 5e7, 4e8)
	between("memory of app", app.Memory.WorkingSetBytes, 10<<10, 64*mib)
	between("what is left for app", app.Memory.AvailableBytes, 32*mib, 64*mib)
	between("logs of app", app.Logs.UsedBytes, 1, mib)
	between("writable layer of app", app.Rootfs.UsedBytes, 0, mib)
	// How long work waits is counted by cgroups of version 2, where the kernel does so at all;
	// how much of them is swapped out, where it can be told.
	counted := exists("/proc/pressure/cpu")
	if v2 := exists("/sys/fs/cgroup/cgroup.controllers"); counted && v2 {
		if psi := app.CPU.PSI; psi == nil || psi.Some.Total == 0 {
			t.Errorf("app, which may have a fifth of a processor and wants all, waited for %+v", psi)
		}
		if p.CPU.PSI == nil || p.Memory.PSI == nil || p.IO == nil || p.IO.PSI == nil || app.Memory.PSI == nil || app.IO == nil || app.IO.PSI == nil {
			t.Errorf("the pod waited for %+v, %+v, %+v, app for %+v, %+v", p.CPU.PSI, p.Memory.PSI, p.IO, app.Memory.PSI, app.IO)
		}
		if p.Swap == nil || p.Swap.SwapUsageBytes == nil || app.Swap == nil || app.Swap.SwapUsageBytes == nil || *app.Swap.SwapUsageBytes > *app.Memory.UsageBytes+64*mib {
			t.Errorf("swapped out of the pod %+v, of app %+v", p.Swap, app.Swap)
		}
	} else if !v2 && (app.CPU.PSI != nil || p.IO != nil) {
		t.Errorf("nobody counts how long app waited: %+v, %+v", app.CPU.PSI, p.IO)
	}
	if (n.CPU.PSI != nil) != counted || (n.Memory.PSI != nil) != counted || (n.IO != nil) != counted {
		t.Errorf("the kernel counts what waits: %t; of the node it says %+v, %+v, %+v", counted, n.CPU.PSI, n.Memory.PSI, n.IO)
	}
	if n.Swap == nil || n.Swap.SwapUsageBytes == nil || n.Swap.SwapAvailableBytes == nil {
		t.Errorf("swap of the node is %+v", n.Swap)
	}
	if beside := p.Containers[1]; beside.Memory.AvailableBytes != nil {
		t.Error("without a limit there is nothing left of it")
	}
	brief := w.uses("?only_cpu_and_memory=true")
	if b := brief.Pods[0]; b.CPU == nil || b.Memory == nil || b.Network != nil || b.VolumeStats != nil || b.EphemeralStorage != nil || b.Containers[0].Logs != nil || brief.Node.Fs != nil {
		t.Errorf("briefly: %+v, and of the pod: %+v", brief.Node, b)
	}
}

// page is what Prometheus' parser reads of one of the agent's pages.
func (w *world) page(path string) map[string]*dto.MetricFamily {
	w.t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(w.get(path))))
	if err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
	return families
}

// sample returns the values of the series of a metric that have all of the labels.
func sample(families map[string]*dto.MetricFamily, name string, labels map[string]string) (values []float64) {
	for _, m := range families[name].GetMetric() {
		has := make(map[string]string)
		for _, l := range m.Label {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for label, value := range labels {
			fits = fits && has[label] == value
		}
		if fits {
			values = append(values, m.GetGauge().GetValue()+m.GetCounter().GetValue()+float64(m.GetHistogram().GetSampleCount()))
		}
	}
	return values
}

var pages = []string{"/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes", "/metrics/slis"}

// Every page is one that Prometheus reads, tells what really runs, and forgets what does
// not any more.
func TestPagesForPrometheus(t *testing.T) {
	w := newWorld(t)
	w.write("web.yaml", manifest("{name: web}", shell("app", "while :; do sleep 1; done",
		"readinessProbe: {exec: {command: ['true']}, periodSeconds: 1}", "resources: {limits: {memory: 64Mi, cpu: 500m}}"))+
		"  volumes:\n  - {name: d, persistentVolumeClaim: {claimName: data}}\n"+
		"  - {name: own, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}}}\n")
	w.write("data.yaml", claim("data", ""))
	w.write("broken.yaml", "kind: Pod\napiVersion: v1\nmetadata: {name: broken}\nspec: {containers: [{name: x}]}\n")
	w.start()
	w.await("it runs", runs("web", "app", 0))
	probed := map[string]string{"probe_type": "Readiness", "result": "successful", "container": "app", "pod": "web-node", "namespace": "default"}
	w.poll("probes were made", func() bool {
		got := sample(w.page("/metrics/probes"), "prober_probe_total", probed)
		return len(got) == 1 && got[0] >= 2
	})
	least := func(path, name string, labels map[string]string, want float64) {
		t.Helper()
		families := w.page(path)
		got := sample(families, name, labels)
		if len(got) != 1 || got[0] < want {
			t.Errorf("%s: %s %v is %v, want one of at least %v: %v", path, name, labels, got, want, families[name])
		}
	}
	app := map[string]string{"container": "app", "pod": "web-node", "namespace": "default"}
	sandbox := map[string]string{"container": "POD", "pod": "web-node", "namespace": "default"}
	whole := map[string]string{"container": "", "pod": "web-node", "namespace": "default"}
	least("/metrics/resource", "container_memory_working_set_bytes", app, 10<<10)
	least("/metrics/resource", "pod_cpu_usage_seconds_total", nil, 1e-4)
	least("/metrics/resource", "node_swap_usage_bytes", nil, 0)
	least("/metrics/resource", "node_memory_working_set_bytes", nil, 1<<20)
	least("/metrics/cadvisor", "container_cpu_usage_seconds_total", app, 1e-4)
	least("/metrics/cadvisor", "container_memory_working_set_bytes", whole, 10<<10)
	least("/metrics/cadvisor", "container_memory_working_set_bytes", sandbox, 1)
	least("/metrics/cadvisor", "container_network_receive_bytes_total", sandbox, 0)
	least("/metrics/cadvisor", "container_spec_memory_limit_bytes", app, 64<<20)
	least("/metrics/cadvisor", "container_spec_cpu_quota", app, 50000)
	least("/metrics/cadvisor", "container_oom_events_total", app, 0)
	least("/metrics/cadvisor", "container_start_time_seconds", app, 1.7e9)
	least("/metrics/cadvisor", "container_cpu_usage_seconds_total", map[string]string{"id": "/"}, 1)
	least("/metrics/cadvisor", "machine_cpu_cores", nil, 1)
	least("/metrics/slis", "kubernetes_healthcheck", map[string]string{"name": "syncloop"}, 1)
	least("/metrics", "kubelet_running_pods", nil, 1)
	least("/metrics", "kubelet_started_pods_total", nil, 1)
	least("/metrics", "kubelet_started_containers_total", map[string]string{"container_type": "container"}, 1)
	least("/metrics", "kubelet_runtime_operations_total", map[string]string{"operation_type": "run_podsandbox"}, 1)
	least("/metrics", "kubelet_pod_start_duration_seconds", nil, 1)
	least("/metrics", "podkeeper_steps_total", map[string]string{"step": "create-container", "result": "success"}, 1)
	least("/metrics", "podkeeper_manifest_errors", map[string]string{"file": w.dir + "/broken.yaml"}, 1)
	least("/metrics", "podkeeper_manifest_errors", map[string]string{"file": w.dir + "/web.yaml"}, 0)
	least("/metrics", "podkeeper_source_up", map[string]string{"kind": "file", "source": w.dir}, 1)
	least("/metrics", "podkeeper_events_total", map[string]string{"reason": "Started", "type": "Normal"}, 1)
	least("/metrics", "podkeeper_loop_turn_duration_seconds", nil, 5)
	least("/metrics", "go_goroutines", nil, 5)
	for _, name := range []string{"data", "web-node-own"} {
		of := map[string]string{"namespace": "default", "persistentvolumeclaim": name}
		for _, what := range []string{"capacity_bytes", "available_bytes", "inodes", "inodes_free"} {
			least("/metrics", "kubelet_volume_stats_"+what, of, 1)
		}
		w.poll("claim "+name+" was walked through", func() bool {
			got := w.page("/metrics")
			return len(sample(got, "kubelet_volume_stats_used_bytes", of)) == 1 && len(sample(got, "kubelet_volume_stats_inodes_used", of)) == 1
		})
	}
	least("/metrics", "process_cpu_seconds_total", nil, 0.001)
	w.boundLabels()
	w.remove("web.yaml")
	w.await("it is gone", gone("web"))
	for _, path := range pages {
		if text := string(w.get(path)); strings.Contains(text, "web-node") {
			t.Errorf("%s outlives the pod:\n%s", path, text)
		}
	}
}

// boundLabels has no label on any page that grows with time: only what is in a manifest,
// on the machine, or one of a fixed list. A restart makes no series more, but for those of
// the container's id.
func (w *world) boundLabels() {
	known := strings.Fields("le cpu container pod namespace id image name interface device failure_type scope boot_id machine_id system_uuid quantile " +
		"version name status node static container_state phase reason kind source file step result operation_type container_type type condition persistentvolumeclaim probe_type pod_uid code eviction_signal")
	for _, path := range pages {
		for name, f := range w.page(path) {
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if !slices.Contains(known, l.GetName()) {
						w.t.Errorf("%s: %s has the label %s: is that bounded?", path, name, l.GetName())
					}
				}
			}
		}
	}
}

// Those who ask what is used get it one after the other, too many are told so, and who
// gives up holds nothing.
func TestManyAskAtOnce(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.await("it is up", func(s server.State) bool { return s.Ready })
	ctx, giveUp := context.WithCancel(t.Context())
	var all sync.WaitGroup
	client := server.NewClient(w.cfg.Socket)
	for i := range 100 {
		all.Go(func() {
			body, err := client.Get(ctx, []string{"/stats/summary", "/metrics/cadvisor"}[i%2], nil)
			if status := new(server.StatusError); err != nil && !errors.Is(err, context.Canceled) && (!errors.As(err, &status) || status.Code != http.StatusTooManyRequests) {
				t.Errorf("told %v", err)
			}
			if err == nil {
				body.Close()
			}
		})
	}
	giveUp()
	all.Wait()
	w.poll("nobody is in the way", func() bool {
		body, err := client.Get(t.Context(), "/stats/summary", nil)
		if err == nil {
			body.Close()
		}
		return err == nil
	})
}
