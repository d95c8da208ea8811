package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/stats"
)

// usage measures a full read of what the node and its containers use. A container
// is to the reader a process in a cgroup, so that is what it gets here: 500 of them
// cost the machine little.
func (b *bench) usage(ctx context.Context) ([]Row, error) {
	var rows []Row
	for _, count := range []int{50, 500} {
		took, spent, err := b.readAll(ctx, count)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row(fmt.Sprintf("full stats read, %d containers", count), took, nil, "",
			fmt.Sprintf("%.1f ms of CPU; 10 containers a pod, node, logs and what is known of folders included", spent.median())))
	}
	return rows, nil
}

// perPod is how many containers of that row are in a pod.
const perPod = 10

// readAll returns how long each read took, and how much of a processor.
func (b *bench) readAll(ctx context.Context, count int) (took, spent sample, err error) {
	crowd := &crowd{name: fmt.Sprintf("podkeeper-bench-%d", os.Getpid())}
	defer func() { err = errors.Join(err, crowd.leave()) }()
	targets := make([]stats.Target, count/perPod)
	files := make([]stats.Files, len(targets))
	dir := b.own("usage")
	for i := range targets {
		uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		targets[i] = stats.Target{UID: uid, Containers: make(map[string]stats.Process)}
		files[i] = stats.Files{Containers: make(map[string]stats.ContainerFiles)}
		if targets[i].Sandbox, err = crowd.join(ctx, uid, "sandbox"); err != nil {
			return nil, nil, err
		}
		for j := range perPod {
			name := fmt.Sprintf("c%d", j)
			if targets[i].Containers[name], err = crowd.join(ctx, uid, name); err != nil {
				return nil, nil, err
			}
			at := filepath.Join(dir, string(uid), name)
			if err = os.MkdirAll(at, 0o755); err == nil {
				err = os.WriteFile(at+"/json.log", []byte("line\n"), 0o600)
			}
			if err != nil {
				return nil, nil, err
			}
			files[i].Containers[name] = stats.ContainerFiles{Writable: at, Log: at + "/json.log"}
		}
	}
	reader := stats.NewReader(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	walker := stats.NewWalker(nil, slog.New(slog.DiscardHandler)) // it answers, and walks nothing
	for i := range targets {                                      // until the last one has become it
		for ctx.Err() == nil && !allKnown(reader.Pod(targets[i])) {
			time.Sleep(10 * time.Millisecond)
		}
	}
	for range b.opts.n {
		begin, before := time.Now(), ownCPU()
		reader.Node(stats.Paths{Root: b.dir, Images: b.dir})
		for i := range targets {
			p := reader.Pod(targets[i])
			walker.Fill(&p, files[i])
			if !allKnown(p) {
				return nil, nil, fmt.Errorf("of a pod that runs it is not known what it uses: %+v", p)
			}
		}
		took.add(time.Since(begin))
		spent.add(ownCPU() - before)
	}
	return took, spent, nil
}

// allKnown reports whether each container of a pod uses memory.
func allKnown(p stats.Pod) bool {
	for _, c := range p.Containers {
		if c.WorkingSet == nil {
			return false
		}
	}
	return p.WorkingSet != nil && len(p.Containers) == perPod
}

// ownCPU is what this process has spent so far.
func ownCPU() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// crowd is processes in cgroups of their own, below one of the benchmark's.
type crowd struct {
	name      string
	processes []*exec.Cmd
	dirs      []string // the inner ones last
}

// join starts a process in a cgroup as a container of a pod has it.
func (c *crowd) join(ctx context.Context, uid types.UID, name string) (stats.Process, error) {
	id := fmt.Sprintf("%s-%s", uid[len(uid)-12:], name)
	// What it was before is counted elsewhere: it becomes another program there.
	cmd := exec.CommandContext(ctx, "sh", "-c", "read line; exec sleep 3600")
	there, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return stats.Process{}, err
	}
	defer there.Close()
	c.processes = append(c.processes, cmd)
	for _, tree := range trees() {
		dir := tree
		for _, part := range []string{c.name, "pod" + string(uid), id} {
			if tree == "/sys/fs/cgroup" { // v2: what is below has what is above handed down
				if err := os.WriteFile(dir+"/cgroup.subtree_control", []byte("+cpu +memory +pids"), 0); err != nil {
					return stats.Process{}, err
				}
			}
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err == nil {
				c.dirs = append(c.dirs, dir)
			} else if !errors.Is(err, os.ErrExist) {
				return stats.Process{}, err
			}
		}
		if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
			return stats.Process{}, err
		}
	}
	return stats.Process{ID: id, PID: cmd.Process.Pid}, nil
}

// trees are where cgroups are made: the one tree of v2, or of v1 each that counts.
func trees() []string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return []string{"/sys/fs/cgroup"}
	}
	var list []string
	for _, controller := range strings.Fields("cpuacct memory pids") {
		list = append(list, "/sys/fs/cgroup/"+controller)
	}
	return list
}

// leave ends the processes and removes their cgroups.
func (c *crowd) leave() error {
	for _, cmd := range c.processes {
		cmd.Process.Kill()
	}
	for _, cmd := range c.processes {
		cmd.Wait()
	}
	var errs []error
	for i := len(c.dirs) - 1; i >= 0; i-- {
		errs = append(errs, os.Remove(c.dirs[i]))
	}
	return errors.Join(errs...)
}
