package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/node/rootdir"
)

func (c *cli) runCommand(l *location) *cobra.Command {
	var set settings
	var logs logSettings
	var once onceFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Be the agent: keep the pods of all manifests running",
		Long: `Be the agent: keep the pods of all manifests running, until it is told to end
(SIGINT, SIGTERM). The pods are left running then; another run takes them over.

With --runonce the pods are started one after the other, or with --parallel all at
once; each is waited for until its containers run or, where its restartPolicy is
Never or OnFailure, have finished. Their statuses are printed, and the exit code is 1
where one was refused or failed, with the reasons. The pods are left as they are, or
with --down taken down.`,
		Example: `  podkeeper run
  podkeeper run --root-dir ./state --manifests ./manifests
  podkeeper run --runonce --parallel --down --timeout 10m --manifests ./ci
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
			if err := once.check(cmd.Flags()); err != nil {
				return usage(cmd.CommandPath(), err)
			}
			if once.on {
				return c.runOnce(cmd.Context(), cfg, &once, log)
			}
			return c.runUntilTold(cmd.Context(), *l, cfg, log)
		},
	}
	set.sourceFlags(cmd.Flags())
	set.engineFlags(cmd.Flags())
	logs.flags(cmd.Flags())
	once.flags(cmd)
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
