package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/server"
)

// onceFlags are those of a run that ends.
type onceFlags struct {
	on       bool
	how      agent.OnceConfig
	passCode bool
	format   format
}

func (o *onceFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.on, "runonce", false, "start the pods one after the other, print their statuses, and end")
	f.BoolVar(&o.how.Parallel, "parallel", false, "with --runonce: start them all at once")
	f.DurationVar(&o.how.Timeout, "timeout", 0, "with --runonce: give up after this `TIME`; 0 never does")
	f.BoolVar(&o.how.Down, "down", false, "with --runonce: take the pods down afterwards")
	f.BoolVar(&o.passCode, "exit-code-from-pods", false, "with --runonce: exit with the code of the first container that failed")
	outputFlag(cmd, &o.format, asTable, asWide, asJSON, asYAML, asName)
}

// check refuses what has no meaning without --runonce.
func (o *onceFlags) check(given *pflag.FlagSet) error {
	if o.how.Timeout < 0 {
		return fmt.Errorf("--timeout: %s: want 0 or more", o.how.Timeout)
	}
	for _, name := range []string{"parallel", "timeout", "down", "exit-code-from-pods", "output"} {
		if given.Changed(name) && !o.on {
			return fmt.Errorf("--%s: it is for --runonce", name)
		}
	}
	return nil
}

func (c *cli) runOnce(ctx context.Context, cfg agent.Config, o *onceFlags, log *slog.Logger) error {
	var state server.State
	var ended []v1.ContainerStatus
	err := c.agent.once(ctx, cfg, o.how, log, func(p server.Pod) {
		state.Pods = append(state.Pods, p)
		ended = slices.Concat(ended, p.Pod.Status.InitContainerStatuses, p.Pod.Status.ContainerStatuses)
	})
	if shown := c.showOnce(o.format, state); shown != nil {
		return errors.Join(err, shown)
	}
	if first, failed := agent.FirstFailure(ended); failed && o.passCode && errors.Is(err, agent.ErrNotStarted) {
		return &failure{code: int(first.State.Terminated.ExitCode), err: err}
	}
	return err
}

func (c *cli) showOnce(f format, state server.State) error {
	if f == asTable {
		f = asWide
	}
	g := &getList{cli: c, kind: podsKind(), format: f}
	var items []item
	for _, p := range state.Pods {
		items = append(items, c.podItem(state, p))
	}
	if g.full() {
		return c.out.object(f, listOf(objects(items)))
	}
	g.print(items)
	return nil
}
