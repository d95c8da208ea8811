package main

import (
	"bytes"
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
	a.dryRunFlag(cmd, "with -f: remove nothing, and say what would go")
	a.waitFlags(cmd, "with -f: its pods are gone")
	set.engineFlags(cmd.Flags())
	logs.flags(cmd.Flags())
	return cmd
}

// deleteFile removes the file in the agent's folder that supplies what a manifest has.
func (c *cli) deleteFile(ctx context.Context, l location, a applyFlags, file string) error {
	state, err := c.askReady(ctx, l)
	if err != nil {
		return err
	}
	data, err := c.fetchManifest(ctx, file)
	if err != nil {
		return err
	}
	// Names are enough, also those of documents with errors.
	m, _ := parseManifest(shownName(file), data, state)
	owner, err := m.owner(state)
	if err != nil {
		return err
	}
	path := owner.Origin.Name
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !a.prune && !bytes.Equal(old, data) {
		if err := m.spares(path, old, state); err != nil {
			return err
		}
	}
	said := "deleted"
	if a.dry() {
		said += " (dry run)"
	} else if err := removeFile(path, old); err != nil {
		return err
	}
	gone := manifestFile{pods: owner.Pods, objects: owner.Objects}
	for _, name := range gone.titles() {
		c.out.printf("%s %s\n", oneLine(name), said)
	}
	switch {
	case a.dry():
		return c.out.failed
	case !a.wait:
		return errors.Join(c.out.failed, c.letGo(ctx, l, owner, state))
	}
	return c.awaitGone(ctx, l, owner, a)
}

// letGo ends the holds of pods that were stopped by hand and whose file was removed.
// That is not to be waited for, but they can end only once the agent has seen it:
// before, the pods would be started.
func (c *cli) letGo(ctx context.Context, l location, owner pod.OriginStatus, was server.State) error {
	left := slices.DeleteFunc(slices.Clone(owner.Pods), func(key pod.Key) bool {
		p, there := podNamed(was, key)
		return !there || p.Held.IsZero()
	})
	if len(left) == 0 {
		return nil
	}
	look := func(s server.State) (bool, error) {
		for i, key := range slices.Backward(left) {
			if p, there := podNamed(s, key); there && !p.Removing {
				continue
			}
			if err := c.lift(ctx, l, key); err != nil {
				return false, err
			}
			left = slices.Delete(left, i, i+1)
		}
		return len(left) == 0, nil
	}
	return c.within(ctx, answerWithin, func(ctx context.Context) error { return follow(ctx, c, l, askState, look) }, func() error {
		return &failure{
			code: exitFailed, err: fmt.Errorf("the agent does not see yet that %s is wanted no more: one of that name that comes again is held", left[0]),
			hint: "Its manifest is gone. `podkeeper start` lets go of it.",
		}
	})
}

// lift ends the hold of a pod that nothing wants.
func (c *cli) lift(ctx context.Context, l location, key pod.Key) error {
	if err := server.NewClient(l.socket).Start(ctx, key); err != nil && !errors.Is(err, server.ErrNoPod) {
		return askError(l, err)
	}
	return nil
}

// owner returns the one file that supplies what the manifest has.
func (m manifestFile) owner(s server.State) (pod.OriginStatus, error) {
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
	return owners[0], nil
}

// removeFile removes a file that still says what it said.
func removeFile(path string, old []byte) error {
	now, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, old) {
		return fmt.Errorf("%s was changed by somebody else meanwhile", path)
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// awaitGone waits until nothing is left of what a file supplied, and lets go of pods
// that were stopped by hand once nothing wants them: one of that name that comes again
// is another one.
func (c *cli) awaitGone(ctx context.Context, l location, owner pod.OriginStatus, a applyFlags) error {
	var left []string
	lifted := map[pod.Key]bool{}
	look := func(s server.State) (bool, error) {
		left = nil
		for _, key := range owner.Pods {
			p, there := podNamed(s, key)
			ours := there && (p.Origin == owner.Origin || p.Removing)
			if ours {
				left = append(left, key.String())
			}
			if !lifted[key] && (!there || p.Removing) {
				if err := c.lift(ctx, l, key); err != nil {
					return false, err
				}
				lifted[key] = true
			}
		}
		return len(left) == 0, nil
	}
	return c.within(ctx, a.timeout, func(ctx context.Context) error { return follow(ctx, c, l, askState, look) }, func() error {
		return &failure{
			code: exitFailed, err: fmt.Errorf("waited %s: something is left of %s", a.timeout, strings.Join(left, ", ")),
			hint: "Its manifest is gone, and the agent goes on; `podkeeper describe pod` tells more.",
		}
	})
}

func podNamed(s server.State, key pod.Key) (server.Pod, bool) {
	for _, p := range s.Pods {
		if p.Pod != nil && keyOf(p) == key {
			return p, true
		}
	}
	return server.Pod{}, false
}
