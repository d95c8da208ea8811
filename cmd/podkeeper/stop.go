package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
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

// heldPod finds the pod that a name means, also one that is stopped by hand and of which
// nothing is there.
func (c *cli) heldPod(ctx context.Context, l location, namespace, name string) (key pod.Key, held bool, err error) {
	s, err := c.ask(ctx, l)
	if err != nil {
		return key, false, err
	}
	for _, h := range s.Holds {
		p := server.Pod{Pod: &v1.Pod{}, Held: h.Since}
		p.Pod.Namespace, p.Pod.Name = h.Pod.Namespace, h.Pod.Name
		s.Pods = append(s.Pods, p)
	}
	p, ok, err := onePod(s, namespace, name)
	switch {
	case err != nil:
		return key, false, err
	case !ok:
		return key, false, noPod(namespace, name)
	}
	c.caution(s)
	return keyOf(p), !p.Held.IsZero(), nil
}

// awaitStop waits until nothing of a pod runs any more.
func (c *cli) awaitStop(ctx context.Context, l location, p server.Pod, timeout time.Duration) error {
	look := func(s server.State) (bool, error) {
		now, ok := podNamed(s, keyOf(p))
		if !ok {
			return true, nil
		}
		if now.Held.IsZero() {
			return false, fmt.Errorf("pod %s was started again meanwhile", keyOf(p))
		}
		phase := now.Pod.Status.Phase
		held := now.Blocked != nil && now.Blocked.Reason == stoppedReason && now.Settled()
		return held || phase == v1.PodSucceeded || phase == v1.PodFailed, nil
	}
	return c.within(ctx, timeout, func(ctx context.Context) error { return follow(ctx, c, l, askState, look) }, func() error {
		return &failure{code: exitFailed, err: fmt.Errorf("pod %s is being stopped, and some of it still runs after %s", keyOf(p), timeout), hint: "It goes on; `podkeeper describe pod` shows what is left to do."}
	})
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
			key, held, err := c.heldPod(cmd.Context(), *l, namespace, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), answerWithin)
			defer cancel()
			if err := server.NewClient(l.socket).Start(ctx, key); err != nil {
				return askError(*l, err)
			}
			if !held {
				c.err.printf("Pod %s was not stopped by hand.\n", oneLine(key.Name))
			}
			c.out.printf("pod/%s started\n", oneLine(key.Name))
			return nil
		},
	}
	namespaceFlags(cmd, &namespace)
	cmd.ValidArgsFunction = c.completePods(l, &namespace, false)
	return cmd
}
