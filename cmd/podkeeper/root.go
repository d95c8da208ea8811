package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) rootCommand() *cobra.Command {
	l := &location{}
	cmd := &cobra.Command{
		Use:   "podkeeper",
		Short: "Keeps Kubernetes pods running on this machine, with no cluster",
		Long: `Podkeeper keeps Kubernetes pods running on this machine, with no cluster.

Drop a pod manifest into /etc/kubernetes/manifests, or serve it from a URL, and
it runs; edit it, and what must restart restarts; remove it, and it is gone.

` + exitCodesHelp,
		Example: `  podkeeper run
  podkeeper get pods
  podkeeper describe pod web`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,
		RunE:          showHelp,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cmd.Name() == cobra.ShellCompRequestCmd {
				return nil // the flags of what is completed are read later
			}
			if *l, err = l.complete(); err != nil {
				return usage(cmd.CommandPath(), err)
			}
			return nil
		},
	}
	cmd.PersistentFlags().StringVar(&l.rootDir, "root-dir", defaultRootDir, "the agent's `FOLDER`, which names the agent that is meant")
	cmd.PersistentFlags().StringVar(&l.socket, "socket", "", "the agent's socket `PATH` (default /run/podkeeper.sock; with another root dir podkeeper.sock in it)")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd.CommandPath(), err) })
	cmd.AddCommand(
		c.runCommand(l), c.getCommand(l), c.topCommand(l), c.describeCommand(l), c.logsCommand(l), c.eventsCommand(l), c.planCommand(l), c.validateCommand(),
		c.waitCommand(l), c.restartCommand(l), c.stopCommand(l), c.startCommand(l), c.deleteCommand(l), c.doctorCommand(l),
		c.imagesCommand(l), c.collectCommand(l, "gc", server.Collection{Containers: true, Images: true}),
		c.dashboardCommand(l), c.versionCommand(l),
	)
	cmd.AddCommand(c.applyCommand(l), c.editCommand(l))
	cmd.AddCommand(c.execCommand(l), c.attachCommand(l), c.copyCommand(l), c.forwardCommand(l))
	return cmd
}

// noSuchCommand is for commands that only have others below them.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(like, " or "))
	}
	return usage(cmd.CommandPath(), err)
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// noArgs is for commands that take none.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd.CommandPath(), fmt.Errorf("unexpected argument %q", args[0]))
	}
	return nil
}

// oneName is for commands about one pod.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage(cmd.CommandPath(), fmt.Errorf("want the name of one pod, got %d", len(args)))
	}
	return nil
}

// outputFlag adds -o. The first of formats is the default.
func outputFlag(cmd *cobra.Command, f *format, formats ...format) {
	var names []string
	for _, f := range formats {
		if f != asTable {
			names = append(names, string(f))
		}
	}
	cmd.Flags().StringVarP((*string)(f), "output", "o", "", "output `FORMAT`: "+strings.Join(names, ", "))
	completeWith(cmd, "output", names...)
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(formats, *f) {
			return usage(cmd.CommandPath(), fmt.Errorf("--output %q: want one of %s", string(*f), strings.Join(names, ", ")))
		}
		return check(cmd, args)
	}
}

// completeWith lets a shell complete a flag with those values.
func completeWith(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is not there
	}
}

// answerWithin is more than an agent that is well ever needs.
const answerWithin = 10 * time.Second

// ask returns the agent's state.
func (c *cli) ask(ctx context.Context, l location) (server.State, error) {
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	state, err := server.NewClient(l.socket).State(bounded, 0)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return state, &failure{code: exitNoAgent, err: fmt.Errorf("the agent on %s did not answer within %s", l.socket, answerWithin)}
	}
	return state, askError(l, err)
}

// caution says what makes a state less than the truth, and what is not among the pods.
func (c *cli) caution(s server.State) {
	for _, h := range s.Holds {
		c.err.printf("Pod %s, of which nothing is there, is stopped by hand until `podkeeper start`.\n", oneLine(h.Pod.String()))
	}
	switch {
	case !s.Online:
		c.err.printf("The container engine does not answer the agent: what is shown may be old.\n")
	case !s.Ready:
		c.err.printf("The agent has just started and has not looked at everything yet.\n")
	}
}
