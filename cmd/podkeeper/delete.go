package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) deleteCommand(l *location) *cobra.Command {
	var set settings
	var logs logSettings
	var all bool
	var files []string
	var a applyFlags
	cmd := &cobra.Command{
		Use:   "delete -f FILE|- | --all",
		Short: "Remove manifests and their pods, or everything of the root dir's agent",
		Long: `With -f, remove from the agent's folder the file that supplies what the manifest has,
and wait until its pods are gone. It is refused where that file supplies anything
else, unless --prune says that this is to go, too.

With --all, remove every container, mount and folder of the root dir's agent.
Manifests are not touched: an agent that is started again starts their pods anew. The
agent must not run: it would start again what is removed.`,
		Example: `  podkeeper delete -f web.yaml
  podkeeper delete --all
  podkeeper delete --all --root-dir ./state`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case all == (len(files) > 0):
				return usage(cmd.CommandPath(), errors.New("give -f FILE, to remove its pods, or --all"))
			case !all:
				for _, file := range files {
					if err := c.deleteFile(cmd.Context(), *l, a, file); err != nil {
						return err
					}
				}
				return nil
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
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "the manifest: a `FILE`, or - for standard input")
	cmd.Flags().BoolVar(&a.prune, "prune", false, "with -f: remove also what the file in the folder has and the manifest has not")
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "with -f: remove nothing, and say what would go")
	a.waitFlags(cmd, "with -f: its pods are gone")
	set.engineFlags(cmd.Flags())
	logs.flags(cmd.Flags())
	return cmd
}

// deleteFile removes the file in the agent's folder that supplies what a manifest has.
func (c *cli) deleteFile(ctx context.Context, l location, a applyFlags, file string) error {
	state, err := c.ask(ctx, l)
	if err != nil {
		return err
	}
	m, err := c.readManifest(ctx, file, state.NodeName)
	if err != nil {
		return err
	}
	owner, err := m.owner(state, a.prune)
	if err != nil {
		return err
	}
	said := "deleted"
	if a.dryRun {
		said += " (dry run)"
	} else if err := removeFile(owner.Origin.Name); err != nil {
		return err
	}
	gone := manifestFile{pods: owner.Pods, objects: owner.Objects}
	for _, name := range gone.titles() {
		c.out.printf("%s %s\n", oneLine(name), said)
	}
	if a.dryRun || !a.wait {
		return c.out.failed
	}
	return c.awaitGone(ctx, l, owner.Pods, a)
}

// owner returns the one file that supplies what the manifest has.
func (m manifestFile) owner(s server.State, prune bool) (pod.OriginStatus, error) {
	owners := m.owners(s)
	var names []string
	for _, o := range owners {
		names = append(names, o.Origin.Name)
	}
	switch {
	case len(owners) == 0:
		return pod.OriginStatus{}, fmt.Errorf("nothing of %s is supplied by any source", m.name)
	case len(owners) > 1:
		return pod.OriginStatus{}, &failure{
			code: exitFailed, err: fmt.Errorf("what %s has is supplied by %s", m.name, strings.Join(names, " and ")),
			hint: "Delete by each of these files.",
		}
	case owners[0].Origin.Source.Kind != pod.FileSource:
		return pod.OriginStatus{}, &failure{
			code: exitFailed, err: fmt.Errorf("%s is supplied by %s, which is no file", m.shared(owners[0]), names[0]),
			hint: "Take it away there.",
		}
	}
	if extra := m.extra(owners[0]); len(extra) > 0 && !prune {
		return pod.OriginStatus{}, &failure{
			code: exitFailed, err: fmt.Errorf("%s has %s, too", names[0], strings.Join(extra, ", ")),
			hint: "Give --prune if that is to go, too; else take the rest out of that file.",
		}
	}
	return owners[0], nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// awaitGone waits until nothing is left of pods, and lets go of those that were stopped
// by hand: a pod of that name that comes again is another one.
func (c *cli) awaitGone(ctx context.Context, l location, keys []pod.Key, a applyFlags) error {
	bounded := ctx
	if a.timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	var left []string
	err := follow(bounded, c, l, askState, func(s server.State) (bool, error) {
		left = nil
		for _, p := range s.Pods {
			if p.Pod != nil && slices.Contains(keys, keyOf(p)) {
				left = append(left, keyOf(p).String())
			}
		}
		return len(left) == 0, nil
	})
	switch {
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return &failure{
			code: exitFailed, err: fmt.Errorf("waited %s: something is left of %s", a.timeout, strings.Join(left, ", ")),
			hint: "Its manifest is gone, and the agent goes on; `podkeeper describe pod` tells more.",
		}
	case err != nil:
		return err
	}
	client := server.NewClient(l.socket)
	for _, key := range keys {
		if err := client.Start(ctx, key); err != nil && !errors.Is(err, server.ErrNoPod) {
			return askError(l, err)
		}
	}
	return nil
}
