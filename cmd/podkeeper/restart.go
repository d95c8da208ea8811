package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) restartCommand(l *location) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "restart POD",
		Short: "End a pod and start it anew, also one that is over or was evicted",
		Long: `End a pod and start it anew, as if its manifest had been removed and had come back:
in its order and with its grace period, with a new address, and with its emptyDirs
empty. A pod that is over runs once more, one that was evicted does not wait. Claims
and folders of the host stay as they are.

It returns when the agent has taken that on; wait says when the pod runs.`,
		Example: `  podkeeper restart web
  podkeeper restart web -n shop && podkeeper wait pod web -n shop`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, p, err := c.theOne(cmd.Context(), *l, namespace, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answerWithin)
			defer cancel()
			if err := server.NewClient(l.socket).Restart(ctx, keyOf(p)); err != nil {
				return askError(*l, err)
			}
			c.out.printf("pod/%s restarted\n", oneLine(p.Pod.Name))
			return nil
		},
	}
	namespaceFlags(cmd, &namespace)
	cmd.ValidArgsFunction = c.completePods(l, &namespace, false)
	return cmd
}
