package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) getPodsCommand(l *location) *cobra.Command {
	g := &getPods{cli: c}
	cmd := &cobra.Command{
		Use:     "pods [NAME...]",
		Aliases: []string{"pod", "po"},
		Short:   "List pods, and why they do not run where they do not",
		Long: `List pods, and why they do not run where they do not, in kubectl's columns.

A NAME may have the node's suffix or not. -o json and -o yaml print v1.Pod with
its status: one object for one NAME, else a List.`,
		Example: `  podkeeper get pods -o wide
  podkeeper get pods web -o yaml
  podkeeper get pods -w`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, names []string) error {
			g.names = names
			if g.watch {
				return follow(cmd.Context(), c, *l, askState, g.changes)
			}
			state, err := c.ask(cmd.Context(), *l)
			if err != nil {
				return err
			}
			return g.show(state)
		},
	}
	outputFlag(cmd, &g.format, asTable, asWide, asJSON, asYAML, asName)
	namespaceFlags(cmd, &g.namespace)
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "go on, and print what changes")
	cmd.Flags().BoolVar(&g.bare, "no-headers", false, "leave the first line of the table out")
	cmd.ValidArgsFunction = c.completePods(l, &g.namespace, true)
	return cmd
}

// getPods is one call of the command.
type getPods struct {
	*cli
	names       []string
	namespace   string
	format      format
	watch, bare bool

	table table
	begun bool
	shown map[string]shownPod // by UID, for changes
}

// shownPod is what was last printed of a pod.
type shownPod struct {
	pod server.Pod
	// print is what a change must change to be one.
	print string
}

// pick returns the pods that are meant, and an error for each name that means none.
func (g *getPods) pick(s server.State) (pods []server.Pod, missing error) {
	if len(g.names) == 0 {
		return podsOf(s, g.namespace), nil
	}
	var errs []error
	for _, name := range g.names {
		found := named(s, g.namespace, name)
		if len(found) == 0 {
			errs = append(errs, noPod(g.namespace, name))
		}
		for _, p := range found {
			if !slices.ContainsFunc(pods, func(q server.Pod) bool { return q.Pod == p.Pod }) {
				pods = append(pods, p)
			}
		}
	}
	return pods, errors.Join(errs...)
}

func (g *getPods) show(s server.State) error {
	pods, missing := g.pick(s)
	g.caution(s)
	switch g.format {
	case asJSON, asYAML:
		if len(g.names) == 1 && len(pods) == 1 {
			return g.out.object(g.format, typed(pods[0].Pod))
		}
		if missing != nil && len(pods) == 0 {
			return missing
		}
		if err := g.out.object(g.format, podList(pods)); err != nil {
			return err
		}
	default:
		g.print(s, pods)
		if len(g.names) == 0 && len(pods) == 0 {
			g.nothing()
		}
	}
	return missing
}

func (g *getPods) nothing() {
	if g.namespace != "" {
		g.err.printf("No pods found in namespace %s.\n", oneLine(g.namespace))
	} else {
		g.err.printf("No pods found.\n")
	}
}

// print writes pods as rows or names, the head of the table before the first.
func (g *getPods) print(s server.State, pods []server.Pod) {
	if len(pods) == 0 {
		return
	}
	if g.format == asName {
		for _, p := range pods {
			g.out.printf("pod/%s\n", oneLine(p.Pod.Name))
		}
		return
	}
	var rows [][]cell
	if !g.begun && !g.bare {
		rows = append(rows, g.columns(cells("NAME", "READY", "STATUS", "RESTARTS", "AGE"), "NAMESPACE", cells("IP", "NODE", "SOURCE")))
	}
	g.begun = true
	for _, p := range pods {
		rows = append(rows, g.row(s, p, podWord(p)))
	}
	g.table.write(g.out, rows...)
}

func (g *getPods) row(s server.State, p server.Pod, word string) []cell {
	now := g.now()
	row := cells(p.Pod.Name, readiness(p.Pod), word, restarts(p.Pod, now), age(p.Pod, now))
	row[2].tint = wordTint(word)
	node := p.Pod.Spec.NodeName
	if node == "" {
		node = s.NodeName
	}
	return g.columns(row, p.Pod.Namespace, cells(orNone(p.Pod.Status.PodIP), orNone(node), orNone(p.Origin.Name)))
}

// columns puts what depends on the flags around the columns of every table.
func (g *getPods) columns(row []cell, namespace string, wide []cell) []cell {
	if g.namespace == "" {
		row = slices.Concat(cells(namespace), row)
	}
	if g.format == asWide {
		row = slices.Concat(row, wide)
	}
	return row
}

// changes prints the pods that look different from when they were last printed.
func (g *getPods) changes(s server.State) (done bool, err error) {
	pods, _ := g.pick(s)
	first := g.shown == nil
	if first {
		g.caution(s)
		if len(pods) == 0 {
			g.nothing()
		}
	}
	shown := make(map[string]shownPod, len(pods))
	var changed []server.Pod
	for _, p := range pods {
		uid := string(p.Pod.UID) + "/" + keyOf(p).String()
		print, err := g.fingerprint(p)
		if err != nil {
			return false, err
		}
		shown[uid] = shownPod{p, print}
		if g.shown[uid].print != print {
			changed = append(changed, p)
		}
	}
	for uid, old := range g.shown {
		if _, still := shown[uid]; !still && (g.format == asTable || g.format == asWide) {
			g.table.write(g.out, g.row(s, old.pod, "Deleted"))
		}
	}
	g.shown = shown
	if g.format != asJSON && g.format != asYAML {
		g.print(s, changed)
		return false, g.out.failed
	}
	for _, p := range changed {
		if g.format == asYAML {
			g.out.printf("---\n")
		}
		if err := g.out.object(g.format, typed(p.Pod)); err != nil {
			return false, err
		}
	}
	return false, g.out.failed
}

// fingerprint is equal as long as a pod is to be printed in the same way, but
// for its age.
func (g *getPods) fingerprint(p server.Pod) (string, error) {
	switch g.format {
	case asName:
		return p.Pod.Name, nil
	case asJSON, asYAML:
		data, err := json.Marshal(p.Pod)
		if err != nil {
			return "", fmt.Errorf("write json: %w", err)
		}
		return string(bytes.TrimSpace(data)), nil
	default:
		count := int32(0)
		for _, c := range p.Pod.Status.ContainerStatuses {
			count += c.RestartCount
		}
		return fmt.Sprintln(readiness(p.Pod), podWord(p), count, p.Pod.Status.PodIP, p.Origin.Name), nil
	}
}

// typed returns a pod that says what it is, as programs want it.
func typed(p *v1.Pod) *v1.Pod {
	p = p.DeepCopy()
	p.APIVersion, p.Kind = "v1", "Pod"
	return p
}

// list is a v1 List as kubectl prints it.
type list[T any] struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   struct{} `json:"metadata"`
	Items      []T      `json:"items"`
}

func listOf[T any](items []T) list[T] {
	return list[T]{APIVersion: "v1", Kind: "List", Items: append([]T{}, items...)}
}

func podList(pods []server.Pod) list[*v1.Pod] {
	var items []*v1.Pod
	for _, p := range pods {
		items = append(items, typed(p.Pod))
	}
	return listOf(items)
}
