package kernel_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/node/kernel"
)

func TestKillsInTheKernelsLog(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want []kernel.Kill
	}{
		"a cgroup at its limit (6.1)": {`
tail invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
Memory cgroup stats for /docker/abc:
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=abc,mems_allowed=0,oom_memcg=/docker/abc,task_memcg=/docker/abc,task=tail,pid=123,uid=0
Memory cgroup out of memory: Killed process 123 (tail) total-vm:1kB, anon-rss:2kB, file-rss:3kB, shmem-rss:0kB, UID:0 pgtables:88kB oom_score_adj:0`,
			[]kernel.Kill{{PID: 123, Process: "tail", Cgroup: "/docker/abc", Limit: "/docker/abc"}},
		},
		"the machine (6.1)": {`
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/kubepods/besteffort/pod1/abc,task=stress,pid=7,uid=0
Out of memory: Killed process 7 (stress) total-vm:1kB, anon-rss:2kB`,
			[]kernel.Kill{{System: true, PID: 7, Process: "stress", Cgroup: "/kubepods/besteffort/pod1/abc"}},
		},
		"a pod at its limit": {`
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/abc,task=a,pid=9,uid=0
Memory cgroup out of memory: Killed process 9 (a) total-vm:1kB`,
			[]kernel.Kill{{PID: 9, Process: "a", Cgroup: "/kubepods/pod1/abc", Limit: "/kubepods/pod1"}},
		},
		"a cgroup at its limit (4.15)": {`
Task in /docker/abc killed as a result of limit of /docker/abc
memory: usage 51200kB, limit 51200kB, failcnt 44
Memory cgroup out of memory: Kill process 321 (stress) score 1 or sacrifice child
Killed process 321 (stress) total-vm:1kB, anon-rss:2kB`,
			[]kernel.Kill{{PID: 321, Process: "stress", Cgroup: "/docker/abc", Limit: "/docker/abc"}},
		},
		"the machine (4.15)": {`
Out of memory: Kill process 321 (stress) score 900 or sacrifice child
Killed process 322 (child) total-vm:1kB, anon-rss:2kB`,
			[]kernel.Kill{{System: true, PID: 322, Process: "child"}},
		},
		"too many at a time: the kernel does not say whose": {`
Memory cgroup out of memory: Killed process 5 (a) total-vm:1kB
Out of memory: Killed process 6 (b) total-vm:1kB`,
			[]kernel.Kill{{PID: 5, Process: "a"}, {System: true, PID: 6, Process: "b"}},
		},
		"what was said of one is not said of another": {`
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/x,task_memcg=/x,task=a,pid=9,uid=0
Memory cgroup out of memory: Killed process 10 (b) total-vm:1kB`,
			[]kernel.Kill{{PID: 10, Process: "b"}},
		},
		"all of a cgroup (memory.oom.group)": {`
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/p/abc,task_memcg=/p/abc,task=a,pid=9,uid=0
Memory cgroup out of memory: Killed process 9 (a) total-vm:1kB
Tasks in /p/abc are going to be killed due to memory.oom.group set
Memory cgroup out of memory: Killed process 10 (b) total-vm:1kB
Memory cgroup out of memory: Killed process 11 (c) total-vm:1kB`,
			[]kernel.Kill{
				{PID: 9, Process: "a", Cgroup: "/p/abc", Limit: "/p/abc"},
				{PID: 10, Process: "b", Cgroup: "/p/abc"}, {PID: 11, Process: "c", Cgroup: "/p/abc"},
			},
		},
		"a name that lies": {`
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/x,task_memcg=/x,task=a,pid=1,task=,pid=9,uid=0
Memory cgroup out of memory: Killed process 9 (a) (b) total-vm:1kB`,
			[]kernel.Kill{{PID: 9, Process: "a) (b", Cgroup: "/x", Limit: "/x"}},
		},
		"other lines": {`
traps: a[1] general protection fault
systemd[1]: Killed process 1 (x)
Killed process
Memory cgroup out of memory: Killed process x (a)`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var records []string
			for _, line := range strings.Split(strings.TrimSpace(c.log), "\n") {
				records = append(records, "4,1,2,-;"+line+"\n")
			}
			if diff := cmp.Diff(c.want, kills(t, records)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// kills are what is told of records that are read one after the other.
func kills(t *testing.T, records []string) []kernel.Kill {
	t.Helper()
	// Each read of such a socket is one record, as of the kernel's log.
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	write, read := os.NewFile(uintptr(pair[0]), "write"), os.NewFile(uintptr(pair[1]), "read")
	defer read.Close()
	for _, record := range records {
		if _, err := write.WriteString(record); err != nil {
			t.Fatal(err)
		}
	}
	write.Close()
	var list []kernel.Kill
	if err := kernel.WatchOOMIn(t.Context(), read, func(k kernel.Kill) { list = append(list, k) }); err == nil {
		t.Error("the log was over, and nobody said so")
	}
	return list
}

// Processes may write there, too: no kill is told because one of them says so.
func TestKillsThatAProcessTellsOf(t *testing.T) {
	const text = "Out of memory: Killed process 1 (init) total-vm:1kB\n"
	got := kills(t, []string{"12,1,2,-;" + text, "x,1,2,-;" + text, text, "4,1,2,-;" + text + " KEY=Killed process 2 (x) total-vm\n"})
	if diff := cmp.Diff([]kernel.Kill{{System: true, PID: 1, Process: "init"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMemoryCgroup(t *testing.T) {
	for text, want := range map[string]string{
		"9:name=systemd:/s\n4:memory:/docker/abc\n0::/u\n":          "/docker/abc",
		"0::/kubepods.slice/kubepods-pod1.slice/docker-abc.scope\n": "/kubepods.slice/kubepods-pod1.slice/docker-abc.scope",
		"": "",
	} {
		if got := kernel.MemoryCgroup(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Where the log can be read, reading it ends with its context.
func TestWatchOOMEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var run sync.WaitGroup
	run.Go(func() {
		err := kernel.WatchOOM(ctx, func(kernel.Kill) {})
		if _, unreadable := os.Stat("/dev/kmsg"); unreadable == nil && os.Geteuid() == 0 && err != nil {
			t.Error(err)
		}
	})
	run.Wait()
}
