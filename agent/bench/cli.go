package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// commands measures what a command of the command line takes, from its start to its
// end, with 50 pods, and the engine's own beside it.
func (b *bench) commands(ctx context.Context) (rows []Row, err error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return nil, err
	}
	err = b.session(ctx, func() error {
		if err := b.fill(ctx, many, b.plain); err != nil {
			return err
		}
		for _, args := range [][]string{{"get", "pods"}, {"get", "pods", "-o", "json"}, {"get", "node"}, {"describe", "pod", "m00"}} {
			var took, floor sample
			for range b.opts.n {
				d, err := timed(b.command(ctx, args...))
				took.add(d)
				bare, also := timed(exec.CommandContext(ctx, docker, "ps", "--all"))
				floor.add(bare)
				if err := errors.Join(err, also); err != nil {
					return err
				}
			}
			rows = append(rows, row(fmt.Sprintf("%s, %d pods", args, many), took, floor, "≤ 100 ms", "floor: docker ps --all"))
		}
		return b.takeMany(ctx)
	})
	return rows, err
}

// timed runs a command, and returns how long that took.
func timed(cmd *exec.Cmd) (time.Duration, error) {
	cmd.Stdout, cmd.Stderr = nil, nil
	begun := time.Now()
	err := cmd.Run()
	return time.Since(begun), err
}
