package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/server"
)

// measurement is one thing measured, which may fill several rows.
type measurement struct {
	name    string
	measure func(context.Context) ([]Row, error)
}

func (b *bench) rows() []measurement {
	return []measurement{
		{"one pod of 1 container", func(ctx context.Context) ([]Row, error) { return b.onePod(ctx, 1) }},
		{"one pod of 3 containers", func(ctx context.Context) ([]Row, error) { return b.onePod(ctx, 3) }},
		{"edit", b.edit},
		{"restart", b.restart},
		{"agent start", b.agentStart},
		{"50 pods", func(ctx context.Context) ([]Row, error) {
			return b.manyPods(ctx, "50 pods at once → all run", b.plain, b.opts.many)
		}},
		{"50 pods with all kinds of volumes", func(ctx context.Context) ([]Row, error) {
			return b.manyPods(ctx, "50 pods with all kinds of volumes → all run", b.mounting, min(3, b.opts.many))
		}},
		{"probes", b.probes},
		{"config", b.config},
		{"loop", b.loop},
		{"collect", b.collect},
		{"stats", b.usage},
		{"pages", b.pages},
		{"logs", b.logs},
		{"exec", b.execs},
		{"scrape", b.scrape},
		{"pressure", b.pressure},
		{"command line", b.commands},
		{"idle", b.idle},
		{"binary", b.binary},
	}
}

// session runs f with an agent that is up and idle, and stops it.
func (b *bench) session(ctx context.Context, f func() error) error {
	a, err := b.startAgent(ctx, "")
	if err != nil {
		return err
	}
	if err = b.await(ctx, "the agent is up", ready); err == nil {
		err = f()
	}
	if stopErr := a.stop(); err == nil {
		err = stopErr
	}
	return err
}

// besideOne measures while a pod of one container runs, of which it is given the id.
func (b *bench) besideOne(ctx context.Context, name, text string, measure func(id string) ([]Row, error)) (rows []Row, err error) {
	err = b.session(ctx, func() error {
		rename, err := b.put(name, text)
		if err == nil {
			_, err = rename()
		}
		if err != nil {
			return err
		}
		var id string
		err = b.await(ctx, "it runs", func(s server.State) bool {
			if len(s.Pods) == 1 && len(s.Pods[0].Pod.Status.ContainerStatuses) == 1 {
				id = strings.TrimPrefix(s.Pods[0].Pod.Status.ContainerStatuses[0].ContainerID, "docker://")
			}
			return id != "" && settled(1)(s)
		})
		if err != nil {
			return err
		}
		if rows, err = measure(id); err != nil {
			return err
		}
		if _, err := b.unput(name); err != nil {
			return err
		}
		return b.await(ctx, "the pod is gone", settled(0))
	})
	return rows, err
}

// byTurns runs the agent's way, in a session of its own, and the bare calls, each
// n times.
func (b *bench) byTurns(ctx context.Context, n int, agent, floor func() error) error {
	for range n {
		if err := b.session(ctx, agent); err != nil {
			return err
		}
		if err := floor(); err != nil {
			return err
		}
	}
	return nil
}

// recorded returns the calls that the agent makes for the one pod of f.
func (b *bench) recorded(ctx context.Context, f func() error) (podCalls, error) {
	rec, err := b.record(ctx, f)
	if err != nil {
		return podCalls{}, err
	}
	calls := rec.pods()[0]
	calls.containers = slices.DeleteFunc(calls.containers, func(c creation) bool {
		first := strings.HasSuffix(c.name, "_0")
		if !first {
			calls.later = append(calls.later, c)
		}
		return !first
	})
	return calls, nil
}

// recordedPod returns those for a pod that comes and goes.
func (b *bench) recordedPod(ctx context.Context, pod, text string, names []string) (podCalls, error) {
	return b.recorded(ctx, func() error {
		if _, err := b.bring(ctx, pod, text, names); err != nil {
			return err
		}
		_, _, err := b.take(ctx, pod)
		return err
	})
}

// bring puts a manifest in place and returns how long its processes took to run.
func (b *bench) bring(ctx context.Context, pod, text string, names []string) (time.Duration, error) {
	rename, err := b.put(pod, text)
	if err != nil {
		return 0, err
	}
	t0, err := rename()
	if err != nil {
		return 0, err
	}
	last, err := b.awaitStamps(ctx, t0, names...)
	if err != nil {
		return 0, err
	}
	return last.Sub(t0), b.await(ctx, "the pod has settled", settled(1))
}

// take removes a manifest and returns how long SIGTERM and the end of the
// sandbox took.
func (b *bench) take(ctx context.Context, pod string) (term, gone time.Duration, err error) {
	b.drainGone()
	t0, err := b.unput(pod)
	if err != nil {
		return 0, 0, err
	}
	end, err := b.awaitGone(ctx, "k8s_POD_"+pod)
	if err != nil {
		return 0, 0, err
	}
	seen, err := b.awaitStamps(ctx, t0, pod+"-c0.term")
	if err != nil {
		return 0, 0, err
	}
	return seen.Sub(t0), end.Sub(t0), b.await(ctx, "the pod is gone", settled(0))
}

// floorUp makes the bare calls and returns how long the processes took to run.
func (b *bench) floorUp(ctx context.Context, p podCalls, names []string) ([]string, time.Duration, error) {
	t0 := time.Now()
	ids, err := p.up(ctx, b.engine)
	if err != nil {
		return nil, 0, err
	}
	last, err := b.awaitStamps(ctx, t0, names...)
	return ids, last.Sub(t0), err
}

// floorDown makes the bare calls and returns how long the first SIGTERM and the
// end of the sandbox took. first is the stamp of the container that goes first.
func (b *bench) floorDown(ctx context.Context, p podCalls, ids []string, first string) (term, gone time.Duration, err error) {
	b.drainGone()
	t0 := time.Now()
	if err := down(ctx, b.engine, ids); err != nil {
		return 0, 0, err
	}
	end, err := b.awaitGone(ctx, p.sandbox.name)
	if err != nil {
		return 0, 0, err
	}
	seen, err := b.awaitStamps(ctx, t0, first+".term")
	if err != nil {
		return 0, 0, err
	}
	return seen.Sub(t0), end.Sub(t0), p.clear()
}
