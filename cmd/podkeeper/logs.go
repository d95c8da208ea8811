package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// logsOf is what `logs` was asked for.
type logsOf struct {
	*cli
	location
	namespace, container, selected string
	all, prefix                    bool
	follow, previous, timestamps   bool
	tail, limit                    int64
	since                          time.Duration
	sinceTime                      string
	// several: more than one container may be meant.
	several bool
}

func (c *cli) logsCommand(l *location) *cobra.Command {
	g := &logsOf{cli: c}
	cmd := &cobra.Command{
		Use:   "logs (POD [CONTAINER] | -l SELECTOR) [-c CONTAINER]",
		Short: "Print what containers wrote",
		Long: `Print what containers wrote, as kubectl does. Without -c it is the container that the
pod's annotation kubectl.kubernetes.io/default-container names, or its first one.

With -f one container is followed until it ends. Several, by -l or --all-containers,
are followed over their restarts, and until their pods are over or gone. On a terminal
their lines begin with pod and container, in a colour of each pod's; elsewhere with
--prefix only.`,
		Example: `  podkeeper logs web
  podkeeper logs web -c app --previous --tail 20
  podkeeper logs web -f --since 10m --timestamps
  podkeeper logs -l app=web --all-containers -f`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case g.selected != "" && len(args) > 0:
				return usage(cmd.CommandPath(), errors.New("give a POD or a selector (-l), not both"))
			case g.selected == "" && (len(args) == 0 || len(args) > 2):
				return usage(cmd.CommandPath(), fmt.Errorf("want the name of one pod, and perhaps of a container, or a selector (-l), got %s", plural(len(args), "name")))
			case len(args) == 2 && g.container != "":
				return usage(cmd.CommandPath(), errors.New("give the CONTAINER once"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			g.location = *l
			if len(args) == 2 {
				g.container = args[1]
			}
			return g.run(cmd, args)
		},
	}
	namespaceFlags(cmd, &g.namespace)
	f := cmd.Flags()
	f.StringVarP(&g.container, "container", "c", "", "the `CONTAINER`")
	f.BoolVar(&g.all, "all-containers", false, "all containers of the pod, those that initialise it too")
	f.StringVarP(&g.selected, "selector", "l", "", "pods whose labels match, such as app=web,tier!=db")
	f.BoolVar(&g.prefix, "prefix", false, "begin each line with pod and container (on a terminal the default for several)")
	f.BoolVarP(&g.follow, "follow", "f", false, "go on with what is written from now on")
	f.BoolVarP(&g.previous, "previous", "p", false, "the attempt before the one that runs")
	f.BoolVar(&g.timestamps, "timestamps", false, "begin each line with when it was written")
	f.Int64Var(&g.tail, "tail", -1, "only so many lines of the end; -1 is all (with a selector 10 is the default)")
	f.DurationVar(&g.since, "since", 0, "only what is newer than that, such as 5s, 2m or 3h")
	f.StringVar(&g.sinceTime, "since-time", "", "only what was written after that `TIME`, as in 2006-01-02T15:04:05Z")
	f.Int64Var(&g.limit, "limit-bytes", 0, "at most so many bytes of each container; 0 is all")
	c.completeContainers(cmd, l, &g.namespace)
	cmd.ValidArgsFunction = c.completePods(l, &g.namespace, false)
	return cmd
}

// query is what the agent is asked for.
func (g *logsOf) query(cmd *cobra.Command) (url.Values, error) {
	q := url.Values{}
	for name, given := range map[string]bool{"follow": g.follow, "previous": g.previous, "timestamps": g.timestamps} {
		if given {
			q.Set(name, "true")
		}
	}
	if g.selected != "" && !cmd.Flags().Changed("tail") {
		g.tail = 10
	}
	if g.tail >= 0 {
		q.Set("tailLines", strconv.FormatInt(g.tail, 10))
	}
	if g.limit > 0 {
		q.Set("limitBytes", strconv.FormatInt(g.limit, 10))
	}
	if g.since > 0 {
		q.Set("sinceSeconds", strconv.FormatInt(int64((g.since+time.Second-1)/time.Second), 10))
	}
	if g.sinceTime != "" {
		q.Set("sinceTime", g.sinceTime)
	}
	_, wrong := time.Parse(time.RFC3339, g.sinceTime)
	switch {
	case g.tail < -1:
		return nil, fmt.Errorf("--tail %d: want a number of lines, or -1 for all", g.tail)
	case g.limit < 0:
		return nil, fmt.Errorf("--limit-bytes %d: want a number of bytes, or 0 for all", g.limit)
	case g.since < 0:
		return nil, fmt.Errorf("--since %s: want how long ago", g.since)
	case g.since > 0 && g.sinceTime != "":
		return nil, errors.New("--since and --since-time cannot both be given")
	case g.sinceTime != "" && wrong != nil:
		return nil, fmt.Errorf("--since-time %q: want a time as in 2006-01-02T15:04:05Z", g.sinceTime)
	case g.all && g.container != "":
		return nil, errors.New("--container and --all-containers cannot both be given")
	}
	return q, nil
}

func (g *logsOf) run(cmd *cobra.Command, args []string) error {
	q, err := g.query(cmd)
	if err != nil {
		return usage(cmd.CommandPath(), err)
	}
	selector, err := labels.Parse(g.selected)
	if err != nil {
		return usage(cmd.CommandPath(), fmt.Errorf("--selector %q: %w", g.selected, err))
	}
	ctx := cmd.Context()
	var pods []server.Pod
	if g.selected == "" {
		_, p, err := g.theOne(ctx, g.location, g.namespace, args[0])
		if err != nil {
			return err
		}
		pods = []server.Pod{p}
	} else {
		s, err := g.ask(ctx, g.location)
		if err != nil {
			return err
		}
		g.caution(s)
		pods = slices.DeleteFunc(podsOf(s, g.namespace), func(p server.Pod) bool { return !selector.Matches(labels.Set(p.Pod.Labels)) })
	}
	if len(pods) == 0 {
		g.err.printf("No pods found.\n")
		return nil
	}
	list, err := g.containers(pods)
	if err != nil {
		return err
	}
	g.several = g.selected != "" || g.all
	if !cmd.Flags().Changed("prefix") {
		g.prefix = g.out.terminal && len(list) > 1
	}
	return g.print(ctx, list, q)
}

// logged is one container.
type logged struct {
	pod       pod.Key
	container string
	prefix    string
}

// containers are those that are meant.
func (g *logsOf) containers(pods []server.Pod) (list []logged, err error) {
	for i, p := range pods {
		names := containerNames(p)
		switch {
		case g.all:
		case g.container != "" && !slices.Contains(names, g.container):
			if g.selected != "" {
				continue // of another kind
			}
			return nil, fmt.Errorf("container %q not found in pod %s, which has %s", g.container, p.Pod.Name, strings.Join(names, ", "))
		case g.container != "":
			names = []string{g.container}
		default:
			names = g.defaultContainer(p.Pod, names)
		}
		for _, name := range names {
			prefix := "[pod/" + oneLine(p.Pod.Name) + "/" + oneLine(name) + "] "
			list = append(list, logged{keyOf(p), name, g.out.paint(podTints[i%len(podTints)], prefix)})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("container %q not found in any of %s", g.container, plural(len(pods), "pod"))
	}
	return list, nil
}

// podTints tell pods apart.
var podTints = []tint{"36", "33", "32", "35", "34", "96", "93", "92", "95", "94"}

func (g *logsOf) defaultContainer(p *v1.Pod, names []string) []string {
	name := p.Annotations["kubectl.kubernetes.io/default-container"]
	if slices.Contains(names, name) || len(p.Spec.Containers) == 0 {
		return []string{name}
	}
	name = p.Spec.Containers[0].Name
	if len(names) > 1 && g.selected == "" {
		g.err.printf("Defaulted container %q out of: %s\n", oneLine(name), oneLine(strings.Join(names, ", ")))
	}
	return []string{name}
}
