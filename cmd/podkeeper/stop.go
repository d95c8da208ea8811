package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// stoppedReason is the reason of a pod that was stopped by hand, once nothing of it
// runs.
const stoppedReason = "Stopped"

func (c *cli) stopCommand(l *location) *cobra.Command {
	var namespace string
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "stop POD",
		Short: "End a pod and hold it until it is started by hand",
		Long: `End a pod, in its order and with its grace period, and hold it: nothing of it runs
until "podkeeper start", whatever its manifest says meanwhile, and over restarts of
the agent and of the machine. Its ports and its room are free for others; its volumes
and logs stay.`,
		Example: `  podkeeper stop web
  podkeeper stop web --wait=false`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, p, err := c.theOne(cmd.Context(), *l, namespace, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answerWithin)
			defer cancel()
			if err := server.NewClient(l.socket).Stop(ctx, keyOf(p)); err != nil {
				return askError(*l, err)
			}
			if wait {
				if err := c.awaitStop(cmd.Context(), *l, p, timeout); err != nil {
					return err
				}
			}
			c.out.printf("pod/%s stopped\n", oneLine(p.Pod.Name))
			return nil
		},
	}
	namespaceFlags(cmd, &namespace)
	cmd.Flags().BoolVar(&wait, "wait", true, "return when nothing of it runs any more")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up waiting after this `TIME`; 0 is never")
	cmd.ValidArgsFunction = c.completePods(l, &namespace, false)
	return cmd
}

// awaitStop waits until nothing of a pod runs any more.
func (c *cli) awaitStop(ctx context.Context, l location, p server.Pod, timeout time.Duration) error {
	bounded := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err := follow(bounded, c, l, askState, func(s server.State) (bool, error) {
		now, ok := podOf(s, p)
		phase := v1.PodPhase("")
		if ok {
			phase = now.Pod.Status.Phase
		}
		held := ok && now.Blocked != nil && now.Blocked.Reason == stoppedReason && now.Settled()
		return !ok || held || phase == v1.PodSucceeded || phase == v1.PodFailed, nil
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &failure{code: exitFailed, err: fmt.Errorf("pod %s is being stopped, and some of it still runs after %s", keyOf(p), timeout), hint: "It goes on; `podkeeper describe pod` shows what is left to do."}
	}
	return err
}

func podOf(s server.State, p server.Pod) (server.Pod, bool) {
	for _, now := range s.Pods {
		if now.Pod != nil && keyOf(now) == keyOf(p) {
			return now, true
		}
	}
	return server.Pod{}, false
}

func (c *cli) startCommand(l *location) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "start POD",
		Short: "Let a pod run that was stopped by hand",
		Long: `Let a pod run that was stopped by hand: as its manifest says now, and once it is
admitted. It returns when the agent has taken that on; wait says when the pod runs.`,
		Example: `  podkeeper start web && podkeeper wait pod web`,
		Args:    oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, p, err := c.theOne(cmd.Context(), *l, namespace, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answerWithin)
			defer cancel()
			if err := server.NewClient(l.socket).Start(ctx, keyOf(p)); err != nil {
				return askError(*l, err)
			}
			if p.Held.IsZero() {
				c.err.printf("Pod %s was not stopped by hand.\n", oneLine(p.Pod.Name))
			}
			c.out.printf("pod/%s started\n", oneLine(p.Pod.Name))
			return nil
		},
	}
	namespaceFlags(cmd, &namespace)
	cmd.ValidArgsFunction = c.completePods(l, &namespace, false)
	return cmd
}
