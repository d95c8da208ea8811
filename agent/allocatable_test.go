package agent_test

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/server"
)

// What is reserved is not for pods: the kernel holds all of them together to the rest,
// and one that asks for more than that is not let in.
func TestReservedResources(t *testing.T) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		t.Fatal(err)
	}
	pids, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	// What is to stay free is not for those that come, but those that are there can
	// use it.
	held := int64(info.Totalram)*int64(info.Unit) - 1<<30
	memory := held - 32<<20
	milli := goruntime.NumCPU()*1000 - 300

	w := newWorld(t)
	w.cfg.Node = agent.NodeConfig{
		HoldPods: true,
		System:   agent.Reserved{Memory: 768 << 20, CPU: 200, PIDs: 100},
		Kube:     agent.Reserved{Memory: 256 << 20, CPU: 100, PIDs: 50},
	}
	w.cfg.Eviction.Policy = gc.EvictionPolicy{Thresholds: []gc.Threshold{
		{Signal: gc.MemoryAvailable, Soft: true, Grace: time.Hour, Amount: gc.Amount{Value: 64 << 20}},
		{Signal: gc.MemoryAvailable, Amount: gc.Amount{Value: 32 << 20}},
		{Signal: gc.NodeFSAvailable, Amount: gc.Amount{Value: 16 << 20}},
	}}
	var disk unix.Statfs_t
	if err := unix.Statfs(os.TempDir(), &disk); err != nil {
		t.Fatal(err)
	}
	storage := int64(disk.Blocks)*disk.Bsize - 16<<20
	w.write("small.yaml", manifest("{name: small}", sleeping("c")))
	w.write("large.yaml", manifest("{name: large}", sleeping("c", fmt.Sprintf("resources: {requests: {memory: %d}}", memory+1))))
	w.write("wide.yaml", manifest("{name: wide}", sleeping("c", fmt.Sprintf("resources: {requests: {cpu: %dm}}", milli+1))))
	w.write("deep.yaml", manifest("{name: deep}", sleeping("c", fmt.Sprintf("resources: {requests: {ephemeral-storage: %d}}", storage+1))))
	w.start()
	w.await("the small one runs", running("small"))
	for name, want := range map[string]string{
		"large": fmt.Sprintf("memory, requested: %d, used: 0, capacity: %d", memory+1, memory),
		"deep":  fmt.Sprintf("ephemeral-storage, requested: %d, used: 0, capacity: %d", storage+1, storage),
		"wide":  fmt.Sprintf("cpu, requested: %d, used: 0, capacity: %d", milli+1, milli),
	} {
		w.await(name+" waits", func(s server.State) bool {
			p := find(s, name)
			return p != nil && strings.Contains(p.Pod.Status.Message, want)
		})
	}
	const kubepods = 3 // above a container of a best effort pod
	c := w.cgroup(w.inspect(w.containers()["small-node/c/0"].ID).State.Pid)
	c.check(kubepods, "memory", "memory.limit_in_bytes", strconv.FormatInt(held, 10), "memory.max", strconv.FormatInt(held, 10))
	shares := milli * 1024 / 1000
	c.check(kubepods, "cpu", "cpu.shares", strconv.Itoa(shares), "cpu.weight", strconv.Itoa(1+(shares-2)*9999/262142))
	c.check(kubepods, "processes", "pids.max", strconv.Itoa(pids-150), "pids.max", strconv.Itoa(pids-150))
}

// Somebody's cgroup is held to what is reserved for it, and keeps what it has else.
func TestReservedCgroup(t *testing.T) {
	w := newWorld(t)
	var host cgroup.Host
	path := fmt.Sprintf("/podkeepertest%d_reserved", os.Getpid())
	t.Cleanup(func() {
		if err := host.Remove(context.WithoutCancel(t.Context()), path); err != nil {
			t.Error(err)
		}
	})
	has := cgroup.Limits{CPUShares: 1024, CPUQuota: 90_000, Memory: 512 << 20, Pids: 1000}
	if err := host.Ensure(t.Context(), path, has); err != nil {
		t.Fatal(err)
	}
	w.write("p.yaml", manifest("{name: p}", sleeping("c")))
	run := func(reserved agent.Reserved, want cgroup.Limits) {
		t.Helper()
		w.cfg.Node = agent.NodeConfig{SystemCgroup: path, System: reserved}
		w.start()
		w.await("the pod runs", running("p"))
		w.stop()
		got, err := host.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if cgroup.Weight(got.CPUShares) != cgroup.Weight(want.CPUShares) {
			t.Errorf("with %+v reserved it has %d shares, want %d", reserved, got.CPUShares, want.CPUShares)
		}
		if got.CPUShares = want.CPUShares; !got.Equal(want) {
			t.Errorf("with %+v reserved it has %+v, want %+v", reserved, got, want)
		}
	}
	has.CPUShares = 512
	run(agent.Reserved{CPU: 500}, has)
	has.Memory, has.Pids = 256<<20, 300
	run(agent.Reserved{Memory: 256 << 20, PIDs: 300}, has)
}

// A cgroup that is to be held to something must be there.
func TestReservedCgroupIsMissing(t *testing.T) {
	w := newWorld(t)
	w.cfg.Node = agent.NodeConfig{SystemCgroup: "/podkeeper_no_such_cgroup"}
	if err := agent.Run(t.Context(), w.cfg, w.log); err == nil || !strings.Contains(err.Error(), "--system-reserved-cgroup: limits of cgroup /podkeeper_no_such_cgroup") {
		t.Errorf("%v, want the flag and the cgroup named", err)
	}
}
