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

// page is what the probes of the rows below ask: a server of the benchmark's own.
type page struct {
	port   int
	served atomic.Int64
	last   atomic.Int64 // ns, when it was asked last
}

func (p *page) ServeHTTP(http.ResponseWriter, *http.Request) {
	p.served.Add(1)
	p.last.Store(time.Now().UnixNano())
}

// newPage finds a port for one; nobody listens there yet.
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
	var listening, answered, started sample
	for i := range b.opts.n {
		if err := b.session(ctx, func() error {
			if err := b.readyAfterListening(ctx, i, &listening, &answered); err != nil {
				return err
			}
			return b.readyAfterStart(ctx, &started)
		}); err != nil {
			return nil, err
		}
	}
	rows := []Row{
		row("HTTP probe each second: listening → ready", listening, nil, "≤ 1020 ms", "it begins to listen at any time in the period"),
		row("HTTP probe: answer → ready", answered, nil, "≤ 20 ms", ""),
		row("HTTP probe each 10 s: running → ready", started, nil, "", "it listens already"),
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

// readyAfterListening adds how long it took from when a server listens, and from
// its answer, until the container was shown to be ready.
func (b *bench) readyAfterListening(ctx context.Context, i int, listening, answered *sample) error {
	p, err := newPage()
	if err != nil {
		return err
	}
	if _, err := b.bring(ctx, "probed", b.probed("probed", 1, p.asking("readiness", 1)), stamped("probed", 1)); err != nil {
		return err
	}
	// By then it is asked once in a period.
	if err := wait(ctx, 3*time.Second+time.Duration(i%10)*100*time.Millisecond); err != nil {
		return err
	}
	t0 := time.Now()
	end, err := p.listen()
	if err != nil {
		return err
	}
	defer end()
	if err := b.await(ctx, "it is ready", allReady(1)); err != nil {
		return err
	}
	listening.add(time.Since(t0))
	answered.add(time.Since(time.Unix(0, p.last.Load())))
	_, _, err = b.take(ctx, "probed")
	return err
}

// readyAfterStart adds how long it took from when a container runs that listens
// already until it was shown to be ready.
func (b *bench) readyAfterStart(ctx context.Context, took *sample) error {
	p, err := newPage()
	if err != nil {
		return err
	}
	end, err := p.listen()
	if err != nil {
		return err
	}
	defer end()
	rename, err := b.put("probed", b.probed("probed", 1, p.asking("readiness", 10)))
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
	ran, err := b.awaitStamps(ctx, t0, stamped("probed", 1)...)
	if err != nil {
		return err
	}
	took.add(now.Sub(ran))
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
