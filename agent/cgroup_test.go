package agent_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cgroup returns where the cgroup of a container's process lies, of the memory
// controller on cgroup v1, and reads a file in it or above it: by its name on v1, which
// begins with the controller's, and on v2.
type cgroupOf struct {
	w    *world
	path string // below the mount point of a hierarchy
	v2   bool
}

func (w *world) cgroup(pid int) cgroupOf {
	w.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = os.Stat("/sys/fs/cgroup/cgroup.controllers")
	c := cgroupOf{w: w, v2: err == nil}
	for line := range strings.Lines(string(data)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if c.v2 && part[1] == "" || !c.v2 && part[1] == "memory" {
			c.path = part[2]
		}
	}
	return c
}

// file reads one of the cgroup that many levels up.
func (c cgroupOf) file(up int, v1, v2 string) string {
	c.w.t.Helper()
	path := c.path
	for range up {
		path = filepath.Dir(path)
	}
	controller, _, _ := strings.Cut(v1, ".")
	file := filepath.Join("/sys/fs/cgroup", controller, path, v1)
	if c.v2 {
		file = filepath.Join("/sys/fs/cgroup", path, v2)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func (c cgroupOf) check(up int, what, v1, is1, v2, is2 string) {
	c.w.t.Helper()
	want := is1
	if c.v2 {
		want = is2
	}
	if got := c.file(up, v1, v2); got != want {
		c.w.t.Errorf("%s, %d above %s: %q, want %q", what, up, c.path, got, want)
	}
}

// has returns a container that asks for these resources.
func has(name, resources string) string { return sleeping(name, "resources: "+resources) }

// Each pod has a cgroup of its class, with what its containers have together, and it
// is gone with the pod.
func TestPodCgroups(t *testing.T) {
	w := newWorld(t)
	w.cfg.PodPIDs = 50
	w.write("burstable.yaml", manifest("{name: burstable}",
		has("a", "{requests: {cpu: 250m, memory: 32Mi}, limits: {cpu: 500m, memory: 64Mi}}"), has("b", "{requests: {cpu: 250m}, limits: {cpu: 250m, memory: 64Mi}}")))
	w.write("open.yaml", manifest("{name: open}", has("a", "{requests: {cpu: 500m}, limits: {memory: 64Mi}}"), sleeping("b")))
	w.write("guaranteed.yaml", manifest("{name: guaranteed}", has("a", "{limits: {cpu: 100m, memory: 16Mi}}")))
	w.write("besteffort.yaml", manifest("{name: besteffort}", sleeping("a")))
	w.start()
	w.await("all run", runs("burstable", "b", 0), runs("open", "b", 0), runs("guaranteed", "a", 0), runs("besteffort", "a", 0))
	ids := w.ids()
	of := func(name, container string) cgroupOf {
		return w.cgroup(w.inspect(ids[name+"-node/"+container+"/0"]).State.Pid)
	}
	sandbox := of("burstable", "POD")
	for name, class := range map[string]string{"burstable": "burstable", "open": "burstable", "guaranteed": "", "besteffort": "besteffort"} {
		path := of(name, "a").path
		pod, up := filepath.Base(filepath.Dir(path)), filepath.Base(filepath.Dir(filepath.Dir(path)))
		uid := w.inspect(ids[name+"-node/a/0"]).Config.Labels["io.kubernetes.pod.uid"]
		wants := []string{"pod" + uid, cmp.Or(class, "kubepods")}
		if strings.HasSuffix(pod, ".slice") {
			pod, up = pod[strings.LastIndex(pod, "-")+1:], up[strings.LastIndex(up, "-")+1:]
			wants = []string{"pod" + strings.ReplaceAll(uid, "-", "_") + ".slice", wants[1] + ".slice"}
		}
		diff(t, name, []string{pod, up}, wants)
	}
	if filepath.Dir(sandbox.path) != filepath.Dir(of("burstable", "a").path) {
		t.Errorf("the sandbox is in %s, its container in %s", sandbox.path, of("burstable", "a").path)
	}
	both := of("burstable", "a")
	both.check(1, "memory", "memory.limit_in_bytes", "134217728", "memory.max", "134217728")
	both.check(1, "cpu", "cpu.cfs_quota_us", "75000", "cpu.max", "75000 100000")
	both.check(1, "weight", "cpu.shares", "512", "cpu.weight", "20")
	both.check(1, "pids", "pids.max", "50", "pids.max", "50")
	both.check(0, "pids of the container", "pids.max", "max", "pids.max", "max")
	both.check(0, "memory of the container", "memory.limit_in_bytes", "67108864", "memory.max", "67108864")
	both.check(2, "weight of the class", "cpu.shares", "1024", "cpu.weight", "39")
	of("open", "a").check(1, "memory", "memory.limit_in_bytes", unlimited, "memory.max", "max")
	of("open", "a").check(1, "cpu", "cpu.cfs_quota_us", "-1", "cpu.max", "max 100000")
	guaranteed := of("guaranteed", "a")
	guaranteed.check(1, "memory", "memory.limit_in_bytes", "16777216", "memory.max", "16777216")
	guaranteed.check(1, "cpu", "cpu.cfs_quota_us", "10000", "cpu.max", "10000 100000")
	of("besteffort", "a").check(1, "weight", "cpu.shares", "2", "cpu.weight", "1")
	of("besteffort", "a").check(2, "weight of the class", "cpu.shares", "2", "cpu.weight", "1")

	w.restart()
	w.write("burstable.yaml", manifest("{name: burstable}", has("a", "{requests: {cpu: 250m, memory: 32Mi}, limits: {cpu: 500m, memory: 64Mi}}"),
		has("b", "{requests: {cpu: 250m}, limits: {cpu: 250m, memory: 32Mi}}")))
	w.remove("guaranteed.yaml")
	w.poll("the pod's memory is that of its containers now", func() bool {
		return both.file(1, "memory.limit_in_bytes", "memory.max") == "100663296"
	})
	w.same(ids, "burstable-node/a/0", "burstable-node/b/0", "open-node/a/0")
	w.poll("the cgroup of a removed pod is gone", func() bool {
		left, err := filepath.Glob("/sys/fs/cgroup/*" + filepath.Dir(guaranteed.path))
		return err == nil && len(left) == 0 && !exists("/sys/fs/cgroup"+filepath.Dir(guaranteed.path))
	})
}

// unlimited is how cgroup v1 says so of memory.
const unlimited = "9223372036854771712"
