package main

import (
	"context"
	"fmt"
	"time"
)

func (b *bench) onePod(ctx context.Context, containers int) ([]Row, error) {
	const pod = "p"
	text, names := b.manifest(pod, containers, ""), stamped(pod, containers)
	calls, err := b.recordedPod(ctx, pod, text, names)
	if err != nil {
		return nil, err
	}
	var up, term, gone, floorUp, floorTerm, floorGone sample
	err = b.byTurns(ctx, b.opts.n, func() error {
		d, err := b.bring(ctx, pod, text, names)
		if err != nil {
			return err
		}
		up.add(d)
		t, g, err := b.take(ctx, pod)
		term.add(t)
		gone.add(g)
		return err
	}, func() error {
		ids, d, err := b.floorUp(ctx, calls, names)
		if err != nil {
			return err
		}
		floorUp.add(d)
		t, g, err := b.floorDown(ctx, calls, ids, names[len(names)-1])
		floorTerm.add(t)
		floorGone.add(g)
		return err
	})
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("pod of %d: ", containers)
	return []Row{
		row(name+"rename → running", up, floorUp, "≤ 1.05 × floor", ""),
		row(name+"removed → SIGTERM", term, floorTerm, "≤ 15 ms", "floor: the engine's own stop call"),
		row(name+"removed → gone", gone, floorGone, "≤ 1.05 × floor", ""),
	}, nil
}

// edit measures from the rename of an edited manifest to the new process of the
// one container that changed.
func (b *bench) edit(ctx context.Context) ([]Row, error) {
	const pod = "e"
	names := stamped(pod, 1)
	calls, err := b.recorded(ctx, func() error {
		for _, env := range []string{"1", "2"} {
			if _, err := b.bring(ctx, pod, b.manifest(pod, 1, env), names); err != nil {
				return err
			}
		}
		_, _, err := b.take(ctx, pod)
		return err
	})
	if err != nil {
		return nil, err
	}
	var agent, floor sample
	err = b.byTurns(ctx, b.opts.n, func() error {
		if _, err := b.bring(ctx, pod, b.manifest(pod, 1, "1"), names); err != nil {
			return err
		}
		d, err := b.bring(ctx, pod, b.manifest(pod, 1, "2"), names)
		if err != nil {
			return err
		}
		agent.add(d)
		_, _, err = b.take(ctx, pod)
		return err
	}, func() error {
		ids, _, err := b.floorUp(ctx, calls, names)
		if err != nil {
			return err
		}
		t0 := time.Now()
		if err := b.engine.stop(ctx, ids[1]); err != nil {
			return err
		}
		next, last, err := b.next(ctx, calls, calls.later[0], ids[0], t0, names)
		if err != nil {
			return err
		}
		floor.add(last.Sub(t0))
		_, _, err = b.floorDown(ctx, calls, append(ids, next), names[0])
		return err
	})
	if err != nil {
		return nil, err
	}
	return []Row{row("env edited → its new process", agent, floor, "≤ 1.05 × floor", "floor: stop, create, start; the kubelet takes 11 s")}, nil
}

// next makes and starts another attempt in a sandbox, and waits for its stamp.
func (b *bench) next(ctx context.Context, calls podCalls, c creation, sandbox string, since time.Time, names []string) (string, time.Time, error) {
	id, err := calls.add(ctx, b.engine, c, sandbox)
	if err != nil {
		return "", time.Time{}, err
	}
	last, err := b.awaitStamps(ctx, since, names...)
	return id, last, err
}

// agentStart measures from the start of the agent's process to that of its
// first pod.
func (b *bench) agentStart(ctx context.Context) ([]Row, error) {
	const pod = "s"
	text, names := b.manifest(pod, 1, ""), stamped(pod, 1)
	calls, err := b.recordedPod(ctx, pod, text, names)
	if err != nil {
		return nil, err
	}
	var agent, floor sample
	for range b.opts.n {
		rename, err := b.put(pod, text)
		if err == nil {
			_, err = rename()
		}
		if err != nil {
			return nil, err
		}
		t0 := time.Now()
		if err := b.session(ctx, func() error {
			last, err := b.awaitStamps(ctx, t0, names...)
			if err != nil {
				return err
			}
			agent.add(last.Sub(t0))
			if err := b.await(ctx, "the pod has settled", settled(1)); err != nil {
				return err
			}
			_, _, err = b.take(ctx, pod)
			return err
		}); err != nil {
			return nil, err
		}
		ids, d, err := b.floorUp(ctx, calls, names)
		if err != nil {
			return nil, err
		}
		floor.add(d)
		if _, _, err := b.floorDown(ctx, calls, ids, names[0]); err != nil {
			return nil, err
		}
	}
	return []Row{row("agent start → first pod's process", agent, floor, "≤ 1.05 × floor", "")}, nil
}
