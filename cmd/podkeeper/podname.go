package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

func keyOf(p server.Pod) pod.Key {
	return pod.Key{Namespace: p.Pod.Namespace, Name: p.Pod.Name}
}

// podsOf returns the pods of a namespace ("" is all), sorted.
func podsOf(s server.State, namespace string) []server.Pod {
	pods := slices.DeleteFunc(slices.Clone(s.Pods), func(p server.Pod) bool {
		return p.Pod == nil || namespace != "" && p.Pod.Namespace != namespace
	})
	slices.SortFunc(pods, func(a, b server.Pod) int {
		return cmp.Or(keyOf(a).Compare(keyOf(b)), strings.Compare(string(a.Pod.UID), string(b.Pod.UID)))
	})
	return pods
}

// named returns the pods that a name can mean: with the node's suffix or
// without, and also as get -o name prints it, or with its namespace before it.
func named(s server.State, namespace, name string) []server.Pod {
	name = strings.TrimPrefix(name, "pod/")
	if ns, rest, ok := strings.Cut(name, "/"); ok && (namespace == "" || namespace == ns) {
		namespace, name = ns, rest
	}
	return slices.DeleteFunc(podsOf(s, namespace), func(p server.Pod) bool {
		return p.Pod.Name != name && p.Pod.Name != name+"-"+s.NodeName
	})
}

// onePod returns the one pod that a name means; ok is false where there is none.
func onePod(s server.State, namespace, name string) (p server.Pod, ok bool, err error) {
	switch found := named(s, namespace, name); len(found) {
	case 0:
		return server.Pod{}, false, nil
	case 1:
		return found[0], true, nil
	default:
		var keys []string
		for _, p := range found {
			keys = append(keys, keyOf(p).String())
		}
		return server.Pod{}, false, &failure{
			code: exitFailed, err: fmt.Errorf("pod %q can mean %s", name, strings.Join(keys, " or ")),
			hint: "Give the whole name, or the namespace with -n.",
		}
	}
}

// theOne asks the agent for the one pod that a name means.
func (c *cli) theOne(ctx context.Context, l location, namespace, name string) (s server.State, p server.Pod, err error) {
	if s, err = c.ask(ctx, l); err != nil {
		return s, p, err
	}
	p, ok, err := onePod(s, namespace, name)
	if err != nil {
		return s, p, err
	}
	c.caution(s)
	if !ok {
		return s, p, noPod(namespace, name)
	}
	return s, p, nil
}

func noPod(namespace, name string) error {
	if namespace != "" {
		return fmt.Errorf("pod %q not found in namespace %s", name, namespace)
	}
	return fmt.Errorf("pod %q not found", name)
}

// completeContainers lets a shell complete -c with the containers of the pod that the
// command names.
func (c *cli) completeContainers(cmd *cobra.Command, l *location, namespace *string) {
	c.completeContainersOf(cmd, l, namespace, func(arg string) string { return arg })
}

// completeContainersOf does that for the pod that podOf finds in an argument.
func (c *cli) completeContainersOf(cmd *cobra.Command, l *location, namespace *string, podOf func(arg string) string) {
	complete := func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		state, err := c.quickState(cmd.Context(), l)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, arg := range args {
			for _, p := range named(state, *namespace, podOf(arg)) {
				names = append(names, containerNames(p)...)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("container", complete); err != nil {
		panic(err) // the flag is not there
	}
}

// quickState is the agent's state for a shell, which cannot wait for it.
func (c *cli) quickState(ctx context.Context, l *location) (server.State, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	at, err := l.complete()
	if err != nil {
		return server.State{}, err
	}
	return server.NewClient(at.socket).State(ctx, 0)
}

// completeNames lets a shell complete the names of a kind.
func (c *cli) completeNames(l *location, k *kind, namespace *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
		defer cancel()
		at, err := l.complete()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		found, err := k.list(c, ctx, server.NewClient(at.socket), 0, false)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, i := range found.items {
			if (*namespace == "" || !k.namespaced || i.namespace == *namespace) && !slices.Contains(args, i.name) && !slices.Contains(names, i.name) {
				names = append(names, i.name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePods lets a shell complete the names of pods. An agent that does not
// answer soon completes nothing.
func (c *cli) completePods(l *location, namespace *string, many bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		state, err := c.quickState(cmd.Context(), l)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, p := range podsOf(state, *namespace) {
			if !slices.Contains(args, p.Pod.Name) {
				names = append(names, p.Pod.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
