package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podkeeper/podkeeper/server"
)

// kind is a kind of thing that can be listed.
type kind struct {
	plural, singular string
	short            []string
	about, long      string
	example          string
	// namespaced things have a column for that, and are picked by -n.
	namespaced bool
	head, wide []string
	// list asks for them: what is newer than a revision, as follow has it. full is for
	// programs.
	list func(c *cli, ctx context.Context, client *server.Client, after uint64, full bool) (listing, error)
	// means reports whether a name is that of an item; nil compares.
	means func(l listing, i item, namespace, name string) bool
	// gone is the row of an item that is there no more; nil says nothing of it.
	gone func(item) []cell
	// labelled things can be picked by -l.
	labelled bool
	// alone: there is one by nature, which programs get without a List around it.
	alone bool
}

// listing is what there is of a kind.
type listing struct {
	revision uint64
	items    []item
	// state is the agent's, where it was asked for.
	state *server.State
	node  string
}

// item is one of them.
type item struct {
	namespace, name string
	// id tells it from another of its name; "" is the name.
	id        string
	of        string // the pod that it is part of
	labels    map[string]string
	row, wide []cell
	// look is equal as long as its row is to be printed in the same way, but for its
	// age; "" is the row itself.
	look   string
	object any
	// said is what the agent said of it, where object has less.
	said any
}

// names of a kind that people may give.
func (k *kind) names() []string { return slices.Concat([]string{k.plural, k.singular}, k.short) }

// getList is one call of the command.
type getList struct {
	*cli
	kind      *kind
	names     []string
	namespace string
	selected  string
	selector  labels.Selector
	sorted    string
	sortBy    jsonPath
	format    format
	watch     bool
	bare      bool
	prefix    bool // names bear the kind, since there are several
	after     bool // another table came before

	keep  func(item) bool // beside what the flags say; nil is all
	table table
	begun bool
	shown map[string]shownItem
}

// shownItem is what was last printed of an item.
type shownItem struct {
	item item
	// print is what a change must change to be one.
	print string
}

func (c *cli) getKindCommand(l *location, k *kind) *cobra.Command {
	g := &getList{cli: c, kind: k}
	use := k.plural
	if k.means == nil || k.namespaced {
		use += " [NAME...]"
	}
	cmd := &cobra.Command{
		Use: use, Aliases: k.names()[1:], Short: k.about, Long: k.long, Example: k.example,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, names []string) error {
			g.names = names
			return g.run(cmd, *l)
		},
	}
	g.flags(cmd)
	cmd.ValidArgsFunction = c.completeNames(l, k, &g.namespace)
	return cmd
}

func (g *getList) flags(cmd *cobra.Command) {
	outputFlag(cmd, &g.format, asTable, asWide, asJSON, asYAML, asName)
	namespaceFlags(cmd, &g.namespace)
	cmd.Flags().StringVarP(&g.selected, "selector", "l", "", "only those whose labels match, such as app=web,tier!=db")
	if g.kind != nil && !g.kind.labelled {
		cobra.CheckErr(cmd.Flags().MarkHidden("selector")) // it says why there is none
	}
	cmd.Flags().StringVar(&g.sorted, "sort-by", "", "sort by what stands at this `PATH` of the object, such as .metadata.name")
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "go on, and print what changes")
	cmd.Flags().BoolVar(&g.bare, "no-headers", false, "leave the first line of the table out")
}

// prepare reads what flags say.
func (g *getList) prepare(cmd *cobra.Command) error {
	var err error
	if g.selected != "" && !g.kind.labelled {
		return usage(cmd.CommandPath(), fmt.Errorf("--selector: %s have no labels here", g.kind.plural))
	}
	if g.selector, err = labels.Parse(g.selected); err != nil {
		return usage(cmd.CommandPath(), fmt.Errorf("--selector %q: %w", g.selected, err))
	}
	if g.sorted == "" {
		return nil
	}
	if g.sortBy, err = parseJSONPath(g.sorted); err != nil {
		return usage(cmd.CommandPath(), fmt.Errorf("--sort-by %w", err))
	}
	return nil
}

func (g *getList) run(cmd *cobra.Command, l location) error {
	if err := g.prepare(cmd); err != nil {
		return err
	}
	if g.watch {
		ask := func(ctx context.Context, client *server.Client, after uint64) (listing, uint64, error) {
			found, err := g.kind.list(g.cli, ctx, client, after, g.full())
			return found, found.revision, err
		}
		return follow(cmd.Context(), g.cli, l, ask, g.changes)
	}
	return g.once(cmd.Context(), l)
}

func (g *getList) full() bool { return g.format == asJSON || g.format == asYAML }

// once asks and prints.
func (g *getList) once(ctx context.Context, l location) error {
	found, err := g.found(ctx, l)
	if err != nil {
		return err
	}
	return g.show(found)
}

// ask returns what is meant, and an error for what is not there.
func (g *getList) ask(ctx context.Context, l location) ([]item, error) {
	found, err := g.found(ctx, l)
	if err != nil {
		return nil, err
	}
	return g.pick(found)
}

func (g *getList) found(ctx context.Context, l location) (listing, error) {
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	found, err := g.kind.list(g.cli, bounded, server.NewClient(l.socket), 0, g.full() || g.sorted != "")
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return found, &failure{code: exitNoAgent, err: fmt.Errorf("the agent on %s did not answer within %s", l.socket, answerWithin)}
	}
	return found, askError(l, err)
}

