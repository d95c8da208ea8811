package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func (c *cli) deleteCommand(l *location) *cobra.Command {
	var set settings
	var logs logSettings
	var all bool
	cmd := &cobra.Command{
		Use:   "delete --all",
		Short: "Remove every container, mount and folder of the root dir's agent",
		Long: `Remove every container, mount and folder of the root dir's agent. Manifests are
not touched: an agent that is started again starts their pods anew.

The agent must not run: it would start again what is removed. To remove one pod,
remove its manifest.`,
		Example: `  podkeeper delete --all
  podkeeper delete --all --root-dir ./state`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !all {
				return usage(cmd.CommandPath(), errors.New("give --all: one pod is removed by removing its manifest"))
			}
			if err := logs.check(); err != nil {
				return usage(cmd.CommandPath(), err)
			}
			log := c.logger(&logs, c.screen())
			cfg, err := set.config(cmd.Flags(), *l, c.version, log)
			if err != nil {
				return usage(cmd.CommandPath(), err)
			}
			if err := c.agent.deleteAll(cmd.Context(), cfg, log); err != nil {
				return lockError(*l, err)
			}
			log.Info("everything is removed", "rootDir", l.rootDir)
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove everything")
	set.engineFlags(cmd.Flags())
	logs.flags(cmd.Flags())
	return cmd
}
