package cgroup_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/cgroup"
)

func TestSelectMoves(t *testing.T) {
	all := cgroup.Groups{System: "/system", Engine: "/engine", Agent: "/agent"}
	const agent = 77
	for name, c := range map[string]struct {
		process cgroup.Process
		groups  cgroup.Groups
		want    string // "" is nowhere
	}{
		"one of nobody":                  {cgroup.Process{PID: 5, Name: "sshd", Cgroup: "/"}, all, "/system"},
		"one of nobody, nowhere to go":   {cgroup.Process{PID: 5, Name: "sshd", Cgroup: "/"}, cgroup.Groups{}, ""},
		"one that has a place":           {cgroup.Process{PID: 5, Name: "sshd", Cgroup: "/user"}, all, ""},
		"one of a pod":                   {cgroup.Process{PID: 5, Name: "sh", Cgroup: "/kubepods/pod1/x", Contained: true}, all, ""},
		"one of a container in the root": {cgroup.Process{PID: 5, Name: "sh", Cgroup: "/", Contained: true}, all, ""},
		"process 1":                      {cgroup.Process{PID: 1, Name: "init", Cgroup: "/"}, all, ""},
		"a kernel thread":                {cgroup.Process{PID: 2, Name: "kthreadd", Cgroup: "/", Kernel: true}, all, ""},
		"the agent":                      {cgroup.Process{PID: agent, Name: "podkeeper", Cgroup: "/user"}, all, "/agent"},
		"the agent in its place":         {cgroup.Process{PID: agent, Name: "podkeeper", Cgroup: "/agent"}, all, ""},
		"the agent without one":          {cgroup.Process{PID: agent, Name: "podkeeper", Cgroup: "/"}, cgroup.Groups{System: "/system"}, "/system"},
		"another agent":                  {cgroup.Process{PID: 78, Name: "podkeeper", Cgroup: "/user"}, all, ""},
		"the engine":                     {cgroup.Process{PID: 9, Name: "dockerd", Cgroup: "/user"}, all, "/engine"},
		"its other half":                 {cgroup.Process{PID: 9, Name: "containerd", Cgroup: "/"}, all, "/engine"},
		"an engine in a container":       {cgroup.Process{PID: 9, Name: "dockerd", Cgroup: "/docker/x", Contained: true}, all, ""},
		"what looks after a container":   {cgroup.Process{PID: 9, Name: "containerd-shim", Cgroup: "/user"}, all, ""},
		"the engine, left alone":         {cgroup.Process{PID: 9, Name: "dockerd", Cgroup: "/user"}, cgroup.Groups{System: "/system"}, ""},
	} {
		var want []cgroup.Move
		if c.want != "" {
			want = []cgroup.Move{{PID: c.process.PID, Name: c.process.Name, To: c.want}}
		}
		if diff := cmp.Diff(want, cgroup.SelectMoves([]cgroup.Process{c.process}, c.groups, agent)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// On this machine: a process of the test's own is moved to a cgroup that is made for
// it, and nothing else is.
func TestMoveOut(t *testing.T) {
	var host cgroup.Host
	group := fmt.Sprintf("/podkeeper_test_outside_%d", os.Getpid())
	child := exec.Command("sh", "-c", "echo ready; read line")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = child.Wait() // it read nothing, and says so
		if err := host.Remove(context.Background(), group); err != nil {
			t.Error(err)
		}
	})
	own := func() cgroup.Process {
		t.Helper()
		list, err := host.MachineProcesses("/proc")
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(list, func(p cgroup.Process) bool { return p.PID == child.Process.Pid })
		if at < 0 {
			t.Fatalf("process %d is not among %d", child.Process.Pid, len(list))
		}
		return list[at]
	}
	p := own()
	if p.Name != "sh" || p.Kernel || p.Contained || p.Cgroup == "" {
		t.Errorf("it is %+v", p)
	}
	p.Cgroup = "/" // as one of nobody
	moves := cgroup.SelectMoves([]cgroup.Process{p}, cgroup.Groups{System: group}, os.Getpid())
	// One that has ended is no error.
	moves = append(moves, cgroup.Move{PID: 1 << 30, Name: "gone", To: group})
	moved, err := host.MoveOut(t.Context(), moves)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]cgroup.Move{{PID: p.PID, Name: "sh", To: group}}, moved); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}
	if got := own().Cgroup; got != group {
		t.Errorf("it is in %s, want %s", got, group)
	}
	// The kernel says so for every controller that we use.
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), ":"+group+"\n"); n == 0 {
		t.Errorf("it is in\n%s", data)
	}
	pids, err := host.Processes(group)
	if diff := cmp.Diff([]int{p.PID}, pids); diff != "" || err != nil {
		t.Errorf("%v, in it (-want +got):\n%s", err, diff)
	}
}
