package cgroup_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/cgroup"
)

// fakeV1 and fakeV2 return a folder that looks like the mount point of cgroups. What
// the kernel would put in a new cgroup is missing there, so that what was written is
// all that is found.
func fakeV1(t *testing.T) cgroup.Host {
	mount := t.TempDir()
	for _, controller := range []string{"cpu", "cpuacct", "memory", "pids", "systemd"} {
		put(t, filepath.Join(mount, controller, "cgroup.procs"), "")
	}
	return cgroup.Host{Mount: mount}
}

func fakeV2(t *testing.T, controllers string) cgroup.Host {
	mount := t.TempDir()
	put(t, filepath.Join(mount, "cgroup.controllers"), controllers)
	for _, dir := range []string{"", "kubepods", "kubepods/burstable", "kubepods.slice", "kubepods.slice/kubepods-burstable.slice"} {
		put(t, filepath.Join(mount, dir, "cgroup.subtree_control"), "")
	}
	return cgroup.Host{Mount: mount}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// files returns what is in the files of a fake cgroup.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		if data, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil {
			all[e.Name()] = string(data)
		}
	}
	return all
}

var burstable = cgroup.Pod{UID: "a-1", Class: v1.PodQOSBurstable, Limits: cgroup.Limits{
	CPUShares: 512, CPUQuota: 50_000, Memory: 64 << 20, Pids: 100, HugePages: map[string]int64{"2MB": 4 << 20},
}}

func TestEnsureWritesV2(t *testing.T) {
	h := fakeV2(t, "cpu memory pids hugetlb")
	if err := h.Ensure(t.Context(), "/kubepods/burstable/poda-1", burstable.Limits); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"cpu.weight": "20", "cpu.max": "50000 100000", "memory.max": "67108864", "pids.max": "100", "hugetlb.2MB.max": "4194304"}
	if diff := cmp.Diff(want, files(t, h.Mount+"/kubepods/burstable/poda-1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, dir := range []string{"", "/kubepods", "/kubepods/burstable"} {
		if got := files(t, h.Mount+dir)["cgroup.subtree_control"]; got != "+cpu +memory +pids +hugetlb" {
			t.Errorf("%s hands down %q", dir, got)
		}
	}
	if err := h.Set(t.Context(), "/kubepods/burstable/poda-1", cgroup.Limits{CPUShares: 2}, false); err != nil {
		t.Fatal(err)
	}
	want = map[string]string{"cpu.weight": "1", "cpu.max": "max 100000", "memory.max": "9223372036854775807", "pids.max": "max", "hugetlb.2MB.max": "4194304"}
	if diff := cmp.Diff(want, files(t, h.Mount+"/kubepods/burstable/poda-1")); diff != "" {
		t.Errorf("no limits (-want +got):\n%s", diff)
	}
}

