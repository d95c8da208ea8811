package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// restart measures from the exit of a process to its next attempt: the first
// restart, which no back-off delays.
func (b *bench) restart(ctx context.Context) ([]Row, error) {
	const pod = "r"
	text, names := b.manifest(pod, 1, ""), stamped(pod, 1)
	crash := func() (time.Duration, error) {
		if _, err := b.bring(ctx, pod, text, names); err != nil {
			return 0, err
		}
		t0 := time.Now()
		if err := b.fail(names[0]); err != nil {
			return 0, err
		}
		exit, err := b.awaitStamps(ctx, t0, names[0]+".exit")
		if err != nil {
			return 0, err
		}
		last, err := b.awaitStamps(ctx, exit, names...)
		if err != nil {
			return 0, err
		}
		if err := b.await(ctx, "the pod has settled", settled(1)); err != nil {
			return 0, err
		}
		_, _, err = b.take(ctx, pod)
		return last.Sub(exit), err
	}
	if err := syscall.Mkfifo(b.path("out", names[0]+".fail"), 0o600); err != nil {
		return nil, err
	}
	calls, err := b.recorded(ctx, func() error { _, err := crash(); return err })
	if err != nil {
		return nil, err
	}
	var agent, floor, notice sample
	err = b.byTurns(ctx, b.opts.n, func() error {
		d, err := crash()
		agent.add(d)
		return err
	}, func() error {
		ids, _, err := b.floorUp(ctx, calls, names)
		if err != nil {
			return err
		}
		begin := time.Now()
		if err := b.fail(names[0]); err != nil {
			return err
		}
		if _, err := b.engine.call(ctx, "POST", "/containers/"+ids[1]+"/wait", nil); err != nil {
			return err
		}
		t0 := time.Now()
		exit, err := b.awaitStamps(ctx, begin, names[0]+".exit")
		if err != nil {
			return err
		}
		notice.add(t0.Sub(exit))
		id, last, err := b.next(ctx, calls, calls.later[0], ids[0], t0, names)
		if err != nil {
			return err
		}
		floor.add(last.Sub(t0))
		_, _, err = b.floorDown(ctx, calls, append(ids, id), names[0])
		return err
	})
	if err != nil {
		return nil, err
	}
	return []Row{row("exit → running again", agent, floor, "≤ 1.05 × floor", fmt.Sprintf("floor: create, start; not in it, before either: %.1f ms in which the engine notices an exit", notice.median()))}, nil
}

// fail tells the process that wrote a stamp to exit.
func (b *bench) fail(name string) error {
	pipe, err := os.OpenFile(b.path("out", name+".fail"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer pipe.Close()
	_, err = pipe.Write([]byte{1})
	return err
}
