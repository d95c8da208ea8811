package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) waitCommand(l *location) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait for a pod, for scripts and systemd",
		Args:  noSuchCommand,
		RunE:  showHelp,
	}
	w := &wait{cli: c}
	sub := &cobra.Command{
		Use:     "pod NAME",
		Aliases: []string{"pods", "po"},
		Short:   "Wait until a pod has a condition, has ended, or is gone",
		Long: `Wait until a pod has a condition, has ended, or is gone. A pod that is not there
yet is waited for.

--for=exit waits until all containers have ended for good and makes the first exit
code other than 0 its own; what goes wrong with the waiting itself is exit code 125.`,
		Example: `  podkeeper wait pod web --for=condition=Ready --timeout=1m
  podkeeper wait pod web --for=jsonpath='{.status.podIP}'
  podkeeper wait pod job --for=exit`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if w.met, err = parseGoal(w.goal); err != nil {
				return usage(cmd.CommandPath(), err)
			}
			w.name = args[0]
			if !cmd.Flags().Changed("timeout") {
				w.timeout = defaultTimeout(w.goal)
			}
			return w.run(cmd.Context(), *l)
		},
	}
	namespaceFlags(sub, &w.namespace)
	sub.Flags().StringVar(&w.goal, "for", "condition=Ready", "`WHAT` to wait for: condition=NAME[=VALUE], phase=PHASE, jsonpath=PATH[=VALUE], exit, delete")
	sub.Flags().DurationVar(&w.timeout, "timeout", defaultTimeout(""), "give up after this `TIME`; 0 looks once, less waits for ever (the default with --for=exit)")
	completeWith(sub, "for", "condition=Ready", "condition=ContainersReady", "phase=Running", "phase=Succeeded", "exit", "delete")
	sub.ValidArgsFunction = c.completePods(l, &w.namespace, false)
	cmd.AddCommand(sub)
	return cmd
}

// wait is one call of the command.
type wait struct {
	*cli
	name, namespace string
	goal            string
	timeout         time.Duration
	met             goal

	said bool
	seen *server.Pod // last
}

// defaultTimeout is kubectl's, but a unit of systemd that waits for a pod's end
// waits as long as that takes.
func defaultTimeout(goal string) time.Duration {
	if goal == "exit" {
		return -1
	}
	return 30 * time.Second
}

// goal judges a pod. outcome is what to print of it.
type goal func(p server.Pod) (outcome string, met bool, err error)

// parseGoal reads --for. It returns nil for delete, which no pod that is there meets.
func parseGoal(text string) (goal, error) {
	kind, value, _ := strings.Cut(text, "=")
	switch {
	case kind == "jsonpath" && value != "":
		return pathGoal(value)
	case text == "delete":
		return func(server.Pod) (string, bool, error) { return "", false, nil }, nil
	case text == "exit":
		return exitGoal, nil
	case kind == "phase" && value != "":
		return func(p server.Pod) (string, bool, error) {
			return "is " + value, strings.EqualFold(string(p.Pod.Status.Phase), value), nil
		}, nil
	case kind == "condition" && value != "":
		name, want, ok := strings.Cut(value, "=")
		if !ok {
			want = string(v1.ConditionTrue)
		}
		return func(p server.Pod) (string, bool, error) {
			for _, c := range p.Pod.Status.Conditions {
				if strings.EqualFold(string(c.Type), name) {
					return "condition met", strings.EqualFold(string(c.Status), want), nil
				}
			}
			return "", false, nil
		}, nil
	default:
		return nil, fmt.Errorf("--for %q: want condition=NAME[=VALUE], phase=PHASE, jsonpath=PATH[=VALUE], exit or delete", text)
	}
}

// pathGoal is met when what stands at a path of the pod is that value, or anything
// where none is given. An = within the braces of the path is its own.
func pathGoal(text string) (goal, error) {
	path, want, given := text, "", false
	if at := strings.LastIndex(text, "}="); at >= 0 {
		path, want, given = text[:at+1], text[at+2:], true
	} else if !strings.HasPrefix(text, "{") {
		path, want, given = strings.Cut(text, "=")
	}
	p, err := parseJSONPath(path)
	if err != nil {
		return nil, fmt.Errorf("--for jsonpath: %w", err)
	}
	return func(now server.Pod) (string, bool, error) {
		is, err := p.value(typed(now.Pod))
		if err != nil {
			return "", false, fmt.Errorf("--for jsonpath=%s: %w", text, err)
		}
		return "condition met", is == want && given || is != "" && !given, nil
	}, nil
}

// exitGoal is met when all containers have ended for good. Its error is the
// first exit code that is not 0.
func exitGoal(p server.Pod) (outcome string, met bool, err error) {
	status := &p.Pod.Status
	if status.Phase != v1.PodSucceeded && status.Phase != v1.PodFailed {
		return "", false, nil
	}
	var told []string
	code := 0
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil {
			told = append(told, fmt.Sprintf("%s %d", c.Name, t.ExitCode))
			if code == 0 {
				code = int(t.ExitCode)
			}
		}
	}
	if code == 0 && status.Phase == v1.PodFailed {
		code = exitFailed
	}
	if code != 0 {
		err = codeError(code)
	}
	return "ended: " + strings.Join(told, ", "), true, err
}

func (w *wait) run(ctx context.Context, l location) error {
	err := w.wait(ctx, l)
	var silent codeError
	if w.goal != "exit" || err == nil || errors.As(err, &silent) || ctx.Err() != nil {
		return err
	}
	return ownError(err)
}

// wait looks once however short the time is, then after each change.
func (w *wait) wait(ctx context.Context, l location) error {
	state, err := w.ask(ctx, l)
	if err != nil {
		return err
	}
	if done, err := w.look(state); done || err != nil {
		return err
	}
	bounded := ctx
	if w.timeout >= 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	err = follow(bounded, w.cli, l, askState, w.look)
	if ctx.Err() == nil && bounded.Err() != nil {
		return w.ranOut()
	}
	return err
}

// look judges one state of the agent.
func (w *wait) look(s server.State) (done bool, err error) {
	p, ok, err := onePod(s, w.namespace, w.name)
	switch {
	case err != nil:
		return false, err
	case ok:
		w.seen = &p
		outcome, met, err := w.met(p)
		if met {
			w.out.printf("pod/%s %s\n", oneLine(p.Pod.Name), oneLine(outcome))
		}
		return met, err
	case !s.Ready:
		return false, nil // it may be there and was not looked at yet
	case w.goal == "delete":
		w.out.printf("pod/%s deleted\n", oneLine(w.name))
		return true, nil
	case w.seen != nil:
		return false, fmt.Errorf("pod %s was removed", keyOf(*w.seen))
	case !w.said && w.timeout != 0:
		w.said = true
		w.err.printf("Pod %q is not there yet; waiting for it.\n", w.name)
	}
	return false, nil
}

// ranOut says what was waited for in vain, and how far it was.
func (w *wait) ranOut() error {
	if w.seen == nil {
		return fmt.Errorf("waited %s for pod %q: it is not there", w.timeout, w.name)
	}
	why := podWord(*w.seen)
	if b := w.seen.Blocked; b != nil {
		why = reasonText(b.Reason, b.Message)
	}
	return fmt.Errorf("waited %s for %s of pod %s: it is %s, %s ready", w.timeout, w.goal, keyOf(*w.seen), why, readiness(w.seen.Pod))
}
