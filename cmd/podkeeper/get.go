package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func (c *cli) getCommand(l *location) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Show pods, sources or events",
		Args:  noSuchCommand,
		RunE:  showHelp,
	}
	cmd.AddCommand(c.getPodsCommand(l), c.getSourcesCommand(l), c.eventsCommand(l))
	return cmd
}

// namespaceFlags adds -n and -A. Unlike a cluster's, a machine's pods are few:
// without either, all are meant.
func namespaceFlags(cmd *cobra.Command, namespace *string) {
	cmd.Flags().StringVarP(namespace, "namespace", "n", "", "only pods of this `NAMESPACE`")
	all := cmd.Flags().BoolP("all-namespaces", "A", false, "pods of all namespaces (the default)")
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *all && *namespace != "" {
			return usage(cmd.CommandPath(), errors.New("--namespace and --all-namespaces cannot both be given"))
		}
		return check(cmd, args)
	}
}
