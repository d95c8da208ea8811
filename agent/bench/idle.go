package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/server"
)

// quiet is an agent that has nothing to do, and what it has spent so far.
type quiet struct {
	name   string
	agent  *agent
	target string  // of its CPU
	spent  float64 // seconds of CPU
}

// idle watches agents while nothing happens: one with no pod, one with 50, one with
// 10 whose folders are measured, and one that probes, each with all its ports open.
// They are beside each other, for one wait instead of four.
func (b *bench) idle(ctx context.Context) (rows []Row, err error) {
	probed := func(pod string) string {
		probe := "    readinessProbe: {httpGet: {port: 8080, path: /}, periodSeconds: 10}\n"
		return strings.ReplaceAll(b.probed(pod, 1, probe), pod+"-c0]", pod+`-c0, "8080", "0s"]`)
	}
	var agents []quiet
	for _, load := range []struct {
		name     string
		pods     int
		manifest func(string) string
		target   string
	}{
		{"0 pods", 0, nil, "≤ 100 ms/min"},
		{"50 pods", many, b.plain, "≤ 100 ms/min"},
		{"10 pods with limits on the disk", 10, b.limited, "≤ 100 ms/min"},
		{"50 pods, an HTTP probe each 10 s", many, probed, ""}, // 300 probes a minute are no idleness
	} {
		beside, err := b.beside(fmt.Sprintf("idle%d", len(agents)))
		if err != nil {
			return nil, err
		}
		ports, err := openPorts()
		if err != nil {
			return nil, err
		}
		a, err := beside.startAgent(ctx, "", ports...)
		if err != nil {
			return nil, err
		}
		defer beside.clear()
		defer a.stop()
		if err := beside.fill(ctx, load.pods, load.manifest); err != nil {
			return nil, err
		}
		agents = append(agents, quiet{name: load.name, agent: a, target: load.target})
	}
	return b.watchIdle(ctx, agents)
}

// openPorts has an agent listen where it does so by default, on ports that were free a
// moment ago.
func openPorts() (flags []string, err error) {
	for _, name := range []string{"--port", "--read-only-port", "--healthz-port"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		flags = append(flags, name, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return flags, nil
}

// limited is a pod whose emptyDir and whose containers may take so much of the disk.
func (b *bench) limited(pod string) string {
	return strings.NewReplacer(
		"mountPath: /out}]", "mountPath: /out}, {name: disk, mountPath: /disk}]\n    resources: {limits: {ephemeral-storage: 1Gi}}",
		"  volumes:\n", "  volumes:\n  - {name: disk, emptyDir: {sizeLimit: 1Gi}}\n",
	).Replace(b.plain(pod))
}

// fill brings that many pods up.
func (b *bench) fill(ctx context.Context, pods int, manifest func(string) string) error {
	if err := b.await(ctx, "the agent is up", ready); err != nil || pods == 0 {
		return err
	}
	t0, names, err := b.putMany(pods, manifest)
	if err != nil {
		return err
	}
	if _, err := b.awaitStamps(ctx, t0, names...); err != nil {
		return err
	}
	return b.await(ctx, "all are ready", func(s server.State) bool { return settled(pods)(s) && allReady(pods)(s) })
}

func (b *bench) watchIdle(ctx context.Context, agents []quiet) ([]Row, error) {
	engine, err := pidOf("dockerd")
	if err != nil {
		return nil, err
	}
	engineBefore, err := cpuSeconds(engine)
	for i := range agents {
		var more error
		agents[i].spent, more = cpuSeconds(agents[i].agent.cmd.Process.Pid)
		err = errors.Join(err, more)
	}
	begin := time.Now()
	if err := errors.Join(err, wait(ctx, b.opts.idle)); err != nil {
		return nil, err
	}
	minutes := time.Since(begin).Minutes()
	engineAfter, err1 := cpuSeconds(engine)
	engineRSS, err2 := rssMiB(engine)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var rows []Row
	for _, a := range agents {
		pid := a.agent.cmd.Process.Pid
		after, err1 := cpuSeconds(pid)
		rss, err2 := rssMiB(pid)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		one := func(what, unit string, v float64, target, note string) {
			rows = append(rows, Row{Name: "idle with " + a.name + ": " + what, Unit: unit, N: 1, Median: v, Min: v, Max: v, Target: target, Note: note})
		}
		one("CPU", "ms/min", (after-a.spent)*1000/minutes, a.target, fmt.Sprintf("over %s; the engine for all: %.0f ms/min", b.opts.idle, (engineAfter-engineBefore)*1000/minutes))
		one("RSS", "MiB", rss, "≤ 50 MiB", fmt.Sprintf("the engine for all: %.0f MiB", engineRSS))
	}
	return rows, nil
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
