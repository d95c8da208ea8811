package main

import (
	"context"
	"fmt"
	"time"
)

const many = 50

func (b *bench) putMany() (time.Time, []string, error) {
	var renames []func() (time.Time, error)
	var names []string
	for i := range many {
		pod := fmt.Sprintf("m%02d", i)
		rename, err := b.put(pod, b.manifest(pod, 1, ""))
		if err != nil {
			return time.Time{}, nil, err
		}
		renames = append(renames, rename)
		names = append(names, stamped(pod, 1)...)
	}
	t0 := time.Now()
	for _, rename := range renames {
		if _, err := rename(); err != nil {
			return t0, nil, err
		}
	}
	return t0, names, nil
}

func (b *bench) takeMany(ctx context.Context) error {
	for i := range many {
		if _, err := b.unput(fmt.Sprintf("m%02d", i)); err != nil {
			return err
		}
	}
	return b.await(ctx, "all pods are gone", settled(0))
}

// manyPods measures from the renames of 50 manifests to the last process.
func (b *bench) manyPods(ctx context.Context) ([]Row, error) {
	var names []string
	bring := func() (time.Duration, error) {
		t0, list, err := b.putMany()
		if err != nil {
			return 0, err
		}
		names = list
		last, err := b.awaitStamps(ctx, t0, names...)
		if err != nil {
			return 0, err
		}
		if err := b.await(ctx, "all pods have settled", settled(many)); err != nil {
			return 0, err
		}
		return last.Sub(t0), b.takeMany(ctx)
	}
	rec, err := b.record(ctx, func() error { _, err := bring(); return err })
	if err != nil {
		return nil, err
	}
	calls := rec.pods()
	floorRun := func(parallel int) (time.Duration, error) {
		for _, p := range calls {
			if err := p.prepare(); err != nil {
				return 0, err
			}
		}
		t0 := time.Now()
		ids, err := upAll(ctx, b.engine, calls, parallel)
		if err != nil {
			return 0, err
		}
		last, err := b.awaitStamps(ctx, t0, names...)
		if err != nil {
			return 0, err
		}
		for _, pod := range ids {
			if err := down(ctx, b.engine, pod); err != nil {
				return 0, err
			}
		}
		for _, p := range calls {
			if err := p.clear(); err != nil {
				return 0, err
			}
		}
		return last.Sub(t0), nil
	}
	best, note := 0, "floor by concurrency:"
	var fastest time.Duration
	for _, parallel := range []int{1, 2, 4, 8, 16} {
		d, err := floorRun(parallel)
		if err != nil {
			return nil, err
		}
		note += fmt.Sprintf(" %d: %.1f s", parallel, d.Seconds())
		if best == 0 || d < fastest {
			best, fastest = parallel, d
		}
	}
	var agent, floor sample
	for range b.opts.many {
		if err := b.session(ctx, func() error {
			d, err := bring()
			agent.add(d)
			return err
		}); err != nil {
			return nil, err
		}
		d, err := floorRun(best)
		if err != nil {
			return nil, err
		}
		floor.add(d)
	}
	return []Row{row("50 pods at once → all run", agent, floor, "≤ 1.05 × floor", note)}, nil
}
