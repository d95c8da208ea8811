package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// execData is how much goes through an exec, in bytes.
const execData = 64 << 20

// execs measures what goes through podkeeper exec, against docker exec with the same
// data and command in the same container.
func (b *bench) execs(ctx context.Context) ([]Row, error) {
	const name = "exec"
	text := strings.Replace(b.manifest(name, 1, ""), "[/b/stamp, /out, exec-c0]", `[sleep, "100000"]`, 1)
	return b.besideOne(ctx, name, text, func(id string) ([]Row, error) {
		ours := []string{b.opts.binary, "--root-dir", b.own("root"), "exec", "-i", name, "--"}
		return b.execRows(ctx, ours, []string{"docker", "exec", "-i", id})
	})
}

func (b *bench) execRows(ctx context.Context, ours, floor []string) ([]Row, error) {
	var rows []Row
	for _, one := range []struct {
		name    string
		command []string
		in, out int64
		n       int
	}{
		{"exec of true, there and back", []string{"true"}, 0, 0, b.opts.n},
		{fmt.Sprintf("exec, %d MB of input", execData>>20), []string{"sh", "-c", "cat >/dev/null"}, execData, 0, 3},
		{fmt.Sprintf("exec, %d MB of output", execData>>20), []string{"head", "-c", fmt.Sprint(execData), "/dev/zero"}, 0, execData, 3},
	} {
		var agent, bare sample
		for range one.n {
			for _, way := range []struct {
				into *sample
				args []string
			}{{&agent, ours}, {&bare, floor}} {
				took, err := through(ctx, append(append([]string{}, way.args...), one.command...), one.in, one.out)
				if err != nil {
					return nil, err
				}
				way.into.add(took)
			}
		}
		note := "floor: docker exec"
		if size := one.in + one.out; size > 0 {
			note = fmt.Sprintf("%.0f MB/s; floor: docker exec, %.0f MB/s", float64(size)/1e3/agent.median(), float64(size)/1e3/bare.median())
		}
		rows = append(rows, row(one.name, agent, bare, "≤ 2 × floor", note))
	}
	return rows, nil
}

// through runs a command with so many zeros as its input, and says how long it took to
// write as many as are wanted and end.
func through(ctx context.Context, command []string, in, out int64) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = io.LimitReader(zeros{}, in)
	var got counter
	cmd.Stdout = &got
	t0 := time.Now()
	err := cmd.Run()
	took := time.Since(t0)
	if err == nil && int64(got) != out {
		err = fmt.Errorf("%d bytes came, want %d", got, out)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return took, nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
