package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podkeeper/podkeeper/server"
)

func eventsKind() *kind {
	return &kind{
		plural: "events", singular: "event", short: []string{"ev"}, namespaced: true,
		about: "List what happened to pods and to the node, the latest last",
		long: `List what happened to pods and to the node, the latest last. What happened more
than once is counted. Events are kept in the agent's memory, for a time (--event-ttl
of run).`,
		example: `  podkeeper events -w
  podkeeper events --for pod/web
  podkeeper get events -o json`,
		head: []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}, wide: []string{"SUBOBJECT", "SOURCE", "FIRST SEEN", "COUNT", "NAME"},
		list: listEvents,
	}
}

// eventsCommand is found as "events" and as "get events": kubectl has both.
func (c *cli) eventsCommand(l *location) *cobra.Command {
	g := &getList{cli: c, kind: eventsKind()}
	var about string
	var types []string
	cmd := &cobra.Command{
		Use: "events", Aliases: []string{"event", "ev"}, Short: g.kind.about, Long: g.kind.long, Example: g.kind.example,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g.keep = func(i item) bool {
				e := i.object.(v1.Event)
				return (about == "" || isAbout(e, about)) && (len(types) == 0 || slices.Contains(types, e.Type))
			}
			return g.run(cmd, *l)
		},
	}
	g.flags(cmd)
	cmd.Flags().StringVar(&about, "for", "", "only what happened to this `POD`: a name, or pod/NAME")
	cmd.Flags().StringSliceVar(&types, "types", nil, "only events of these `TYPES`: Normal, Warning")
	completeWith(cmd, "types", v1.EventTypeNormal, v1.EventTypeWarning)
	return cmd
}

func listEvents(c *cli, ctx context.Context, client *server.Client, after uint64, _ bool) (listing, error) {
	found, err := client.Events(ctx, after)
	l := listing{revision: found.Revision}
	for _, e := range found.Items {
		typed := e
		typed.APIVersion, typed.Kind = "v1", "Event"
		i := item{
			namespace: e.Namespace, name: e.Name, id: string(e.UID), labels: e.Labels, object: typed,
			row:  cells(lastSeen(e, c.now()), e.Type, e.Reason, strings.ToLower(e.InvolvedObject.Kind)+"/"+e.InvolvedObject.Name, e.Message),
			wide: cells(orNone(e.InvolvedObject.FieldPath), orNone(e.Source.Component), duration.HumanDuration(c.now().Sub(e.FirstTimestamp.Time)), strconv.Itoa(int(e.Count)), e.Name),
			look: fmt.Sprintln(e.Count, e.LastTimestamp.UnixNano(), e.Message),
		}
		if e.Type == v1.EventTypeWarning {
			i.row[1].tint = busy
		}
		l.items = append(l.items, i)
	}
	return l, err
}

// isAbout reports whether an event is of the pod that a name means: with the node's
// suffix or without.
func isAbout(e v1.Event, name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "pod/"), e.InvolvedObject.Namespace+"/")
	return e.InvolvedObject.Kind == "Pod" && (e.InvolvedObject.Name == name || e.InvolvedObject.Name == name+"-"+e.Source.Host)
}

// lastSeen is kubectl's "2m" or "2m (x5 over 10m)".
func lastSeen(e v1.Event, now time.Time) string {
	text := duration.HumanDuration(now.Sub(e.LastTimestamp.Time))
	if e.Count > 1 {
		text += fmt.Sprintf(" (x%d over %s)", e.Count, duration.HumanDuration(now.Sub(e.FirstTimestamp.Time)))
	}
	return text
}

// events asks the agent for what happened.
func (c *cli) events(ctx context.Context, l location) ([]v1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	found, err := server.NewClient(l.socket).Events(ctx, 0)
	return found.Items, askError(l, err)
}

// eventsOf returns what of it happened to a pod.
func eventsOf(all []v1.Event, p server.Pod) (list []v1.Event) {
	for _, e := range all {
		if e.InvolvedObject.Kind == "Pod" && e.InvolvedObject.UID == p.Pod.UID {
			list = append(list, e)
		}
	}
	return list
}

// describeEvents tells what happened to a pod, under kubectl's columns.
func describeEvents(d description, list []v1.Event, now time.Time) {
	if len(list) == 0 {
		d.line(0, "Events:", "<none>")
		return
	}
	d.head(0, "Events:")
	d.row("Type", "Reason", "Age", "Message")
	d.row("----", "------", "---", "-------")
	for _, e := range list {
		d.row(e.Type, e.Reason, lastSeen(e, now), e.Message)
	}
}
