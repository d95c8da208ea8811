package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
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
	w.poll("its files were looked at", func() bool {
		s = w.uses("")
		return len(s.Pods) == 1 && s.Pods[0].EphemeralStorage != nil
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
	if beside := p.Containers[1]; beside.Memory.AvailableBytes != nil {
		t.Error("without a limit there is nothing left of it")
	}
	brief := w.uses("?only_cpu_and_memory=true")
	if b := brief.Pods[0]; b.CPU == nil || b.Memory == nil || b.Network != nil || b.VolumeStats != nil || b.EphemeralStorage != nil || b.Containers[0].Logs != nil || brief.Node.Fs != nil {
		t.Errorf("briefly: %+v, and of the pod: %+v", brief.Node, b)
	}
}
