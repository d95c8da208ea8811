package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// page is what many probes ask: a server of the benchmark's own.
type page struct {
	port   int
	served atomic.Int64
}

func (p *page) ServeHTTP(http.ResponseWriter, *http.Request) { p.served.Add(1) }

// newPage finds a port for one.
func newPage() (*page, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &page{port: l.Addr().(*net.TCPAddr).Port}, l.Close()
}

// listen serves until the returned function is called.
func (p *page) listen() (func(), error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
	if err != nil {
		return nil, err
	}
	s, served := &http.Server{Handler: p}, make(chan struct{})
	go func() { defer close(served); s.Serve(l) }()
	return func() { s.Close(); <-served }, nil
}

// asking returns a probe of the page.
func (p *page) asking(kind string, period int) string {
	return fmt.Sprintf("    %sProbe: {httpGet: {host: 127.0.0.1, port: %d, path: /}, periodSeconds: %d}\n", kind, p.port, period)
}

// probed is a pod of n containers with these probes.
func (b *bench) probed(pod string, n int, probes string) string {
	return strings.ReplaceAll(b.manifest(pod, n, ""), "    image: busybox:stable\n", "    image: busybox:stable\n"+probes)
}

// allReady: that many pods are there, and ready.
func allReady(n int) func(server.State) bool {
	return func(s server.State) bool {
		count := 0
		for _, p := range s.Pods {
			for _, c := range p.Pod.Status.Conditions {
				if c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
					count++
				}
			}
		}
		return ready(s) && count == n
	}
}

// probes measures how soon a container is known to be ready, and what probing costs.
func (b *bench) probes(ctx context.Context) ([]Row, error) {
	var late, answered, soon sample
	for i := range b.opts.n {
		if err := b.session(ctx, func() error {
			// By then it is asked once in a period.
			after := 3*time.Second + time.Duration(i%10)*100*time.Millisecond
			if err := b.untilReady(ctx, 1, after, &late, &answered); err != nil {
				return err
			}
			return b.untilReady(ctx, 10, 0, &soon, &answered)
		}); err != nil {
			return nil, err
		}
	}
	rows := []Row{
		row("HTTP probe each second: listening → ready", late, nil, "≤ 1020 ms", "it begins to listen at any time in the period"),
		row("HTTP probe each 10 s: listening → ready", soon, nil, "≤ 10020 ms", "it listens from the start"),
		row("HTTP probe: asked → ready", answered, nil, "≤ 20 ms", ""),
	}
	http := func(p *page) string { return p.asking("readiness", 1) + p.asking("liveness", 1) }
	exec := func(*page) string {
		return "    readinessProbe: {exec: {command: [\"true\"]}, periodSeconds: 2, timeoutSeconds: 10}\n"
	}
	for _, load := range []struct {
		name  string
		pods  int
		probe func(*page) string
	}{{"100 HTTP probes/s", 5, http}, {"5 exec probes/s", 1, exec}} {
		got, err := b.probing(ctx, load.name, load.pods, load.probe)
		if err != nil {
			return nil, err
		}
		rows = append(rows, got)
	}
	return rows, nil
}

// untilReady adds how long it took from when a container listens, which it does
// after a while, and from when it was asked, until it was shown to be ready.
func (b *bench) untilReady(ctx context.Context, period int, after time.Duration, listening, asked *sample) error {
	probe := fmt.Sprintf("    readinessProbe: {httpGet: {port: 8080, path: /}, periodSeconds: %d}\n", period)
	text := strings.ReplaceAll(b.probed("probed", 1, probe), "probed-c0]", fmt.Sprintf("probed-c0, %q, %q]", "8080", after))
	rename, err := b.put("probed", text)
	if err != nil {
		return err
	}
	t0, err := rename()
	if err != nil {
		return err
	}
	if err := b.await(ctx, "it is ready", allReady(1)); err != nil {
		return err
	}
	now := time.Now()
	for stamp, s := range map[string]*sample{"probed-c0.up": listening, "probed-c0.asked": asked} {
		at, err := b.awaitStamps(ctx, t0, stamp)
		if err != nil {
			return err
		}
		s.add(now.Sub(at))
	}
	_, _, err = b.take(ctx, "probed")
	return err
}

// probing returns what it costs to probe so many pods of ten containers each.
func (b *bench) probing(ctx context.Context, name string, pods int, probes func(*page) string) (r Row, err error) {
	p, err := newPage()
	if err != nil {
		return r, err
	}
	end, err := p.listen()
	if err != nil {
		return r, err
	}
	defer end()
	a, err := b.startAgent(ctx, "")
	if err != nil {
		return r, err
	}
	for i := range pods {
		pod := fmt.Sprintf("load%d", i)
		rename, err := b.put(pod, b.probed(pod, 10, probes(p)))
		if err == nil {
			_, err = rename()
		}
		if err != nil {
			return r, err
		}
	}
	if err := b.await(ctx, "all are ready", allReady(pods)); err != nil {
		return r, err
	}
	if r, err = b.cost(ctx, name, a.cmd.Process.Pid, p); err != nil {
		return r, err
	}
	for i := range pods {
		if _, err := b.unput(fmt.Sprintf("load%d", i)); err != nil {
			return r, err
		}
	}
	if err := b.await(ctx, "the pods are gone", settled(0)); err != nil {
		return r, err
	}
	return r, a.stop()
}

// cost watches an agent that probes.
func (b *bench) cost(ctx context.Context, name string, pid int, p *page) (Row, error) {
	const watched = 30 * time.Second
	engine, err := pidOf("dockerd")
	if err != nil {
		return Row{}, err
	}
	before, err1 := cpuSeconds(pid)
	engineBefore, err2 := cpuSeconds(engine)
	served := p.served.Load()
	if err := errors.Join(err1, err2, wait(ctx, watched)); err != nil {
		return Row{}, err
	}
	after, err1 := cpuSeconds(pid)
	engineAfter, err2 := cpuSeconds(engine)
	if err := errors.Join(err1, err2); err != nil {
		return Row{}, err
	}
	cpu := (after - before) * 1000 / watched.Seconds()
	note := fmt.Sprintf("over %s; the engine: %.1f ms/s", watched, (engineAfter-engineBefore)*1000/watched.Seconds())
	if n := p.served.Load() - served; n > 0 {
		note += fmt.Sprintf("; %.1f answers/s", float64(n)/watched.Seconds())
	}
	return Row{Name: name + ": CPU", Unit: "ms/s", N: 1, Median: cpu, Min: cpu, Max: cpu, Target: "≤ 100 ms/s", Note: note}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
