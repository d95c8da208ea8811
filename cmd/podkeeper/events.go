package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podkeeper/podkeeper/server"
)

// eventsCommand is found as "events" and as "get events": kubectl has both.
func (c *cli) eventsCommand(l *location) *cobra.Command {
	g := &getEvents{cli: c}
	cmd := &cobra.Command{
		Use:     "events",
		Aliases: []string{"event", "ev"},
		Short:   "List what happened to pods and to the node, the latest last",
		Long: `List what happened to pods and to the node, the latest last. What happened more
than once is counted. Events are kept in the agent's memory, for a time (--event-ttl
of run).`,
		Example: `  podkeeper events -w
  podkeeper events --for pod/web
  podkeeper get events -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if g.watch {
				return follow(cmd.Context(), c, *l, askEvents, g.more)
			}
			return g.show(cmd.Context(), *l)
		},
	}
	outputFlag(cmd, &g.format, asTable, asJSON, asYAML, asName)
	namespaceFlags(cmd, &g.namespace)
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "go on, and print what happens")
	cmd.Flags().BoolVar(&g.bare, "no-headers", false, "leave the first line of the table out")
	cmd.Flags().StringVar(&g.about, "for", "", "only what happened to this `POD`: a name, or pod/NAME")
	return cmd
}

// getEvents is one call of the command.
type getEvents struct {
	*cli
	namespace, about string
	format           format
	watch, bare      bool

	table table
	begun bool
}

func askEvents(ctx context.Context, client *server.Client, after uint64) (server.Events, uint64, error) {
	e, err := client.Events(ctx, after)
	return e, e.Revision, err
}

func (g *getEvents) show(ctx context.Context, l location) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	found, err := server.NewClient(l.socket).Events(ctx, 0)
	if err != nil {
		return askError(l, err)
	}
	list := g.pick(found.Items)
	switch {
	case g.format == asJSON || g.format == asYAML:
		return g.out.object(g.format, listOf(list))
	case len(list) == 0:
		g.err.printf("No events found.\n")
	default:
		g.print(list)
	}
	return nil
}

// more prints what a watch brings.
func (g *getEvents) more(found server.Events) (done bool, err error) {
	list := g.pick(found.Items)
	if g.format != asJSON && g.format != asYAML {
		g.print(list)
		return false, g.out.failed
	}
	for _, e := range list {
		if g.format == asYAML {
			g.out.printf("---\n")
		}
		if err := g.out.object(g.format, e); err != nil {
			return false, err
		}
	}
	return false, g.out.failed
}

// pick returns the events that are meant.
func (g *getEvents) pick(all []v1.Event) []v1.Event {
	return slices.DeleteFunc(slices.Clone(all), func(e v1.Event) bool {
		return g.namespace != "" && e.Namespace != g.namespace || g.about != "" && !isAbout(e, g.about)
	})
}

// isAbout reports whether an event is of the pod that a name means: with the node's
// suffix or without.
func isAbout(e v1.Event, name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "pod/"), e.InvolvedObject.Namespace+"/")
	return e.InvolvedObject.Kind == "Pod" && (e.InvolvedObject.Name == name || e.InvolvedObject.Name == name+"-"+e.Source.Host)
}

func (g *getEvents) print(list []v1.Event) {
	if len(list) == 0 {
		return
	}
	if g.format == asName {
		for _, e := range list {
			g.out.printf("event/%s\n", oneLine(e.Name))
		}
		return
	}
	var rows [][]cell
	if !g.begun && !g.bare {
		rows = append(rows, g.columns("NAMESPACE", cells("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")))
	}
	g.begun = true
	for _, e := range list {
		row := cells(lastSeen(e, g.now()), e.Type, e.Reason, strings.ToLower(e.InvolvedObject.Kind)+"/"+e.InvolvedObject.Name, e.Message)
		if e.Type == v1.EventTypeWarning {
			row[1].tint = busy
		}
		rows = append(rows, g.columns(e.Namespace, row))
	}
	g.table.write(g.out, rows...)
}

func (g *getEvents) columns(namespace string, row []cell) []cell {
	if g.namespace == "" {
		row = slices.Concat(cells(namespace), row)
	}
	return row
}

// lastSeen is kubectl's "2m" or "2m (x5 over 10m)".
func lastSeen(e v1.Event, now time.Time) string {
	text := duration.HumanDuration(now.Sub(e.LastTimestamp.Time))
	if e.Count > 1 {
		text += fmt.Sprintf(" (x%d over %s)", e.Count, duration.HumanDuration(now.Sub(e.FirstTimestamp.Time)))
	}
	return text
}

// eventsOf returns what happened to a pod.
func (c *cli) eventsOf(ctx context.Context, l location, p server.Pod) ([]v1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	found, err := server.NewClient(l.socket).Events(ctx, 0)
	return slices.DeleteFunc(found.Items, func(e v1.Event) bool {
		return e.InvolvedObject.Kind != "Pod" || e.InvolvedObject.UID != p.Pod.UID
	}), askError(l, err)
}

// describeEvents tells what happened to a pod, under kubectl's columns.
func describeEvents(d description, list []v1.Event, now time.Time) {
	if len(list) == 0 {
		d.line(0, "Events:", "<none>")
		return
	}
	d.head(0, "Events:")
	row := func(texts ...string) {
		for i := range texts {
			texts[i] = oneLine(texts[i])
		}
		fmt.Fprintf(d.w, "  %s\n", strings.Join(texts, "\t"))
	}
	row("Type", "Reason", "Age", "Message")
	row("----", "------", "---", "-------")
	for _, e := range list {
		row(e.Type, e.Reason, lastSeen(e, now), e.Message)
	}
}
