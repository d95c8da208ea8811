package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) imagesCommand(l *location) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List, fetch and collect images",
		Args:  noSuchCommand,
		RunE:  showHelp,
	}
	ls := c.getKindCommand(l, imagesKind())
	ls.Use, ls.Aliases = "ls [NAME...]", []string{"list"}
	ls.Example = "  podkeeper images ls -o wide"
	cmd.AddCommand(ls, c.pullCommand(l), c.collectCommand(l, "gc", server.Collection{Images: true}))
	return cmd
}

func (c *cli) pullCommand(l *location) *cobra.Command {
	return &cobra.Command{
		Use:   "pull IMAGE...",
		Short: "Fetch images, with the logins that the agent has",
		Long: `Fetch images, with the logins that the agent has for their registries. They count as
the agent's: unused, they are collected like any other of its.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd.CommandPath(), errors.New("want the name of an image"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, image := range args {
				if err := c.pull(cmd.Context(), *l, image); err != nil {
					return askError(*l, err) // which names the image
				}
			}
			return nil
		},
	}
}

func (c *cli) pull(ctx context.Context, l location, image string) error {
	screen := c.screen()
	id, err := server.NewClient(l.socket).Pull(ctx, image, func(p server.Progress) {
		if c.err.terminal {
			screen.progress(runtime.PullProgress{Image: image, Done: p.Done, Layers: p.Layers, Bytes: p.Bytes, Total: p.Total})
		}
	})
	screen.end()
	if err != nil {
		return err
	}
	c.out.printf("image/%s pulled (%s)\n", oneLine(image), shortID(id))
	return nil
}

// collectCommand is found as "gc", of everything, and as "images gc".
func (c *cli) collectCommand(l *location, name string, what server.Collection) *cobra.Command {
	things := "dead containers and unused images"
	if !what.Containers {
		things = "unused images"
	}
	var output format
	cmd := &cobra.Command{
		Use:   name,
		Short: "Collect " + things + " now, or say what would go",
		Long: `Collect ` + things + ` now, as the agent does by itself every now and
then: what is over the limits and thresholds of its flags. With --all everything goes
that may: nothing that is wanted, in use, pinned, somebody else's or too young.`,
		Example: "  podkeeper " + map[bool]string{true: "gc", false: "images gc"}[what.Containers] + " --dry-run",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := server.NewClient(l.socket).Collect(cmd.Context(), what)
			if err != nil {
				return askError(*l, err)
			}
			return c.showCollected(output, found)
		},
	}
	cmd.Flags().BoolVar(&what.DryRun, "dry-run", false, "remove nothing, and say what would go")
	cmd.Flags().BoolVar(&what.All, "all", false, "everything that may go, whatever the thresholds")
	outputFlag(cmd, &output, asTable, asJSON, asYAML)
	return cmd
}

func (c *cli) showCollected(f format, found server.Collected) error {
	if f != asTable {
		if err := c.out.object(f, found); err != nil || len(found.Failed) == 0 {
			return err
		}
		return codeError(exitFailed)
	}
	var rows [][]cell
	for _, i := range found.Containers {
		rows = append(rows, cells("container/"+i.Name, shortID("docker://"+i.ID), "", i.Why))
	}
	for _, i := range found.Images {
		rows = append(rows, cells("image/"+orNone(i.Name), shortID(i.ID), units.HumanSize(float64(i.Size)), i.Why))
	}
	if len(rows) > 0 {
		new(table).write(c.out, append([][]cell{cells("NAME", "ID", "SIZE", "WHY")}, rows...)...)
	}
	switch {
	case found.DryRun && len(rows) == 0:
		c.err.printf("Nothing would go.\n")
	case found.DryRun:
		c.err.printf("%s would go.\n", plural(len(rows), "thing"))
	default:
		c.err.printf("%s removed, %s of images.\n", plural(found.Removed, "thing"), units.HumanSize(float64(found.Freed)))
	}
	if len(found.Failed) > 0 {
		return &failure{code: exitFailed, err: fmt.Errorf("not removed: %s", strings.Join(found.Failed, ", ")), hint: "The agent's log says why."}
	}
	return nil
}
