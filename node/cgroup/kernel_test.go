package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/node/kernel"
)

// The tests below make cgroups on this machine, of either version, in a place of
// their own.

// eachDriver runs a test with a tree of its own in the machine's cgroups, by each driver
// that this machine can have.
func eachDriver(t *testing.T, test func(*testing.T, *cgroup.Tree, cgroup.Driver)) {
	drivers := []cgroup.Driver{cgroup.Cgroupfs}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		drivers = append(drivers, cgroup.Systemd)
	}
	for _, d := range drivers {
		t.Run(string(d), func(t *testing.T) { test(t, kernelTree(t, d), d) })
	}
}

func kernelTree(t *testing.T, driver cgroup.Driver) *cgroup.Tree {
	t.Helper()
	root := fmt.Sprintf("podkeepertest%d", os.Getpid())
	tree := cgroup.NewTree(cgroup.Host{}, "/"+root)
	tree.Use(driver)
	t.Cleanup(func() {
		if err := tree.Remove(context.WithoutCancel(t.Context()), driver.Path(root)); err != nil {
			t.Error(err)
		}
	})
	if _, err := tree.Version(); err != nil {
		t.Fatal(err)
	}
	return tree
}

// kernelFile returns what the kernel says in a cgroup, by its file of v1 or of v2.
func kernelFile(t *testing.T, h cgroup.Host, path, v1, v2 string) string {
	t.Helper()
	version, err := h.Version()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("/sys/fs/cgroup", path, v2)
	if version == 1 {
		controller, _, _ := strings.Cut(v1, ".")
		file = filepath.Join("/sys/fs/cgroup", controller, path, v1)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// hugePages reports whether this machine's cgroups hold huge pages of 2 MiB.
func hugePages(t *testing.T) bool {
	t.Helper()
	c, err := kernel.ReadControllers("/sys/fs/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat("/sys/kernel/mm/hugepages/hugepages-2048kB")
	return err == nil && slices.Contains(c.Names, "hugetlb")
}

func TestLimitsInTheKernel(t *testing.T) { eachDriver(t, limitsInTheKernel) }

func limitsInTheKernel(t *testing.T, tree *cgroup.Tree, _ cgroup.Driver) {
	if err := tree.SetNode(t.Context(), cgroup.Limits{CPUShares: 2048, Memory: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	parent, err := tree.EnsurePod(t.Context(), cgroup.Pod{UID: "a-1", Class: v1.PodQOSBurstable, Limits: cgroup.Limits{
		CPUShares: 512, CPUQuota: 25_500, Memory: 64 << 20, Pids: 100, HugePages: map[string]int64{"2MB": 4 << 20},
	}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(path, name, v1, is1, v2, is2 string) {
		t.Helper()
		if got := kernelFile(t, tree.Host, path, v1, v2); got != is1 && got != is2 {
			t.Errorf("%s: %s is %q, want %q or %q", path, name, got, is1, is2)
		}
	}
	pod := cgroup.ParentPath(parent)
	check(pod, "weight", "cpu.shares", "512", "cpu.weight", "20")
	check(pod, "quota", "cpu.cfs_quota_us", "25500", "cpu.max", "25500 100000")
	check(pod, "memory", "memory.limit_in_bytes", "67108864", "memory.max", "67108864")
	check(pod, "pids", "pids.max", "100", "pids.max", "100")
	if hugePages(t) {
		check(pod, "huge pages", "hugetlb.2MB.limit_in_bytes", "4194304", "hugetlb.2MB.max", "4194304")
	}
	check(filepath.Dir(pod), "burstable's weight", "cpu.shares", "512", "cpu.weight", "20")
	check(tree.Path(), "the node's memory", "memory.limit_in_bytes", "1073741824", "memory.max", "1073741824")
	check(tree.Path(), "the node's weight", "cpu.shares", "2048", "cpu.weight", "79")

	err = tree.SetPod(t.Context(), parent, cgroup.Pod{UID: "a-1", Class: v1.PodQOSBurstable, Limits: cgroup.Limits{CPUShares: 256, Memory: 32 << 20}}, true)
	if err != nil {
		t.Fatal(err)
	}
	check(pod, "memory, grown", "memory.limit_in_bytes", "67108864", "memory.max", "67108864")
	check(pod, "quota, grown", "cpu.cfs_quota_us", "-1", "cpu.max", "max 100000")
	check(pod, "pids, grown", "pids.max", "max", "pids.max", "max")
	err = tree.SetPod(t.Context(), parent, cgroup.Pod{UID: "a-1", Class: v1.PodQOSBurstable, Limits: cgroup.Limits{CPUShares: 256}}, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tree.Read(pod); err != nil || got.Memory != 0 || got.CPUQuota != 0 || cgroup.Weight(got.CPUShares) != cgroup.Weight(256) {
		t.Errorf("without limits %+v, %v", got, err)
	}
}

// What is left in a pod's cgroup ends with it, whatever lies in it.
func TestRemovePodKillsWhatIsLeft(t *testing.T) { eachDriver(t, removePodKillsWhatIsLeft) }

func removePodKillsWhatIsLeft(t *testing.T, tree *cgroup.Tree, driver cgroup.Driver) {
	var pods []types.UID
	for _, class := range []v1.PodQOSClass{v1.PodQOSGuaranteed, v1.PodQOSBestEffort} {
		uid := types.UID(strings.ToLower(string(class)))
		pods = append(pods, uid)
		parent, err := tree.EnsurePod(t.Context(), cgroup.Pod{UID: uid, Class: class, Limits: cgroup.Limits{CPUShares: 2}})
		if err != nil {
			t.Fatal(err)
		}
		inner := cgroup.ParentPath(parent) + "/left"
		if err := tree.Ensure(t.Context(), inner, cgroup.Limits{}); err != nil {
			t.Fatal(err)
		}
		left := exec.Command("sleep", "1000")
		if err := left.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- left.Wait() }()
		if err := tree.Move(inner, left.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if pids, err := tree.Processes(inner); err != nil || !slices.Equal(pids, []int{left.Process.Pid}) {
			t.Errorf("in it are %v, %v; want %d", pids, err, left.Process.Pid)
		}
		if running, err := tree.Running(nil); err != nil || !slices.Contains(running, uid) {
			t.Errorf("pods with processes are %v, %v; want %s among them", running, err, uid)
		}
		if err := tree.RemovePod(t.Context(), uid); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil {
			t.Error("the process ended well, want it killed")
		}
		if _, err := tree.Read(cgroup.ParentPath(parent)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, want it gone", parent, err)
		}
	}
	if left, err := filepath.Glob("/sys/fs/cgroup/*" + driver.Path(fmt.Sprintf("podkeepertest%d", os.Getpid()), "kubepods") + "/*pod" + string(pods[0]) + "*"); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if running, err := tree.Running(nil); err != nil || len(running) > 0 {
		t.Errorf("pods with processes are %v, %v", running, err)
	}
}