// A controller that the kernel does not have is left out, if nothing hangs on it.
func TestEnsureWithoutControllers(t *testing.T) {
	h := fakeV2(t, "cpu memory")
	if err := h.Ensure(t.Context(), "/kubepods/poda-1", burstable.Limits); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"cpu.weight": "20", "cpu.max": "50000 100000", "memory.max": "67108864"}
	if diff := cmp.Diff(want, files(t, h.Mount+"/kubepods/poda-1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnsureWritesV1(t *testing.T) {
	h := fakeV1(t)
	if err := h.Ensure(t.Context(), "/kubepods/poda-1", burstable.Limits); err != nil {
		t.Fatal(err)
	}
	for controller, want := range map[string]map[string]string{
		"cpu":    {"cpu.shares": "512", "cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"},
		"memory": {"memory.limit_in_bytes": "67108864"},
		"pids":   {"pids.max": "100"},
	} {
		if diff := cmp.Diff(want, files(t, filepath.Join(h.Mount, controller, "kubepods/poda-1"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", controller, diff)
		}
	}
	if err := h.Set(t.Context(), "/kubepods/poda-1", cgroup.Limits{}, false); err != nil {
		t.Fatal(err)
	}
	if l, err := h.Read("/kubepods/poda-1"); err != nil || !l.Equal(cgroup.Limits{CPUShares: 512}) {
		t.Errorf("without limits, shares as they are: %+v, %v", l, err)
	}
}

// What nobody speaks of in somebody else's cgroup stays as it is.
func TestKeptLimits(t *testing.T) {
	for name, h := range map[string]cgroup.Host{"v1": fakeV1(t), "v2": fakeV2(t, "cpu memory pids")} {
		has := cgroup.Limits{CPUShares: 512, CPUQuota: 20_000, CPUPeriod: 50_000, Memory: 64 << 20, Pids: 100}
		set := cgroup.Limits{CPUShares: 1024, CPUQuota: cgroup.Keep, Memory: cgroup.Keep, Pids: cgroup.Keep}
		err := errors.Join(h.Ensure(t.Context(), "/x", has), h.Set(t.Context(), "/x", set, false))
		got, read := h.Read("/x")
		if err := errors.Join(err, read); err != nil {
			t.Fatal(err)
		}
		if cgroup.Weight(got.CPUShares) != cgroup.Weight(1024) {
			t.Errorf("%s: %d shares, want 1024", name, got.CPUShares)
		}
		got.CPUShares = has.CPUShares
		if !got.Equal(has) {
			t.Errorf("%s: it is %+v, want all but the shares as they were: %+v", name, got, has)
		}
	}
}

// With grow nothing becomes tighter, so that a pod is never smaller than what its
// containers have.
func TestGrow(t *testing.T) {
	for name, h := range map[string]cgroup.Host{"v1": fakeV1(t), "v2": fakeV2(t, "cpu memory pids")} {
		has := cgroup.Limits{CPUShares: 512, CPUQuota: 50_000, Memory: 64 << 20, Pids: 100}
		for _, step := range []struct{ set, grow, want cgroup.Limits }{
			{has, cgroup.Limits{CPUShares: 1024, CPUQuota: 20_000, Memory: 128 << 20, Pids: 50}, cgroup.Limits{CPUShares: 1024, CPUQuota: 50_000, Memory: 128 << 20, Pids: 100}},
			{has, cgroup.Limits{CPUShares: 512}, cgroup.Limits{CPUShares: 512}},
			{cgroup.Limits{CPUShares: 2}, has, cgroup.Limits{CPUShares: 512}},
		} {
			err := errors.Join(h.Ensure(t.Context(), "/x", step.set), h.Set(t.Context(), "/x", step.grow, true))
			got, read := h.Read("/x")
			if err := errors.Join(err, read); err != nil {
				t.Fatal(err)
			}
			if cgroup.Weight(got.CPUShares) != cgroup.Weight(step.want.CPUShares) {
				t.Errorf("%s: %d shares, want %d", name, got.CPUShares, step.want.CPUShares)
			}
			got.CPUShares = step.want.CPUShares
			if !got.Equal(step.want) {
				t.Errorf("%s: %+v grown to %+v is %+v, want %+v", name, step.set, step.grow, got, step.want)
			}
		}
	}
}

// What was a mount point and is none any more is an error, and is not written to.
func TestVanishedMount(t *testing.T) {
	for name, h := range map[string]cgroup.Host{"v1": fakeV1(t), "v2": fakeV2(t, "cpu memory")} {
		left, err := filepath.Glob(h.Mount + "/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		put(t, h.Mount+"/memory/left", "")
		tree := cgroup.NewTree(h, "/")
		tree.Use(cgroup.Cgroupfs)
		_, err = tree.EnsurePod(t.Context(), burstable)
		_, read := h.Read("/")
		for _, err := range []error{err, read, tree.Keep(t.Context()), tree.RemovePod(t.Context(), "a-1"), h.Set(t.Context(), "/x", burstable.Limits, false), h.Move("/x", 1)} {
			if err == nil || !strings.Contains(err.Error(), "no cgroups are mounted at "+h.Mount) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if there, _ := filepath.Glob(h.Mount + "/*/*"); len(there) != 1 {
			t.Errorf("%s: made %v", name, there)
		}
	}
}

// The classes' values follow the pods': burstable has what they ask for together.
func TestKeep(t *testing.T) {
	h := fakeV1(t)
	tree := cgroup.NewTree(h, "/")
	shares := func(path string) int64 {
		l, err := h.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		return l.CPUShares
	}
	ensure := func(uid types.UID, class v1.PodQOSClass, n int64) {
		if _, err := tree.EnsurePod(t.Context(), cgroup.Pod{UID: uid, Class: class, Limits: cgroup.Limits{CPUShares: n}}); err != nil {
			t.Fatal(err)
		}
	}
	keep := func() {
		if err := tree.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tree.EnsurePod(t.Context(), burstable); err == nil || tree.Path() != "" {
		t.Errorf("made before the engine said how: %v", err)
	}
	if err := tree.SetNode(t.Context(), cgroup.Limits{CPUShares: 2048, Memory: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	tree.Use(cgroup.Cgroupfs)
	put(t, h.Mount+"/cpu/kubepods/burstable/podold/x", "") // of a process before this one
	if err := h.Ensure(t.Context(), "/kubepods/burstable", cgroup.Limits{CPUShares: 4000}); err != nil {
		t.Fatal(err)
	}
	ensure("a", v1.PodQOSBurstable, 512)
	ensure("b", v1.PodQOSBurstable, 100)
	ensure("c", v1.PodQOSGuaranteed, 1024)
	ensure("d", v1.PodQOSBestEffort, 2)
	keep()
	if got := shares("/kubepods/burstable"); got != 4000 {
		t.Errorf("burstable has %d although not all pods are known, want it left at 4000", got)
	}
	ensure("old", v1.PodQOSBurstable, 10)
	keep()
	if got := shares("/kubepods/burstable"); got != 622 {
		t.Errorf("burstable has %d, want 622", got)
	}
	if got := shares("/kubepods/besteffort"); got != 2 {
		t.Errorf("besteffort has %d, want 2", got)
	}
	put(t, h.Mount+"/cpu/kubepods/besteffort/cpu.shares", "1024")
	put(t, h.Mount+"/memory/kubepods/memory.limit_in_bytes", "4096")
	keep()
	if got := shares("/kubepods/besteffort"); got != 2 {
		t.Errorf("besteffort has %d after somebody changed it, want 2", got)
	}
	if got, err := h.Read("/kubepods"); err != nil || !got.Equal(cgroup.Limits{CPUShares: 2048, Memory: 1 << 30}) {
		t.Errorf("all pods have %+v, %v", got, err)
	}
	put(t, h.Mount+"/pids/kubepods/burstable/podb/pids.current", "0\n")
	put(t, h.Mount+"/pids/kubepods/burstable/poda/pids.current", "3\n")
	keep()
	if got := shares("/kubepods/burstable"); got != 522 {
		t.Errorf("burstable has %d when one is over, want 522", got)
	}
	ensure("e", v1.PodQOSBurstable, 400)
	if got := shares("/kubepods/burstable"); got != 1022 {
		t.Errorf("burstable has %d with one more, want 1022 at once", got)
	}
}

// The kernel counts memory in whole pages, which is no change that somebody made.
func TestKeepRoundsAsTheKernel(t *testing.T) {
	h := fakeV1(t)
	tree := cgroup.NewTree(h, "/")
	tree.Use(cgroup.Cgroupfs)
	page := int64(os.Getpagesize())
	if err := tree.SetNode(t.Context(), cgroup.Limits{Memory: 1000*page + 100}); err != nil {
		t.Fatal(err)
	}
	file, rounded := h.Mount+"/memory/kubepods/memory.limit_in_bytes", strconv.FormatInt(1000*page, 10)
	put(t, file, rounded)
	if err := tree.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != rounded {
		t.Errorf("the limit is %s, %v; want it left at %s", got, err, rounded)
	}
}

// Where nothing can be written, what is as it should be is no error, and all else says
// why; it goes on as soon as it can.
func TestReadOnlyMount(t *testing.T) {
	for name, h := range map[string]cgroup.Host{"v1": fakeV1(t), "v2": fakeV2(t, "cpu memory pids")} {
		if err := unix.Mount(h.Mount, h.Mount, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(h.Mount, 0); err != nil {
				t.Error(err)
			}
		})
		remount := func(flags uintptr) {
			if err := unix.Mount("", h.Mount, "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""); err != nil {
				t.Fatal(err)
			}
		}
		tree := cgroup.NewTree(h, "/")
		tree.Use(cgroup.Cgroupfs)
		if _, err := tree.EnsurePod(t.Context(), burstable); err != nil {
			t.Fatal(err)
		}
		for _, hierarchy := range []string{"memory", ""} {
			put(t, filepath.Join(h.Mount, hierarchy, "kubepods/burstable/poda-1/cgroup.procs"), "")
		}
		remount(unix.MS_RDONLY)
		if err := tree.Keep(t.Context()); err != nil {
			t.Errorf("%s: all is as it should be, and keeping it says %v", name, err)
		}
		other, bigger := burstable, burstable
		other.UID, bigger.Memory = "b", 128<<20
		_, err := tree.EnsurePod(t.Context(), other)
		for what, err := range map[string]error{
			"make": err, "set": tree.SetPod(t.Context(), "/kubepods/burstable/poda-1", bigger, false),
			"remove": tree.RemovePod(t.Context(), "a-1"), "node": tree.SetNode(t.Context(), cgroup.Limits{Memory: 1 << 30}),
		} {
			if !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "kubepods") {
				t.Errorf("%s, %s: %v, want the cgroup and the reason", name, what, err)
			}
		}
		remount(0)
		if _, err := tree.EnsurePod(t.Context(), other); err != nil {
			t.Errorf("%s, writable again: %v", name, err)
		}
	}
}

// units is a systemd that remembers what it was told, and has the folders of slices.
type units struct {
	mount string
	calls []string
}

func (u *units) say(verb, unit string, limits []systemd.Property) {
	text := verb + " " + unit
	for _, p := range limits {
		if p.Name == "MemoryMax" || p.Name == "CPUWeight" {
			text += " " + p.Name + "=" + p.Value.String()
		}
	}
	u.calls = append(u.calls, text)
}

func (u *units) Start(_ context.Context, unit string, limits []systemd.Property) error {
	u.say("start", unit, limits)
	return nil
}

func (u *units) Set(_ context.Context, unit string, limits []systemd.Property) error {
	u.say("set", unit, limits)
	return nil
}

func (u *units) Stop(_ context.Context, unit string) error {
	u.say("stop", unit, nil)
	return os.RemoveAll(u.mount + cgroup.ParentPath(unit))
}

// Slices are systemd's: it makes, sets and ends them, and what it has no word for is
// written where they are.
func TestSlices(t *testing.T) {
	h := fakeV2(t, "cpu memory pids hugetlb")
	told := &units{mount: h.Mount}
	h.Units = told
	tree := cgroup.NewTree(h, "/")
	tree.Use(cgroup.Systemd)
	parent, err := tree.EnsurePod(t.Context(), burstable)
	if err != nil || parent != "kubepods-burstable-poda_1.slice" {
		t.Fatalf("%q, %v", parent, err)
	}
	dir := h.Mount + "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda_1.slice"
	if got := files(t, dir)["hugetlb.2MB.max"]; got != "4194304" {
		t.Errorf("huge pages: %q", got)
	}
	bigger := burstable
	bigger.Memory = 128 << 20
	if err := errors.Join(tree.SetPod(t.Context(), parent, bigger, false), tree.RemovePod(t.Context(), "a-1"), tree.RemovePod(t.Context(), "a-1")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the pod's cgroup: %v, want it gone", err)
	}
	want := []string{
		"start kubepods.slice MemoryMax=@t 18446744073709551615",
		"start kubepods-besteffort.slice CPUWeight=@t 1 MemoryMax=@t 18446744073709551615",
		"start kubepods-burstable.slice CPUWeight=@t 1 MemoryMax=@t 18446744073709551615",
		"start kubepods-burstable.slice CPUWeight=@t 20 MemoryMax=@t 18446744073709551615",
		"start kubepods-burstable-poda_1.slice CPUWeight=@t 20 MemoryMax=@t 67108864",
		"set kubepods-burstable-poda_1.slice CPUWeight=@t 20 MemoryMax=@t 134217728",
		"stop kubepods-burstable-poda_1.slice",
	}
	if diff := cmp.Diff(want, told.calls); diff != "" {
		t.Errorf("systemd was told (-want +got):\n%s", diff)
	}
}
