package stats_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/stats"
)

func TestPlaceOf(t *testing.T) {
	v1 := map[string]string{
		"cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
		"memory": "/sys/fs/cgroup/memory", "pids": "/sys/fs/cgroup/pids",
	}
	for name, c := range map[string]struct {
		mounts map[string]string
		file   string
		want   map[string]string
	}{
		"v1, cgroupfs": {
			v1, "11:memory:/kubepods/burstable/pod1/abc\n4:cpu,cpuacct:/kubepods/burstable/pod1/abc\n3:pids:/other/abc\n1:name=systemd:/x\n0::/\n",
			map[string]string{
				"cpu":     "/sys/fs/cgroup/cpu,cpuacct/kubepods/burstable/pod1/abc",
				"cpuacct": "/sys/fs/cgroup/cpu,cpuacct/kubepods/burstable/pod1/abc",
				"memory":  "/sys/fs/cgroup/memory/kubepods/burstable/pod1/abc",
				"pids":    "/sys/fs/cgroup/pids/other/abc",
			},
		},
		"v2, systemd": {
			map[string]string{"": "/sys/fs/cgroup"}, "0::/kubepods.slice/kubepods-pod1.slice/docker-abc.scope\n",
			map[string]string{"": "/sys/fs/cgroup/kubepods.slice/kubepods-pod1.slice/docker-abc.scope"},
		},
		"a path with a colon":            {map[string]string{"": "/c"}, "0::/a:b\n", map[string]string{"": "/c/a:b"}},
		"a controller that is not there": {v1, "5:blkio:/x\n", map[string]string{}},
		"nonsense":                       {v1, "memory\n\n::\n", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, stats.PlaceOf(c.file, c.mounts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScheduled(t *testing.T) {
	for text, want := range map[string]int64{"0.1 0.2 0.3 2/345 678\n": 345, "0.1 0.2 0.3 x 1": -1, "": -1, "1 2 3 4/y 5": -1} {
		got, err := stats.Scheduled(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestOOMKills(t *testing.T) {
	for text, want := range map[string]int64{
		"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n":             3,  // v1, memory.oom_control
		"low 0\nhigh 0\nmax 9\noom 4\noom_kill 2\noom_group_kill 1": 2,  // v2, memory.events
		"oom_kill_disable 0\nunder_oom 0\n":                         -1, // before 4.13
		"":                                                          -1,
	} {
		if n, ok := stats.OOMKills(text); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %t", text, n, ok)
		}
	}
}

// The machine that runs this has memory, processors, processes and a disk.
func TestNode(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	n := stats.NewReader(slog.New(slog.NewTextHandler(&log, nil))).Node(stats.Paths{Root: dir, Images: "/dev/shm"})
	m := n.Memory
	if m.Capacity == nil || m.WorkingSet == nil || m.Available == nil {
		t.Fatalf("memory is not known: %+v\n%s", m, &log)
	}
	if *m.WorkingSet <= 0 || *m.Available <= 0 || *m.Available+*m.WorkingSet != *m.Capacity {
		t.Errorf("%d of %d in use and %d available", *m.WorkingSet, *m.Capacity, *m.Available)
	}
	if n.PIDs.Max == nil || n.PIDs.Running == nil || *n.PIDs.Running < 2 || *n.PIDs.Max <= *n.PIDs.Running {
		t.Errorf("processes: %+v", n.PIDs)
	}
	if n.CPU == nil || *n.CPU <= 0 {
		t.Error("the processors never worked")
	}
	out, err := exec.Command("stat", "-f", "-c", "%S %b %a %c", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	if n.NodeFS == nil || n.NodeFS.Capacity <= n.NodeFS.Available || n.NodeFS.Available <= 0 {
		t.Fatalf("%+v, and stat(1) says %s", n.NodeFS, out)
	}
	if n.ImageFS == nil || n.ImageFS.Device == n.NodeFS.Device || n.ContainerFS != n.ImageFS {
		t.Errorf("a filesystem in memory %+v is taken for the disk %+v", n.ImageFS, n.NodeFS)
	}
	if log.Len() > 0 {
		t.Errorf("it complains:\n%s", &log)
	}
}

func TestAFilesystemThatCannotBeTold(t *testing.T) {
	var log bytes.Buffer
	r := stats.NewReader(slog.New(slog.NewTextHandler(&log, nil)))
	gone := t.TempDir() + "/gone"
	for range 3 {
		n := r.Node(stats.Paths{Root: gone})
		if n.NodeFS != nil || n.ImageFS != nil || n.ContainerFS != nil {
			t.Errorf("told of what is not there: %+v", n)
		}
		if n.Memory.Available == nil {
			t.Error("memory is not known for that")
		}
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 2 {
		t.Errorf("want a warning for each, once:\n%s", &log)
	}
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	if n := r.Node(stats.Paths{Root: gone}); n.NodeFS == nil {
		t.Error("it is there now")
	}
}

// inCgroup starts a process in a cgroup of that name, as a container has one.
func inCgroup(t *testing.T, name string) (pid int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read line; exec sh -c 'echo; exec sleep 3600'")
	there, err := cmd.StdinPipe()
	check(t, err)
	counted, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	trees := []string{"/sys/fs/cgroup"} // v2
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		trees = []string{"/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"}
	}
	for _, tree := range trees {
		dir := filepath.Join(tree, name)
		check(t, os.Mkdir(dir, 0o700))
		t.Cleanup(func() { check(t, os.Remove(dir)) })
		check(t, os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(cmd.Process.Pid)), 0))
	}
	t.Cleanup(func() { // before the cgroups go
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	there.Close() // what it becomes now is counted there
	_, err = counted.Read(make([]byte, 1))
	check(t, err)
	return cmd.Process.Pid
}

func TestAProcessStandsForItsContainerOnly(t *testing.T) {
	id := fmt.Sprintf("podkeeper-test-%d", os.Getpid())
	pid := inCgroup(t, id)
	r := stats.NewReader(slog.New(slog.DiscardHandler))
	read := func(id string) stats.Container {
		return r.Pod(stats.Target{UID: "u1", HostNetwork: true, Containers: map[string]stats.Process{"app": {ID: id, PID: pid}}}).Containers["app"]
	}
	if own := read(id); own.WorkingSet == nil || own.Processes == nil || *own.Processes != 1 {
		t.Errorf("the container of the process: %+v", own)
	}
	if kills, ok := r.OOMKills(stats.Process{ID: id, PID: pid}); kills != 0 || !ok {
		t.Errorf("%d kills (%t)", kills, ok)
	}
	// The container ended, and its process's number is this one's now.
	if diff := cmp.Diff(stats.Container{}, read("podkeeper-other")); diff != "" {
		t.Errorf("told of another's process:\n%s", diff)
	}
}

// A container may end, and its process's number be another's, before it is read.
func TestAPodThatIsGone(t *testing.T) {
	var log bytes.Buffer
	r := stats.NewReader(slog.New(slog.NewTextHandler(&log, nil)))
	for name, pid := range map[string]int{"ended": 1<<22 + 1, "another's process": os.Getpid(), "never ran": 0} {
		p := r.Pod(stats.Target{
			UID: "u1", Sandbox: stats.Process{ID: "5b1d", PID: pid},
			Containers: map[string]stats.Process{"app": {ID: "5b1e", PID: pid}},
		})
		want := stats.Pod{UID: "u1", Time: p.Time, Containers: map[string]stats.Container{"app": {}}}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
	if log.Len() > 0 {
		t.Errorf("that is no fault:\n%s", &log)
	}
}

func TestFilesOfAPod(t *testing.T) {
	dir := t.TempDir()
	w := stats.NewWalker(nil, slog.New(slog.DiscardHandler))
	log := write(t, dir+"/abc-json.log", 10_000)
	rotated := write(t, dir+"/abc-json.log.1", 20_000)
	write(t, dir+"/config.v2.json", 30_000)
	p := stats.Pod{Containers: map[string]stats.Container{"app": {}}}
	w.Fill(&p, stats.Files{
		Containers: map[string]stats.ContainerFiles{"app": {Writable: dir + "/diff", Log: log}, "silent": {Log: dir + "/gone/x"}},
		Volumes:    map[string]string{"disk": mkdir(t, dir+"/disk"), "memory": "/dev/shm", "gone": dir + "/gone"},
	})
	app := p.Containers["app"]
	if want := blocks(t, log) + blocks(t, rotated); app.Logs == nil || app.Logs.Bytes != want || app.Logs.Inodes != 2 {
		t.Errorf("logs take %+v, want %d bytes in 2 files", app.Logs, want)
	}
	if app.RootFS != nil || p.Containers["silent"].Logs != nil {
		t.Errorf("told of what nobody has looked at: %+v", p)
	}
	if _, ok := p.Volumes["memory"]; !ok || len(p.Volumes) != 1 {
		t.Errorf("known at once are %v, want the one in memory", p.Volumes)
	}
}

// A look at a volume never waits for a walk: what is in a folder is told once it was made.
func TestVolume(t *testing.T) {
	dir := t.TempDir()
	w := stats.NewWalker(nil, slog.New(slog.DiscardHandler))
	w.SetWalk(func(_ context.Context, folder string) (stats.Usage, error) {
		if folder != dir {
			t.Errorf("%s is walked through", folder)
		}
		return stats.Usage{Bytes: 7, Inodes: 3}, nil
	})
	if fs, use := w.Volume(dir + "/gone"); fs != nil || use != nil {
		t.Errorf("of what is not there it tells %+v, %+v", fs, use)
	}
	if fs, use := w.Volume("/dev/shm"); fs == nil || use == nil || use.Bytes != fs.Used || use.Inodes != *fs.Inodes-*fs.InodesFree {
		t.Errorf("a filesystem of its own: %+v, %+v, want what it says itself", fs, use)
	}
	if fs, use := w.Volume(dir); fs == nil || fs.Capacity < 1<<20 || use != nil {
		t.Errorf("a folder that nobody walked through: %+v, %+v, want its filesystem alone", fs, use)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var walks sync.WaitGroup
	walks.Go(func() { _ = w.Run(ctx) })
	w.Await(ctx, []string{dir})
	if _, use := w.Volume(dir); use == nil || use.Bytes != 7 || use.Inodes != 3 {
		t.Errorf("after the walk: %+v", use)
	}
	cancel()
	walks.Wait()
}

func TestReadMachine(t *testing.T) {
	m, err := stats.ReadMachine()
	if err != nil {
		t.Fatal(err)
	}
	online, err := exec.Command("getconf", "_NPROCESSORS_ONLN").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strconv.Itoa(m.Cores); got != strings.TrimSpace(string(online)) {
		t.Errorf("%s cores, and getconf says %s", got, online)
	}
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err != nil || m.BootID != strings.TrimSpace(string(boot)) {
		t.Errorf("boot %q, and the kernel says %q (%v)", m.BootID, boot, err)
	}
	if m.Memory <= 0 || m.PhysicalCores <= 0 || m.PhysicalCores > m.Cores {
		t.Errorf("got %+v", m)
	}
}
