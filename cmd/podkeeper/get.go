package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// kinds are those that can be listed, in the order of help.
func kinds() []*kind {
	return []*kind{podsKind(), containersKind(), imagesKind(), configMapsKind(), secretsKind(), claimsKind(), volumesKind(), eventsKind(), nodesKind()}
}

func (c *cli) getCommand(l *location) *cobra.Command {
	g := &getList{cli: c}
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List pods, containers, images, events, sources and what else there is",
		Long: `List what there is. Several kinds are listed after each other, and things of
several kinds can be named as KIND/NAME.`,
		Example: `  podkeeper get pods -o wide
  podkeeper get po,cm -n shop
  podkeeper get pod/web configmap/web`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return g.several(cmd, *l, args)
		},
	}
	g.flags(cmd)
	for _, k := range kinds() {
		cmd.AddCommand(c.getKindCommand(l, k))
	}
	cmd.AddCommand(c.getSourcesCommand(l))
	return cmd
}

// several lists more than one kind.
func (g *getList) several(cmd *cobra.Command, l location, args []string) error {
	wanted, err := parseKinds(cmd, args)
	if err != nil {
		return err
	}
	if g.watch && len(wanted) > 1 {
		return usage(cmd.CommandPath(), errors.New("--watch follows one kind at a time"))
	}
	if g.full() && len(wanted) > 1 {
		return g.together(cmd, l, wanted)
	}
	var errs []error
	before := false
	for _, w := range wanted {
		one := *g
		one.kind, one.names, one.prefix = w.kind, w.names, len(wanted) > 1
		one.after = before && g.format != asName
		if err := one.run(cmd, l); err != nil {
			errs = append(errs, err)
		}
		before = before || one.begun
	}
	return errors.Join(errs...)
}

// together is one List of several kinds.
func (g *getList) together(cmd *cobra.Command, l location, wanted []wantedKind) error {
	if err := g.prepare(cmd); err != nil {
		return err
	}
	var all []any
	var errs []error
	for _, w := range wanted {
		one := *g
		one.kind, one.names = w.kind, w.names
		items, err := one.ask(cmd.Context(), l)
		errs = append(errs, err)
		all = append(all, objects(items)...)
	}
	if err := g.out.object(g.format, listOf(all)); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// wantedKind is a kind, and which of it; no names are all.
type wantedKind struct {
	kind  *kind
	names []string
}

// parseKinds reads KIND[,KIND...] [NAME...] or KIND/NAME...
func parseKinds(cmd *cobra.Command, args []string) ([]wantedKind, error) {
	var wanted []wantedKind
	if !strings.Contains(args[0], "/") {
		for name := range strings.SplitSeq(args[0], ",") {
			k, err := kindNamed(cmd, name)
			if err != nil {
				return nil, err
			}
			wanted = append(wanted, wantedKind{k, args[1:]})
		}
		return wanted, nil
	}
	for _, arg := range args {
		kindName, name, ok := strings.Cut(arg, "/")
		if !ok || name == "" {
			return nil, usage(cmd.CommandPath(), fmt.Errorf("%q: want KIND/NAME, as the others", arg))
		}
		k, err := kindNamed(cmd, kindName)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(wanted, func(w wantedKind) bool { return w.kind.plural == k.plural })
		if at < 0 {
			wanted = append(wanted, wantedKind{kind: k})
			at = len(wanted) - 1
		}
		wanted[at].names = append(wanted[at].names, name)
	}
	return wanted, nil
}

func kindNamed(cmd *cobra.Command, name string) (*kind, error) {
	for _, k := range kinds() {
		if slices.Contains(k.names(), name) {
			return k, nil
		}
	}
	if name == "sources" || name == "source" {
		return nil, usage(cmd.CommandPath(), errors.New("sources are listed alone: podkeeper get sources"))
	}
	return nil, noSuchCommand(cmd, []string{name})
}

// namespaceFlags adds -n and -A. Unlike a cluster's, a machine's pods are few:
// without either, all are meant.
func namespaceFlags(cmd *cobra.Command, namespace *string) {
	cmd.Flags().StringVarP(namespace, "namespace", "n", "", "only pods of this `NAMESPACE`")
	all := cmd.Flags().BoolP("all-namespaces", "A", false, "pods of all namespaces (the default)")
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *all && *namespace != "" {
			return usage(cmd.CommandPath(), errors.New("--namespace and --all-namespaces cannot both be given"))
		}
		return check(cmd, args)
	}
}
