package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) restartCommand(l *location) *cobra.Command {
	var namespace, container string
	cmd := &cobra.Command{
		Use:   "restart POD",
		Short: "End a pod and start it anew, also one that is over or was evicted",
		Long: `End a pod and start it anew, as if its manifest had been removed and had come back:
in its order and with its grace period, with a new address, and with its emptyDirs
empty. A pod that is over runs once more, one that was evicted does not wait. Claims
and folders of the host stay as they are.

With -c only that container is ended and followed by another attempt, at once and
whatever it waits for, as an edit of it would do; its neighbours go on.

It returns when the agent has taken that on; wait says when the pod runs.`,
		Example: `  podkeeper restart web
  podkeeper restart web -c app
  podkeeper restart web -n shop && podkeeper wait pod web -n shop`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, p, err := c.theOne(cmd.Context(), *l, namespace, args[0])
			if err != nil {
				return err
			}
			if names := containerNames(p); container != "" && !slices.Contains(names, container) {
				return fmt.Errorf("container %q not found in pod %s, which has %s", container, p.Pod.Name, strings.Join(names, ", "))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answerWithin)
			defer cancel()
			if err := server.NewClient(l.socket).Restart(ctx, keyOf(p), container); err != nil {
				return c.handError(*l, p, err)
			}
			what := "pod/" + p.Pod.Name
			if container != "" {
				what += " container " + container
			}
			c.out.printf("%s restarted\n", oneLine(what))
			return nil
		},
	}
	namespaceFlags(cmd, &namespace)
	cmd.Flags().StringVarP(&container, "container", "c", "", "restart only this `CONTAINER`")
	c.completeContainers(cmd, l, &namespace)
	cmd.ValidArgsFunction = c.completePods(l, &namespace, false)
	return cmd
}

// handError says of what could not be done to a pod what to do next.
func (c *cli) handError(l location, p server.Pod, err error) error {
	if !p.Held.IsZero() {
		return &failure{code: exitFailed, err: err, hint: "Start it with `podkeeper start " + oneLine(p.Pod.Name) + " -n " + oneLine(p.Pod.Namespace) + l.flags() + "`."}
	}
	return askError(l, err)
}

// containerNames are in the order of the manifest, those that initialise first.
func containerNames(p server.Pod) (names []string) {
	for _, c := range slices.Concat(p.Pod.Spec.InitContainers, p.Pod.Spec.Containers) {
		names = append(names, c.Name)
	}
	return names
}
