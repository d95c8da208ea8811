package nsenter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// KillTree ends a process in a container, with what it started: the members of
// its session and its descendants. alive says that it was there to be killed. What
// is not of the container is not touched.
func KillTree(pid int, containerID string) (alive bool, err error) {
	// All of them are stopped before the first dies: the child of one that was
	// killed while it forked would be nobody's, and found by no one.
	const rounds = 10
	var stopped []int
	for round := 1; ; round++ {
		table, err := processTable()
		if err != nil {
			return alive, err
		}
		victims := tree(table, pid)
		alive = alive || slices.Contains(victims, pid)
		sig := unix.SIGSTOP
		if round == rounds || slices.Equal(victims, stopped) {
			sig = unix.SIGKILL
		}
		// The last first: with its leader gone the kernel lets a stopped group go on.
		var failed error
		for _, victim := range slices.Backward(victims) {
			failed = errors.Join(failed, signalProcess(victim, sig, containerID))
		}
		if sig == unix.SIGKILL {
			await(victims, containerID)
			return alive, failed
		}
		stopped = victims
	}
}

func signalProcess(pid int, sig unix.Signal, containerID string) error {
	handle, err := handleOf(pid, containerID)
	if err != nil || handle < 0 {
		return err
	}
	defer unix.Close(handle)
	if err := unix.PidfdSendSignal(handle, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send signal %d to process %d: %w", sig, pid, err)
	}
	return nil
}

// handleOf returns a handle, so that another process which got the number meanwhile is
// safe. It is negative where the process has ended or is not of the container, as the
// numbers of another PID namespace than the engine's are not.
func handleOf(pid int, containerID string) (int, error) {
	handle, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("open process %d: %w", pid, err)
	}
	groups, err := os.ReadFile(filepath.Join(procDir(pid), "cgroup"))
	if err != nil || !strings.Contains(string(groups), containerID) {
		unix.Close(handle)
		return -1, nil
	}
	return handle, nil
}

// deathTime is how long those that were killed are waited for: one that is in the
// kernel's hands may take it long.
const deathTime = 2 * time.Second

// await waits until killed processes are dead, if that is soon.
func await(pids []int, containerID string) {
	until := time.Now().Add(deathTime)
	for _, pid := range pids {
		handle, err := handleOf(pid, containerID)
		if err != nil || handle < 0 {
			continue
		}
		for left := time.Until(until); left > 0; left = time.Until(until) {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		unix.Close(handle)
	}
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
