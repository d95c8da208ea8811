package agent_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/node/cgroup"
)

// cgroupOf is where the cgroup of a container's process lies, of the memory controller
// on cgroup v1.
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

// file reads one of the cgroup that many levels up, by its name on v1, which begins with
// the controller's, and on v2.
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
	if got := w.inspect(ids["burstable-node/a/0"]).HostConfig.PidsLimit; got != nil {
		t.Errorf("the container has a limit of %d processes besides", *got)
	}
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

// kubepods returns where pods' cgroups are to be, in a place of the test's own, and
// that place.
func (w *world) kubepods(driver cgroup.Driver) (path, root string) {
	root = "/podkeepertest" + filepath.Base(w.tmp)[len("podkeeper-test-"):]
	w.cfg.Cgroups.Root = root
	w.t.Cleanup(func() {
		if err := (cgroup.Host{}).Remove(context.Background(), driver.Path(root[1:])); err != nil {
			w.t.Error(err)
		}
	})
	return driver.Path(root[1:], "kubepods"), root
}

// engineDriver returns the cgroup driver of the engine.
func (w *world) engineDriver() cgroup.Driver {
	w.t.Helper()
	info, err := w.engine.Info(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return cgroup.Driver(info.CgroupDriver)
}

// refused starts an agent that ends by itself, and returns why.
func (w *world) refused() string {
	w.t.Helper()
	w.start()
	select {
	case err := <-w.ended:
		w.cancel = nil
		if err != nil {
			return err.Error()
		}
	case <-time.After(*patience):
		w.t.Error("the agent has not ended")
	}
	return ""
}

// Law 6: cgroups of pods that are not ours are neither shared nor touched.
func TestForeignPods(t *testing.T) {
	w := newWorld(t)
	driver := w.engineDriver()
	path, root := w.kubepods(driver)
	foreign := driver.Path(root[1:], "kubepods", "burstable", "podnobody")
	var host cgroup.Host
	if err := host.Ensure(t.Context(), foreign, cgroup.Limits{}); err != nil {
		t.Fatal(err)
	}
	theirs := exec.Command("sleep", "1000")
	if err := theirs.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- theirs.Wait() }()
	if err := host.Move(foreign, theirs.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if got := w.refused(); !strings.Contains(got, "holds pods that are not ours") || !strings.Contains(got, "nobody") || !strings.Contains(got, "--cgroup-root") {
		t.Errorf("the agent ended with %q", got)
	}
	if pids, err := host.Processes(foreign); err != nil || !slices.Equal(pids, []int{theirs.Process.Pid}) {
		t.Errorf("in %s are %v, %v", path, pids, err)
	}
	if err := theirs.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// A driver that the engine does not have is refused, with both names.
func TestCgroupDriver(t *testing.T) {
	w := newWorld(t)
	other := agent.Systemd
	if w.engineDriver() == other {
		other = agent.Cgroupfs
	}
	w.cfg.Cgroups.Driver = other
	if got := w.refused(); !strings.Contains(got, "--cgroup-driver is "+string(other)+", that of the engine "+string(w.engineDriver())) {
		t.Errorf("the agent ended with %q", got)
	}
}

// Pods stay where they were made: a container goes where its sandbox is. What a crash
// left of a pod that nobody wants any more goes, whoever is in it.
func TestWithoutPodCgroups(t *testing.T) {
	w := newWorld(t)
	driver := w.engineDriver()
	path, root := w.kubepods(driver)
	w.cfg.Cgroups.Off = true
	w.cfg.PodPIDs = 60
	text := manifest("{name: old}", sleeping("a"))
	w.write("old.yaml", text)
	w.start()
	w.await("it runs", runs("old", "a", 0))
	ids := w.ids()
	old := w.inspect(ids["old-node/a/0"])
	if old.HostConfig.CgroupParent != "" || *old.HostConfig.PidsLimit != 60 {
		t.Errorf("made in %q with %d processes", old.HostConfig.CgroupParent, *old.HostConfig.PidsLimit)
	}
	if exists("/sys/fs/cgroup/memory"+path) || exists("/sys/fs/cgroup"+path) {
		t.Errorf("there is a cgroup %s", path)
	}
	w.stop()

	w.cfg.Cgroups.Off = false
	left := driver.Path(root[1:], "kubepods", "besteffort", "podleft")
	var host cgroup.Host
	if err := host.Ensure(t.Context(), left+"/inner", cgroup.Limits{}); err != nil {
		t.Fatal(err)
	}
	mkdir(t, filepath.Join(w.cfg.RootDir, "pods", "left"))
	w.write("new.yaml", manifest("{name: new}", sleeping("a")))
	w.start()
	w.await("both run", runs("old", "a", 0), runs("new", "a", 0))
	w.same(ids, "old-node/POD/0", "old-node/a/0")
	made := w.inspect(w.ids()["new-node/a/0"])
	if cgroup.ParentPath(made.HostConfig.CgroupParent) != driver.Path(root[1:], "kubepods", "besteffort", "pod"+made.Config.Labels["io.kubernetes.pod.uid"]) || made.HostConfig.PidsLimit != nil {
		t.Errorf("made in %q, with %v processes", made.HostConfig.CgroupParent, made.HostConfig.PidsLimit)
	}
	w.poll("what a crash left is gone", func() bool {
		_, err := host.Processes(left)
		return errors.Is(err, fs.ErrNotExist)
	})
	w.kill(ids["old-node/a/0"])
	w.await("it is restarted", runs("old", "a", 1))
	if again := w.inspect(w.ids()["old-node/a/1"]); again.HostConfig.CgroupParent != "" || *again.HostConfig.PidsLimit != 60 {
		t.Errorf("restarted in %q", again.HostConfig.CgroupParent)
	}
	w.stop()

	w.cfg.Cgroups.Off = true
	w.start()
	w.kill(w.ids()["new-node/a/0"])
	w.await("it is restarted", runs("new", "a", 1))
	if again := w.inspect(w.ids()["new-node/a/1"]); again.HostConfig.CgroupParent != made.HostConfig.CgroupParent {
		t.Errorf("restarted in %q, want %q", again.HostConfig.CgroupParent, made.HostConfig.CgroupParent)
	}
	w.remove("new.yaml")
	w.poll("its cgroup went with it", func() bool {
		_, err := host.Processes(cgroup.ParentPath(made.HostConfig.CgroupParent))
		return errors.Is(err, fs.ErrNotExist)
	})
}
