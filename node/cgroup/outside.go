package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Process is one that runs on the machine.
type Process struct {
	PID  int
	Name string
	// Cgroup is the one that it is in: on cgroup v1, of the memory controller.
	Cgroup string
	// Kernel: it is a thread of the kernel.
	Kernel bool
	// Contained: it does not see the processes of the machine.
	Contained bool
}

// Groups are the cgroups of processes that are of no pod; "" leaves them where they
// are.
type Groups struct {
	// System is for those that are in no cgroup but that of the whole machine.
	System string
	// Engine and Agent are for these two, wherever they are.
	Engine, Agent string
}

// Move is a process and where it is to go.
type Move struct {
	PID      int
	Name, To string
}

// engines are the names of an engine's own processes, but those that look after one
// container, which belong to it.
var engines = []string{"dockerd", "containerd"}

// SelectMoves returns which processes are to go where. Threads of the kernel, process
// 1 and what is in a container never are.
func SelectMoves(list []Process, g Groups, agent int) []Move {
	var moves []Move
	for _, p := range list {
		to := ""
		switch {
		case p.Kernel || p.PID <= 1 || p.Contained:
		case p.PID == agent && g.Agent != "":
			to = g.Agent
		case slices.Contains(engines, p.Name) && g.Engine != "":
			to = g.Engine
		case p.Cgroup == "/":
			to = g.System
		}
		if to != "" && to != p.Cgroup {
			moves = append(moves, Move{p.PID, p.Name, to})
		}
	}
	return moves
}

// MachineProcesses returns what runs on the machine. proc is /proc; what has ended or may
// not be looked at is left out.
func (h Host) MachineProcesses(proc string) ([]Process, error) {
	version, err := h.Version()
	if err != nil {
		return nil, err
	}
	machine, err := os.Readlink(filepath.Join(proc, "self", "ns", "pid"))
	if err != nil {
		return nil, fmt.Errorf("look at processes: %w", err)
	}
	dirs, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("look at processes: %w", err)
	}
	var list []Process
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if p, err := readProcess(proc, pid, version, machine); err == nil {
			list = append(list, p)
		}
	}
	return list, nil
}

func readProcess(proc string, pid, version int, machine string) (Process, error) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return Process{}, err
	}
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return Process{}, err
	}
	p := Process{PID: pid, Name: strings.TrimSpace(string(name)), Cgroup: cgroupOf(string(groups), version)}
	if _, err := os.Readlink(filepath.Join(dir, "exe")); errors.Is(err, fs.ErrNotExist) {
		p.Kernel = true // as ps(1) tells them
	} else if err != nil {
		return Process{}, err
	}
	if namespace, err := os.Readlink(filepath.Join(dir, "ns", "pid")); err == nil {
		p.Contained = namespace != machine
	}
	return p, nil
}

// cgroupOf reads /proc/<pid>/cgroup.
func cgroupOf(text string, version int) string {
	for line := range strings.Lines(text) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) == 3 && (version == 2 && part[0] == "0" || version == 1 && slices.Contains(strings.Split(part[1], ","), "memory")) {
			return part[2]
		}
	}
	return ""
}

// MoveOut moves processes, into cgroups that are made where they are missing, and
// returns those that it moved. One that has ended meanwhile, or that the kernel keeps,
// is no error.
func (h Host) MoveOut(ctx context.Context, moves []Move) (moved []Move, err error) {
	ready := make(map[string]error)
	var errs []error
	for _, m := range moves {
		failed, known := ready[m.To]
		if !known {
			if _, failed = h.Read(m.To); errors.Is(failed, fs.ErrNotExist) {
				failed = h.Ensure(ctx, m.To, Limits{})
			}
			ready[m.To] = failed
			errs = append(errs, failed)
		}
		if failed != nil {
			continue
		}
		switch err := h.Move(m.To, m.PID); {
		case err == nil:
			moved = append(moved, m)
		case !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EINVAL):
			errs = append(errs, err)
		}
	}
	return moved, errors.Join(errs...)
}
