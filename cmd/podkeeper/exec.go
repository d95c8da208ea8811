package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server"
	wire "github.com/podkeeper/podkeeper/server/stream"
)

// talkFlags are those of exec and attach.
type talkFlags struct {
	namespace, container string
	stdin, tty           bool
}

func (f *talkFlags) add(cmd *cobra.Command, c *cli, l *location) {
	namespaceFlags(cmd, &f.namespace)
	cmd.Flags().StringVarP(&f.container, "container", "c", "", "this `CONTAINER` (default the pod's first one)")
	cmd.Flags().BoolVarP(&f.stdin, "stdin", "i", false, "pass standard input on")
	cmd.Flags().BoolVarP(&f.tty, "tty", "t", false, "standard input is a terminal, and so it is in the container")
	cmd.ValidArgsFunction = c.completePods(l, &f.namespace, false)
}

func (c *cli) execCommand(l *location) *cobra.Command {
	var f talkFlags
	cmd := &cobra.Command{
		Use:   "exec POD [-c CONTAINER] [-i] [-t] -- COMMAND [ARG]...",
		Short: "Run a command in a container",
		Long: `Run a command in a container that runs, as its user and in its working directory.

Its exit code is that of podkeeper, or 125 where podkeeper could not run it. The command ends when
podkeeper does.`,
		Example: `  podkeeper exec web -- ls -l /srv
  podkeeper exec -it web -- sh
  podkeeper exec db -n shop -c postgres -i -- psql < dump.sql`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return usage(cmd.CommandPath(), errors.New("want the name of one pod, then --, then a command"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.talk(cmd.Context(), *l, f, "exec", args[0], args[1:])
		},
	}
	f.add(cmd, c, l)
	return cmd
}

func (c *cli) attachCommand(l *location) *cobra.Command {
	var f talkFlags
	cmd := &cobra.Command{
		Use:   "attach POD [-c CONTAINER] [-i] [-t]",
		Short: "Join in with what a container's own process reads and writes",
		Long: `Join in with what a container's own process reads and writes, from now on, until it
ends. What it wrote before is in its log. ctrl-c leaves it as it is; where both have a terminal,
ctrl-p ctrl-q does.`,
		Example: `  podkeeper attach web
  podkeeper attach -it shell`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.talk(cmd.Context(), *l, f, "attach", args[0], nil)
		},
	}
	f.add(cmd, c, l)
	return cmd
}

// talk is exec or attach.
func (c *cli) talk(ctx context.Context, l location, f talkFlags, verb, name string, command []string) error {
	own := ownError
	if verb != "exec" {
		own = func(err error) error { return err }
	}
	where, err := c.containerOf(ctx, l, f.namespace, name, f.container)
	if err != nil {
		return own(err)
	}
	s := runtime.Streams{Stdout: c.out, Stderr: c.err}
	if f.stdin {
		s.Stdin = io.NopCloser(c.in)
	}
	if f.tty {
		terminal, err := openTerminal(ctx, c.in)
		switch {
		case err == nil:
			defer terminal.restore()
			s.TTY, s.Resize, ctx = true, terminal.sizes, terminal.ctx
		case errors.Is(err, errNoTerminal):
			c.err.printf("Standard input is no terminal: there is none in the container, either.\n")
		default:
			return own(err)
		}
	}
	code, err := c.converse(ctx, l, verb, where, command, s)
	switch {
	case err != nil && errors.Is(err, ctx.Err()):
		return codeError(exitInterrupted)
	case err != nil:
		return own(err)
	case code != 0:
		return codeError(code)
	default:
		return nil
	}
}

// converse talks to a process in a container and returns its exit code.
func (c *cli) converse(ctx context.Context, l location, verb string, where target, command []string, s runtime.Streams) (int, error) {
	conn, err := server.NewClient(l.socket).Upgrade(ctx, where.path(verb), wire.TalkQuery(command, s), wire.TalkHeader())
	if err != nil {
		return 0, askError(l, err)
	}
	return wire.Talk(ctx, conn, s)
}

// ownError is an error of a command whose exit codes are those of containers: whatever
// went wrong, it is not taken for one of these.
func ownError(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	own := &failure{code: exitOwn, err: err}
	if known, ok := errors.AsType[*failure](err); ok {
		own.err, own.hint = known.err, known.hint
	}
	return own
}

// target is one container, or a pod where the name is "".
type target struct {
	pod       *v1.Pod
	container string
}

// path is that of a verb of the kubelet API. It has the UID: of two pods that follow
// each other in a name it is the one that was looked at.
func (t target) path(verb string) string {
	parts := []string{"", verb, t.pod.Namespace, t.pod.Name, string(t.pod.UID)}
	if t.container != "" {
		parts = append(parts, t.container)
	}
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// containerOf asks the agent for the container that is meant.
func (c *cli) containerOf(ctx context.Context, l location, namespace, pod, container string) (target, error) {
	_, p, err := c.theOne(ctx, l, namespace, pod)
	if err != nil {
		return target{}, err
	}
	name, others := containerNamed(p.Pod, container)
	if name == "" {
		return target{}, &failure{
			code: exitFailed, err: fmt.Errorf("container %q not found in pod %s", container, keyOf(p)),
			hint: "It has: " + strings.Join(others, ", ") + ".",
		}
	}
	if container == "" && len(others) > 1 {
		c.err.printf("Container %s of: %s.\n", oneLine(name), oneLine(strings.Join(others, ", ")))
	}
	return target{p.Pod, name}, nil
}

// defaultContainer is the annotation with which a pod says which one is meant.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// containerNamed returns the container of that name, "" where there is none; of ""
// the one that the pod says, or its first. all are those that can be named.
func containerNamed(p *v1.Pod, name string) (found string, all []string) {
	for _, list := range [][]v1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for _, container := range list {
			all = append(all, container.Name)
		}
	}
	if name == "" && len(p.Spec.Containers) > 0 {
		name = p.Spec.Containers[0].Name
		for _, container := range p.Spec.Containers {
			if container.Name == p.Annotations[defaultContainer] {
				name = container.Name
			}
		}
	}
	for _, one := range all {
		if one == name {
			return name, all
		}
	}
	return "", all
}
