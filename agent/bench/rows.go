package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
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
		{"50 pods", b.manyPods},
		{"loop", b.loop},
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
	return seen.Sub(t0), end.Sub(t0), err
}

func (b *bench) onePod(ctx context.Context, containers int) ([]Row, error) {
	const pod = "p"
	text, names := b.manifest(pod, containers, ""), stamped(pod, containers)
	rec, err := b.record(ctx, func() error {
		if _, err := b.bring(ctx, pod, text, names); err != nil {
			return err
		}
		_, _, err := b.take(ctx, pod)
		return err
	})
	if err != nil {
		return nil, err
	}
	calls := rec.pods()[0]
	var up, term, gone, floorUp, floorTerm, floorGone sample
	for range b.opts.n {
		err := b.session(ctx, func() error {
			d, err := b.bring(ctx, pod, text, names)
			if err != nil {
				return err
			}
			up.add(d)
			t, g, err := b.take(ctx, pod)
			term.add(t)
			gone.add(g)
			return err
		})
		if err != nil {
			return nil, err
		}
		ids, d, err := b.floorUp(ctx, calls, names)
		if err != nil {
			return nil, err
		}
		floorUp.add(d)
		t, g, err := b.floorDown(ctx, calls, ids, names[len(names)-1])
		if err != nil {
			return nil, err
		}
		floorTerm.add(t)
		floorGone.add(g)
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
	rec, err := b.record(ctx, func() error {
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
	calls := rec.pods()[0]
	second := calls.containers[1]
	calls.containers = calls.containers[:1]
	var agent, floor sample
	for range b.opts.n {
		err := b.session(ctx, func() error {
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
		})
		if err != nil {
			return nil, err
		}
		ids, _, err := b.floorUp(ctx, calls, names)
		if err != nil {
			return nil, err
		}
		t0 := time.Now()
		if err := b.engine.stop(ctx, ids[1]); err != nil {
			return nil, err
		}
		next, last, err := b.next(ctx, calls, second, ids[0], t0, names)
		if err != nil {
			return nil, err
		}
		floor.add(last.Sub(t0))
		if _, _, err := b.floorDown(ctx, calls, append(ids, next), names[0]); err != nil {
			return nil, err
		}
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
	rec, err := b.record(ctx, func() error { _, err := crash(); return err })
	if err != nil {
		return nil, err
	}
	calls := rec.pods()[0]
	second := calls.containers[1]
	calls.containers = calls.containers[:1]
	var agent, floor, notice sample
	for range b.opts.n {
		if err := b.session(ctx, func() error {
			d, err := crash()
			agent.add(d)
			return err
		}); err != nil {
			return nil, err
		}
		ids, _, err := b.floorUp(ctx, calls, names)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := b.fail(names[0]); err != nil {
			return nil, err
		}
		if _, err := b.engine.call(ctx, "POST", "/containers/"+ids[1]+"/wait", nil); err != nil {
			return nil, err
		}
		t0 := time.Now()
		exit, err := b.awaitStamps(ctx, begin, names[0]+".exit")
		if err != nil {
			return nil, err
		}
		notice.add(t0.Sub(exit))
		id, last, err := b.next(ctx, calls, second, ids[0], t0, names)
		if err != nil {
			return nil, err
		}
		floor.add(last.Sub(t0))
		if _, _, err := b.floorDown(ctx, calls, append(ids, id), names[0]); err != nil {
			return nil, err
		}
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

// agentStart measures from the start of the agent's process to that of its
// first pod.
func (b *bench) agentStart(ctx context.Context) ([]Row, error) {
	const pod = "s"
	text, names := b.manifest(pod, 1, ""), stamped(pod, 1)
	rec, err := b.record(ctx, func() error {
		if _, err := b.bring(ctx, pod, text, names); err != nil {
			return err
		}
		_, _, err := b.take(ctx, pod)
		return err
	})
	if err != nil {
		return nil, err
	}
	calls := rec.pods()[0]
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
