package fake

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
)

// Exec implements runtime.Runtime. What the command is, Config.Exec says.
func (c *Client) Exec(ctx context.Context, id string, command []string, most int) (runtime.ExecResult, error) {
	var out strings.Builder
	code, err := c.exec(ctx, id, command, runtime.Streams{Stdout: &out})
	if err != nil {
		return runtime.ExecResult{}, fmt.Errorf("exec in container %s: %w", id, err)
	}
	return runtime.ExecResult{ExitCode: code, Output: []byte(out.String()[:min(out.Len(), most)])}, nil
}

func (c *Client) exec(ctx context.Context, id string, command []string, s runtime.Streams) (int, error) {
	name := c.name(id)
	var p Program
	var died, broken chan struct{}
	ended := make(chan struct{})
	what := strings.Join(append([]string{name}, command...), " ")
	err := c.do(ctx, "exec", what, 20*time.Millisecond, 100*time.Millisecond, func() error {
		found, err := c.running(id)
		if err != nil {
			return err
		}
		died, broken = found.done, c.engine.broken
		switch p = c.engine.Exec(found.View, command); {
		case p.FailStart != "":
			p.Say, p.Code = p.FailStart, cmp.Or(p.StartCode, 126)
			close(ended)
		case p.Cat:
		case p.Exits && p.After == 0:
			close(ended)
		case p.Exits:
			c.engine.Fate.After("exec-exit", what, p.After, time.Millisecond, func() { close(ended) })
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return c.converse(ctx, what, p, s, ended, died, broken)
}
