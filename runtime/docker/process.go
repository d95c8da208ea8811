package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// killTree ends a process in a container, with what it started: the members of
// its session and its descendants. alive says that it was there to be killed. What
// is not of the container is not touched.
func killTree(pid int, containerID string) (alive bool, err error) {
	// What they start in the meantime is found in the next round.
	const rounds = 10
	for range rounds {
		table, err := processTable()
		if err != nil {
			return alive, err
		}
		victims := tree(table, pid)
		if len(victims) == 0 {
			return alive, nil
		}
		alive = alive || slices.Contains(victims, pid)
		for _, victim := range victims {
			if err := killProcess(victim, containerID); err != nil {
				return alive, err
			}
		}
	}
	return alive, nil
}

// killProcess kills through a handle, so that another process which got the
// number meanwhile is safe.
func killProcess(pid int, containerID string) error {
	handle, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(handle)
	groups, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil || !strings.Contains(string(groups), containerID) {
		// It ended, or this is another PID namespace than the engine's.
		return nil
	}
	if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	return nil
}

// process is what /proc/<pid>/stat says of one.
type process struct {
	pid, parent, session int
	dead                 bool
}

func processTable() ([]process, error) {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var table []process
	for _, dir := range dirs {
		if _, err := strconv.Atoi(dir.Name()); err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join("/proc", dir.Name(), "stat"))
		if err != nil {
			continue // it ended
		}
		if p, ok := parseStat(string(data)); ok {
			table = append(table, p)
		}
	}
	return table, nil
}

// parseStat reads "pid (name) state parent group session …"; the name may hold
// anything.
func parseStat(text string) (process, bool) {
	open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || shut < open {
		return process{}, false
	}
	var p process
	var state string
	var group int
	_, first := fmt.Sscan(text[:open], &p.pid)
	_, rest := fmt.Sscan(text[shut+1:], &state, &p.parent, &group, &p.session)
	p.dead = state == "Z" || state == "X"
	return p, first == nil && rest == nil
}

// tree returns the living ones of a session and the descendants of its leader.
func tree(table []process, root int) []int {
	children := map[int][]process{}
	var found []int
	seen := map[int]bool{}
	add := func(p process) {
		if !p.dead && !seen[p.pid] {
			seen[p.pid] = true
			found = append(found, p.pid)
		}
	}
	for _, p := range table {
		children[p.parent] = append(children[p.parent], p)
		if p.pid == root || p.session == root {
			add(p)
		}
	}
	for i := 0; i < len(found); i++ {
		for _, child := range children[found[i]] {
			add(child)
		}
	}
	return found
}
