package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/node/rootdir"
	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) runCommand(l *location) *cobra.Command {
	var set settings
	var logs logSettings
	var once bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Be the agent: keep the pods of all manifests running",
		Long: `Be the agent: keep the pods of all manifests running, until it is told to end
(SIGINT, SIGTERM). The pods are left running then; another run takes them over.

With --runonce the pods are started one after the other; each is waited for until
its containers run or have finished. Their statuses are printed, and the exit code
is 1 where one could not be started.`,
		Example: `  podkeeper run
  podkeeper run --root-dir ./state --manifests ./manifests
  podkeeper run --manifest-url https://example.org/pods.yaml --manifest-url-header "Authorization: Bearer …"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logs.check(); err != nil {
				return usage(cmd.CommandPath(), err)
			}
			screen := c.screen()
			log := c.logger(&logs, screen)
			agent.RouteKlog(log)
			cfg, err := set.config(cmd.Flags(), *l, c.version, log)
			if err != nil {
				return usage(cmd.CommandPath(), err)
			}
			if c.err.terminal && logs.format == "text" {
				cfg.Progress = screen.progress
			}
			if once {
				return c.runOnce(cmd.Context(), cfg, log)
			}
			return c.runUntilTold(cmd.Context(), *l, cfg, log)
		},
	}
	set.sourceFlags(cmd.Flags())
	set.engineFlags(cmd.Flags())
	logs.flags(cmd.Flags())
	cmd.Flags().BoolVar(&once, "runonce", false, "start the pods one after the other, print their statuses, and end")
	completeWith(cmd, "log-format", "text", "json")
	completeWith(cmd, "log-level", "debug", "info", "warn", "error")
	return cmd
}

func (c *cli) runUntilTold(ctx context.Context, l location, cfg agent.Config, log *slog.Logger) error {
	err := c.agent.run(ctx, cfg, log)
	if ctx.Err() == nil {
		return lockError(l, err)
	}
	if err != nil && !errors.Is(err, ctx.Err()) {
		return err
	}
	log.Info("stopped; the pods go on running (podkeeper delete --all" + l.flags() + " removes them)")
	return nil
}

func (c *cli) runOnce(ctx context.Context, cfg agent.Config, log *slog.Logger) error {
	var state server.State
	err := c.agent.once(ctx, cfg, log, func(p server.Pod) { state.Pods = append(state.Pods, p) })
	list := &getPods{cli: c, format: asWide}
	list.print(state, state.Pods)
	return err
}

// lockError says what to do where another agent has the root dir.
func lockError(l location, err error) error {
	if !errors.Is(err, rootdir.ErrLocked) {
		return err
	}
	return &failure{
		code: exitFailed, err: err,
		hint: "Stop that agent first (Ctrl-C, or systemctl stop podkeeper), or give this one a --root-dir of its own.",
	}
}
