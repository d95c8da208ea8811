package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kill is one process that the kernel killed for want of memory.
type Kill struct {
	// System: the machine was out of memory, and not a cgroup at its limit.
	System  bool
	PID     int
	Process string
	// Cgroup is the victim's, as the kernel writes it: below the root of its tree.
	// "" is not told. Limit is the one that was at its limit, "" for the machine.
	Cgroup, Limit string
}

// kernelLog has what the kernel writes, a record a read (Documentation/ABI/testing/dev-kmsg).
const kernelLog = "/dev/kmsg"

// WatchOOM calls told for each process that the kernel kills for want of memory
// from now on, until ctx ends. An error says that the kernel's log cannot be read.
func WatchOOM(ctx context.Context, told func(Kill)) error {
	log, err := os.OpenFile(kernelLog, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	if _, err := log.Seek(0, 2); err != nil {
		return fmt.Errorf("kernel log: %w", err)
	}
	return watchOOM(ctx, log, func(k Kill) {
		if k.Cgroup == "" {
			// The kernel left it out. The victim may not have ended yet.
			data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", k.PID))
			k.Cgroup = memoryCgroup(string(data))
		}
		told(k)
	})
}

// memoryCgroup returns in which cgroup the memory of a process is counted, from its
// file in /proc; "" where that does not say.
func memoryCgroup(file string) string {
	unified := ""
	for line := range strings.Lines(file) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, dir, _ := strings.Cut(rest, ":")
		switch controllers {
		case "memory":
			return dir
		case "":
			unified = dir
		}
	}
	return unified
}

func watchOOM(ctx context.Context, log *os.File, told func(Kill)) error {
	if err := log.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("kernel log: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = log.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var s oomStory
	record := make([]byte, 16<<10)
	for {
		n, err := log.Read(record)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.EPIPE): // we were too slow, and the next read goes on
			s = oomStory{}
			continue
		case err != nil:
			return fmt.Errorf("kernel log: %w", err)
		}
		if text, ok := fromKernel(string(record[:n])); ok {
			if kill, ok := s.line(text); ok {
				told(kill)
			}
		}
	}
}

// fromKernel returns the text of a record. It is false for what a process wrote
// there: whoever may could tell of kills that never were.
func fromKernel(record string) (string, bool) {
	prefix, text, _ := strings.Cut(record, ";")
	priority, _, _ := strings.Cut(prefix, ",")
	n, err := strconv.Atoi(priority)
	if err != nil || n >= 8 { // facility 0, and one of eight levels
		return "", false
	}
	text, _, _ = strings.Cut(text, "\n")
	return text, true
}

// oomStory is what the lines before told of the kill that one will tell of.
type oomStory struct {
	Kill
	// group: more processes of the cgroup follow (memory.oom.group).
	group bool
}

// line reads the next line of the log, and returns the kill where it tells of one.
// The kernel leaves out the lines about the cgroup where it has too much to say.
func (s *oomStory) line(text string) (Kill, bool) {
	switch {
	case strings.HasPrefix(text, "oom-kill:"): // since 5.0
		*s = oomStory{Kill: constraint(strings.TrimPrefix(text, "oom-kill:"))}
		return Kill{}, false
	case strings.HasPrefix(text, "Task in ") && strings.Contains(text, " killed as a result of limit of "): // before
		victim, limit, _ := strings.Cut(strings.TrimPrefix(text, "Task in "), " killed as a result of limit of ")
		*s = oomStory{Kill: Kill{Cgroup: victim, Limit: limit}}
		return Kill{}, false
	case strings.HasPrefix(text, "Tasks in ") && strings.HasSuffix(text, " are going to be killed due to memory.oom.group set"):
		s.Cgroup = strings.TrimSuffix(strings.TrimPrefix(text, "Tasks in "), " are going to be killed due to memory.oom.group set")
		s.group, s.PID = true, 0
		return Kill{}, false
	case strings.HasPrefix(text, "Out of memory: Kill process "): // before 5.3; "Killed process" follows
		s.System = true
		return Kill{}, false
	}
	reason, rest, ok := strings.Cut(text, "Killed process ")
	if !ok || !killedFor(reason) {
		return Kill{}, false
	}
	number, rest, _ := strings.Cut(rest, " ")
	pid, err := strconv.Atoi(strings.TrimSuffix(number, ","))
	if err != nil {
		return Kill{}, false
	}
	known := s.Kill
	if known.PID != 0 && known.PID != pid {
		known = Kill{} // it is another's story
	}
	kill := Kill{PID: pid, Process: processName(rest), Cgroup: known.Cgroup, Limit: known.Limit}
	kill.System = known.System && known.Limit == "" || strings.HasPrefix(reason, "Out of memory")
	if !s.group {
		*s = oomStory{}
	}
	return kill, true
}

// killedFor reports whether a line begins as those do that tell of an end for want
// of memory: "Out of memory: ", "Memory cgroup out of memory: ", or nothing (before
// 5.3, and the further processes of a group).
func killedFor(reason string) bool {
	return reason == "" || strings.HasSuffix(strings.ToLower(reason), "out of memory: ") || reason == "Out of memory (oom_kill_allocating_task): "
}

// processName reads "(name) total-vm:...", or "UID n, (name) ..." of some versions.
// A name may hold anything.
func processName(rest string) string {
	_, rest, _ = strings.Cut(rest, "(")
	if end := strings.Index(rest, ") total-vm"); end >= 0 {
		return rest[:end]
	}
	name, _, _ := strings.Cut(rest, ")")
	return name
}

// constraint reads constraint=..,nodemask=..,cpuset=..,mems_allowed=..,
// oom_memcg=..,task_memcg=..,task=..,pid=..,uid=.. The name of the task, which is
// the process's choice, is the last but two.
func constraint(text string) Kill {
	var k Kill
	before, task, _ := strings.Cut(text, ",task=")
	at := strings.LastIndex(task, ",pid=")
	if at < 0 {
		return k
	}
	pid, _, _ := strings.Cut(task[at+len(",pid="):], ",")
	k.PID, _ = strconv.Atoi(pid)
	k.Process = task[:at]
	before, k.Cgroup, _ = strings.Cut(before, ",task_memcg=")
	_, k.Limit, _ = strings.Cut(before, ",oom_memcg=")
	k.System = strings.HasSuffix(before, ",global_oom")
	return k
}
