package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) getSourcesCommand(l *location) *cobra.Command {
	g := &getSources{cli: c, last: map[string]string{}}
	var selected string
	cmd := &cobra.Command{
		Use:     "sources",
		Aliases: []string{"source"},
		Short:   "Show where pods come from: files, what is wrong with them, what is skipped",
		Long: `Show where pods come from: each folder, file and URL, the pods and objects that it
supplies, what is wrong with it, and what lies beside the manifests and is not
taken.

-o wide also shows the fields that are accepted and have no effect here.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if selected != "" {
				return usage(cmd.CommandPath(), errors.New("--selector: sources have no labels here; podkeeper get pods -l lists pods by theirs"))
			}
			if g.sorted != "" {
				if g.sortBy, err = parseJSONPath(g.sorted); err != nil {
					return usage(cmd.CommandPath(), fmt.Errorf("--sort-by %w", err))
				}
			}
			if g.watch {
				return follow(cmd.Context(), c, *l, askState, g.show)
			}
			state, err := c.ask(cmd.Context(), *l)
			if err != nil {
				return err
			}
			_, err = g.show(state)
			return err
		},
	}
	outputFlag(cmd, &g.format, asTable, asWide, asJSON, asYAML, asName)
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "go on, and print what changes")
	cmd.Flags().StringVar(&g.sorted, "sort-by", "", "sort by what stands at this `PATH` of the source in JSON, such as .id.name")
	cmd.Flags().StringVarP(&selected, "selector", "l", "", "")
	cobra.CheckErr(cmd.Flags().MarkHidden("selector")) // it says why there is none
	return cmd
}

// getSources is one call of the command.
type getSources struct {
	*cli
	format format
	watch  bool
	sorted string
	sortBy jsonPath
	last   map[string]string // what was last printed, by what it is of
}

// sourceList is the shape of -o json.
type sourceList struct {
	Sources   []pod.Source   `json:"sources"`
	Conflicts []pod.Conflict `json:"conflicts"`
}

// show prints what differs from what was last printed.
func (g *getSources) show(s server.State) (done bool, err error) {
	if len(g.last) == 0 {
		g.caution(s)
	}
	list := sourceList{Sources: append([]pod.Source{}, s.Sources...), Conflicts: append([]pod.Conflict{}, s.Conflicts...)}
	if g.sorted != "" {
		if err := sortByPath(list.Sources, g.sorted, g.sortBy, func(s pod.Source) any { return s }); err != nil {
			return false, err
		}
	}
	switch g.format {
	case asJSON, asYAML:
		data, err := json.Marshal(list)
		if err != nil {
			return false, fmt.Errorf("write json: %w", err)
		}
		if !g.changed("all", string(data)) {
			return false, nil
		}
		if g.format == asYAML && g.watch {
			g.out.printf("---\n")
		}
		return false, g.out.object(g.format, list)
	case asName:
		for _, src := range list.Sources {
			if g.changed(src.ID.String(), src.ID.String()) {
				g.out.printf("%s\n", oneLine(src.ID.String()))
			}
		}
	default:
		for _, src := range list.Sources {
			if g.changed(src.ID.String(), sourceText(src, g.format == asWide, time.Time{})) {
				g.out.printf("%s", sourceText(src, g.format == asWide, g.now()))
			}
		}
		if text := conflictsText(list.Conflicts); g.changed("conflicts", text) {
			g.out.printf("%s", text)
		}
		if len(list.Sources) == 0 {
			g.err.printf("The agent has no sources.\n")
		}
	}
	return false, g.out.failed
}

func (g *getSources) changed(what, text string) bool {
	if old, ok := g.last[what]; ok && old == text {
		return false
	}
	g.last[what] = text
	return true
}

// sourceText is a source as a paragraph. now is zero where the time of the last
// look is not wanted.
func sourceText(s pod.Source, notes bool, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", oneLine(s.ID.String()), sourceState(s))
	if !s.Read.IsZero() && !now.IsZero() {
		fmt.Fprintf(&b, ", read %s ago", duration.HumanDuration(now.Sub(s.Read)))
	}
	b.WriteByte('\n')
	if s.Problem != "" {
		fmt.Fprintf(&b, "  %s\n", oneLine(s.Problem))
	}
	for _, o := range s.Origins {
		fmt.Fprintf(&b, "  %s: %s\n", oneLine(o.Origin.Name), originState(o))
		for _, p := range o.Problems {
			if p.Severity != pod.Note || notes {
				fmt.Fprintf(&b, "    %s\n", oneLine(p.String()))
			}
		}
	}
	for _, f := range s.Skipped {
		fmt.Fprintf(&b, "  %s: skipped: %s\n", oneLine(f.Path), oneLine(f.Reason))
	}
	return b.String()
}

func sourceState(s pod.Source) string {
	switch {
	case s.Problem != "" && !s.Present:
		return "silent, its pods stay as they are"
	case !s.Spoken:
		return "not read yet"
	default:
		pods, objects := 0, 0
		for _, o := range s.Origins {
			pods += len(o.Pods)
			objects += len(o.Objects)
		}
		text := fmt.Sprintf("%s, %s", plural(len(s.Origins), "manifest"), plural(pods, "pod"))
		if objects > 0 {
			text += ", " + plural(objects, "object")
		}
		return text
	}
}

func originState(o pod.OriginStatus) string {
	var names []string
	for _, k := range o.Pods {
		names = append(names, oneLine(k.String()))
	}
	for _, k := range o.Objects {
		names = append(names, oneLine(k.String()))
	}
	text := strings.Join(names, ", ")
	if text == "" {
		text = "no pods"
	}
	if o.Stale {
		text += " (last good version)"
	}
	return text
}

func conflictsText(conflicts []pod.Conflict) string {
	var b strings.Builder
	for _, c := range conflicts {
		fmt.Fprintf(&b, "conflict: %s\n", oneLine(conflictText(c)))
	}
	return b.String()
}

// conflictText says who lost, to whom, and over what.
func conflictText(c pod.Conflict) string {
	loser := c.Loser.Name
	if c.Line > 0 {
		loser = fmt.Sprintf("%s:%d", loser, c.Line)
	}
	if c.Object != (pod.ObjectKey{}) {
		return fmt.Sprintf("%s of %s is ignored: %s has it", c.Object, loser, c.Winner)
	}
	if c.UID != "" {
		return fmt.Sprintf("pod %s of %s is refused: its uid %s is in use by %s of %s", c.Key, loser, c.UID, c.Holder, c.Winner)
	}
	return fmt.Sprintf("pod %s of %s is ignored: %s has it", c.Key, loser, c.Winner)
}