// pick returns the items that are meant, and an error for each name that means none.
func (g *getList) pick(l listing) (items []item, missing error) {
	items = slices.DeleteFunc(slices.Clone(l.items), func(i item) bool {
		return g.namespace != "" && g.kind.namespaced && i.namespace != g.namespace ||
			g.selector != nil && !g.selector.Matches(labels.Set(i.labels)) || g.keep != nil && !g.keep(i)
	})
	if len(g.names) == 0 {
		return items, nil
	}
	var found []item
	var errs []error
	for _, name := range g.names {
		got := slices.DeleteFunc(slices.Clone(items), func(i item) bool { return !g.kind.is(l, i, g.namespace, name) })
		if len(got) == 0 {
			errs = append(errs, g.notFound(name))
		}
		for _, i := range got {
			if !slices.ContainsFunc(found, func(o item) bool { return o.key() == i.key() }) {
				found = append(found, i)
			}
		}
	}
	return found, errors.Join(errs...)
}

// title is its name, with that of the pod that it is part of.
func (i item) title() string {
	if i.of != "" {
		return i.of + "/" + i.name
	}
	return i.name
}

func (i item) key() string { return i.id + "/" + i.namespace + "/" + i.name }

func (k *kind) is(l listing, i item, namespace, name string) bool {
	name = strings.TrimPrefix(name, k.singular+"/")
	if k.means != nil {
		return k.means(l, i, namespace, name)
	}
	return i.name == name || k.namespaced && i.namespace+"/"+i.name == name
}

func (g *getList) notFound(name string) error {
	if g.namespace != "" && g.kind.namespaced {
		return fmt.Errorf("%s %q not found in namespace %s", g.kind.singular, name, g.namespace)
	}
	return fmt.Errorf("%s %q not found", g.kind.singular, name)
}

func (g *getList) show(l listing) error {
	items, missing := g.pick(l)
	if g.sorted != "" {
		if err := sortByPath(items, g.sorted, g.sortBy, func(i item) any { return i.object }); err != nil {
			return err
		}
	}
	if l.state != nil {
		g.caution(*l.state)
	}
	if !g.full() {
		g.print(items)
		if len(g.names) == 0 && len(items) == 0 {
			g.nothing()
		}
		return missing
	}
	if missing != nil && len(items) == 0 {
		return missing
	}
	var v any = listOf(objects(items))
	if len(items) == 1 && (len(g.names) == 1 || g.kind.alone) {
		v = items[0].object
	}
	if err := g.out.object(g.format, v); err != nil {
		return err
	}
	return missing
}

func objects(items []item) (list []any) {
	for _, i := range items {
		list = append(list, i.object)
	}
	return list
}

func (g *getList) nothing() {
	if g.namespace != "" && g.kind.namespaced {
		g.err.printf("No %s found in namespace %s.\n", g.kind.plural, oneLine(g.namespace))
	} else {
		g.err.printf("No %s found.\n", g.kind.plural)
	}
}

// print writes items as rows or names, the head of the table before the first.
func (g *getList) print(items []item) {
	if len(items) == 0 {
		return
	}
	if g.format == asName {
		for _, i := range items {
			g.out.printf("%s/%s\n", g.kind.singular, oneLine(i.title()))
		}
		return
	}
	if g.after && !g.begun {
		g.out.printf("\n")
	}
	var rows [][]cell
	if !g.begun && !g.bare {
		rows = append(rows, g.columns("NAMESPACE", cells(g.kind.head...), cells(g.kind.wide...)))
	}
	g.begun = true
	for _, i := range items {
		rows = append(rows, g.columns(i.namespace, i.row, i.wide))
	}
	g.table.write(g.out, rows...)
}

// columns puts what depends on the flags around the columns of every table.
func (g *getList) columns(namespace string, row, wide []cell) []cell {
	row = slices.Clone(row)
	if g.prefix && len(row) > 0 && row[0].text != g.kind.head[0] {
		row[0].text = g.kind.singular + "/" + row[0].text
	}
	if g.namespace == "" && g.kind.namespaced {
		row = slices.Concat(cells(namespace), row)
	}
	if g.format == asWide {
		row = slices.Concat(row, wide)
	}
	return row
}

// changes prints the items that look different from when they were last printed.
func (g *getList) changes(l listing) (done bool, err error) {
	items, missing := g.pick(l)
	if g.shown == nil {
		if missing != nil && len(items) == 0 {
			return false, missing
		}
		if l.state != nil {
			g.caution(*l.state)
		}
		if len(items) == 0 {
			g.nothing()
		}
	}
	shown := make(map[string]shownItem, len(items))
	var changed []item
	for _, i := range items {
		print, err := g.fingerprint(i)
		if err != nil {
			return false, err
		}
		shown[i.key()] = shownItem{i, print}
		if g.shown[i.key()].print != print {
			changed = append(changed, i)
		}
	}
	for id, old := range g.shown {
		if _, still := shown[id]; !still && g.kind.gone != nil && (g.format == asTable || g.format == asWide) {
			g.table.write(g.out, g.columns(old.item.namespace, g.kind.gone(old.item), old.item.wide))
		}
	}
	g.shown = shown
	if !g.full() {
		g.print(changed)
		return false, g.out.failed
	}
	for _, i := range changed {
		if g.format == asYAML {
			g.out.printf("---\n")
		}
		if err := g.out.object(g.format, i.object); err != nil {
			return false, err
		}
	}
	return false, g.out.failed
}

func (g *getList) fingerprint(i item) (string, error) {
	switch {
	case g.format == asName:
		return i.title(), nil
	case g.full():
		data, err := json.Marshal(i.object)
		if err != nil {
			return "", fmt.Errorf("write json: %w", err)
		}
		return string(bytes.TrimSpace(data)), nil
	case i.look != "":
		return i.look, nil
	default:
		return fmt.Sprint(i.row), nil
	}
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
