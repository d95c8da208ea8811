package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// idle watches the agent, with no pod and with 50, while nothing happens.
func (b *bench) idle(ctx context.Context) ([]Row, error) {
	var rows []Row
	for _, pods := range []int{0, many} {
		a, err := b.startAgent(ctx, "")
		if err != nil {
			return nil, err
		}
		if err := b.await(ctx, "the agent is up", ready); err != nil {
			return nil, err
		}
		if pods > 0 {
			t0, names, err := b.putMany(b.plain)
			if err != nil {
				return nil, err
			}
			if _, err := b.awaitStamps(ctx, t0, names...); err != nil {
				return nil, err
			}
			if err := b.await(ctx, "all pods have settled", settled(pods)); err != nil {
				return nil, err
			}
		}
		got, err := b.watchIdle(ctx, a.cmd.Process.Pid, pods)
		if err != nil {
			return nil, err
		}
		rows = append(rows, got...)
		if pods > 0 {
			if err := b.takeMany(ctx); err != nil {
				return nil, err
			}
		}
		if err := a.stop(); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (b *bench) watchIdle(ctx context.Context, pid, pods int) ([]Row, error) {
	engine, err := pidOf("dockerd")
	if err != nil {
		return nil, err
	}
	before, err := cpuSeconds(pid)
	if err != nil {
		return nil, err
	}
	engineBefore, err := cpuSeconds(engine)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	select {
	case <-time.After(b.opts.idle):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	minutes := time.Since(begin).Minutes()
	after, err := cpuSeconds(pid)
	if err != nil {
		return nil, err
	}
	engineAfter, err := cpuSeconds(engine)
	if err != nil {
		return nil, err
	}
	rss, err := rssMiB(pid)
	if err != nil {
		return nil, err
	}
	engineRSS, err := rssMiB(engine)
	if err != nil {
		return nil, err
	}
	one := func(name, unit string, v float64, target, note string) Row {
		return Row{Name: fmt.Sprintf("idle with %d pods: %s", pods, name), Unit: unit, N: 1, Median: v, Min: v, Max: v, Target: target, Note: note}
	}
	return []Row{
		one("CPU", "ms/min", (after-before)*1000/minutes, "≤ 100 ms/min", fmt.Sprintf("over %s; the engine: %.0f ms/min", b.opts.idle, (engineAfter-engineBefore)*1000/minutes)),
		one("RSS", "MiB", rss, "≤ 50 MiB", fmt.Sprintf("the engine: %.0f MiB", engineRSS)),
	}, nil
}

// cpuSeconds returns the user and system time of a process so far.
func cpuSeconds(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything; utime and stime are the 12th and
	// 13th field after it (proc(5)), in ticks of 10 ms.
	fields := strings.Fields(string(data)[strings.LastIndex(string(data), ")")+1:])
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100, errors.Join(err1, err2)
}

func rssMiB(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("process %d has no VmRSS", pid)
}

func pidOf(name string) (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if comm, err := os.ReadFile("/proc/" + e.Name() + "/comm"); err == nil && strings.TrimSpace(string(comm)) == name {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no process %s", name)
}

// binary tells the size of the agent's program.
func (b *bench) binary(context.Context) ([]Row, error) {
	info, err := os.Stat(b.opts.binary)
	if err != nil {
		return nil, err
	}
	mb := float64(info.Size()) / 1e6
	return []Row{{Name: "stripped binary", Unit: "MB", N: 1, Median: mb, Min: mb, Max: mb, Target: "≤ 40 MB"}}, nil
}
