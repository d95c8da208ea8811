package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	summary "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) topCommand(l *location) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what pods and the node use of processors and memory",
		Args:  noSuchCommand,
		RunE:  showHelp,
	}
	cmd.AddCommand(c.topPodsCommand(l), c.topNodeCommand(l))
	return cmd
}

func (c *cli) topPodsCommand(l *location) *cobra.Command {
	t := &topPods{cli: c}
	cmd := &cobra.Command{
		Use:     "pods [NAME...]",
		Aliases: []string{"pod", "po"},
		Short:   "Show what pods use now, in kubectl's columns",
		Long: `Show what pods use now of processors (1000m is one) and of memory, in kubectl's
columns. Memory is the working set: what could not be given up without pain. Pods of
which nothing runs are left out.

A NAME may have the node's suffix or not. -o json and -o yaml print a List of
PodMetrics of metrics.k8s.io/v1beta1.`,
		Example: `  podkeeper top pods --sort-by memory
  podkeeper top pods web --containers`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, names []string) error {
			var err error
			if t.selector, err = labels.Parse(t.selected); err != nil {
				return usage(cmd.CommandPath(), fmt.Errorf("--selector %q: %w", t.selected, err))
			}
			if !slices.Contains([]string{"", "cpu", "memory"}, t.sorted) {
				return usage(cmd.CommandPath(), fmt.Errorf("--sort-by %q: want cpu or memory", t.sorted))
			}
			t.names = names
			return t.run(cmd.Context(), *l)
		},
	}
	outputFlag(cmd, &t.format, asTable, asJSON, asYAML)
	namespaceFlags(cmd, &t.namespace)
	cmd.Flags().StringVarP(&t.selected, "selector", "l", "", "only pods whose labels match, such as app=web,tier!=db")
	cmd.Flags().BoolVar(&t.containers, "containers", false, "a line for each container")
	cmd.Flags().StringVar(&t.sorted, "sort-by", "", "cpu or memory: who uses most comes first (default: by name)")
	cmd.Flags().BoolVar(&t.bare, "no-headers", false, "leave the first line of the table out")
	completeWith(cmd, "sort-by", "cpu", "memory")
	cmd.ValidArgsFunction = c.completePods(l, &t.namespace, true)
	return cmd
}

// topPods is one call of the command.
type topPods struct {
	*cli
	names            []string
	namespace        string
	selected, sorted string
	selector         labels.Selector
	format           format
	containers, bare bool
}

// uses asks the agent for what is used of processors and memory.
func (c *cli) uses(ctx context.Context, l location) (s summary.Summary, err error) {
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	body, err := server.NewClient(l.socket).Get(bounded, "/stats/summary", url.Values{"only_cpu_and_memory": {"true"}})
	if err != nil {
		return s, askError(l, err)
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&s); err != nil {
		return s, fmt.Errorf("agent's answer: %w", err)
	}
	return s, nil
}

func (t *topPods) run(ctx context.Context, l location) error {
	state, err := t.ask(ctx, l)
	if err != nil {
		return err
	}
	use, err := t.uses(ctx, l)
	if err != nil {
		return err
	}
	t.caution(state)
	pods, missing := t.pick(state, use)
	t.sort(pods)
	if t.format != asTable {
		if missing != nil && len(pods) == 0 {
			return missing
		}
		return errors.Join(t.out.object(t.format, listOf(podMetrics(pods))), missing)
	}
	if len(pods) == 0 && missing == nil {
		t.err.printf("No pods run%s.\n", inNamespace(t.namespace))
	}
	if len(pods) > 0 {
		t.print(pods)
	}
	return missing
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + oneLine(namespace)
}

// pick returns what the pods that are meant use, and an error for each name that means
// none that runs.
func (t *topPods) pick(state server.State, use summary.Summary) (pods []summary.PodStats, missing error) {
	byUID := make(map[string]summary.PodStats)
	for _, p := range use.Pods {
		byUID[p.PodRef.UID] = p
	}
	var errs []error
	meant := podsOf(state, t.namespace)
	if len(t.names) > 0 {
		meant = nil
		for _, name := range t.names {
			found := named(state, t.namespace, name)
			if len(found) == 0 {
				errs = append(errs, noPod(t.namespace, name))
			}
			meant = append(meant, found...)
		}
	}
	for _, p := range meant {
		stats, runs := byUID[string(p.Pod.UID)]
		switch {
		case runs && t.selector.Matches(labels.Set(p.Pod.Labels)):
			pods = append(pods, stats)
			delete(byUID, string(p.Pod.UID)) // it may be named twice
		case !runs && len(t.names) > 0 && !slices.ContainsFunc(pods, func(q summary.PodStats) bool { return q.PodRef.UID == string(p.Pod.UID) }):
			errs = append(errs, fmt.Errorf("nothing of pod %q runs", p.Pod.Name))
		}
	}
	return pods, errors.Join(errs...)
}

// sort puts who uses most first; without a wish pods are in the order of names.
func (t *topPods) sort(pods []summary.PodStats) {
	amount := func(c *summary.CPUStats, m *summary.MemoryStats) uint64 {
		n := cores(c)
		if t.sorted == "memory" {
			n = workingSet(m)
		}
		if n == nil {
			return 0
		}
		return *n
	}
	if t.sorted == "" {
		return
	}
	slices.SortStableFunc(pods, func(a, b summary.PodStats) int { return cmp.Compare(amount(b.CPU, b.Memory), amount(a.CPU, a.Memory)) })
	for _, p := range pods {
		slices.SortStableFunc(p.Containers, func(a, b summary.ContainerStats) int {
			return cmp.Compare(amount(b.CPU, b.Memory), amount(a.CPU, a.Memory))
		})
	}
}

func (t *topPods) print(pods []summary.PodStats) {
	var rows [][]cell
	add := func(namespace string, row ...string) {
		if t.namespace == "" {
			row = slices.Concat([]string{namespace}, row)
		}
		rows = append(rows, cells(row...))
	}
	switch {
	case t.bare:
	case t.containers:
		add("NAMESPACE", "POD", "NAME", "CPU(cores)", "MEMORY(bytes)")
	default:
		add("NAMESPACE", "NAME", "CPU(cores)", "MEMORY(bytes)")
	}
	for _, p := range pods {
		if !t.containers {
			add(p.PodRef.Namespace, p.PodRef.Name, millicores(cores(p.CPU)), mebibytes(workingSet(p.Memory)))
			continue
		}
		for _, c := range p.Containers {
			add(p.PodRef.Namespace, p.PodRef.Name, c.Name, millicores(cores(c.CPU)), mebibytes(workingSet(c.Memory)))
		}
	}
	new(table).write(t.out, rows...)
}

func cores(c *summary.CPUStats) *uint64 {
	if c == nil {
		return nil
	}
	return c.UsageNanoCores
}

func workingSet(m *summary.MemoryStats) *uint64 {
	if m == nil {
		return nil
	}
	return m.WorkingSetBytes
}

// unknown is what kubectl shows of what nobody knows.
const unknown = "<unknown>"

// millicores rounds up: who uses something does not use nothing.
func millicores(nano *uint64) string {
	if nano == nil {
		return unknown
	}
	return fmt.Sprintf("%dm", (*nano+999_999)/1_000_000)
}

func mebibytes(bytes *uint64) string {
	if bytes == nil {
		return unknown
	}
	return fmt.Sprintf("%dMi", *bytes>>20)
}

func (c *cli) topNodeCommand(l *location) *cobra.Command {
	var f format
	var bare bool
	cmd := &cobra.Command{
		Use:     "node [NAME]",
		Aliases: []string{"nodes", "no"},
		Short:   "Show what the machine uses now, in kubectl's columns",
		Long: `Show what the machine uses now of processors (1000m is one) and of memory, and how
much of what pods may have that is. -o json and -o yaml print a NodeMetrics of
metrics.k8s.io/v1beta1.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			s, err := c.uses(cmd.Context(), *l)
			if err != nil {
				return err
			}
			if len(names) > 0 && strings.TrimPrefix(names[0], "node/") != s.Node.NodeName {
				return fmt.Errorf("node %q not found: this is %s", names[0], s.Node.NodeName)
			}
			if f != asTable {
				return c.out.object(f, nodeMetrics(s.Node))
			}
			bounded, cancel := context.WithTimeout(cmd.Context(), answerWithin)
			defer cancel()
			node, err := server.NewClient(l.socket).Node(bounded)
			if err != nil {
				return askError(*l, err)
			}
			rows := [][]cell{nodeRow(s.Node, node.Status.Allocatable)}
			if !bare {
				rows = slices.Insert(rows, 0, cells("NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"))
			}
			new(table).write(c.out, rows...)
			return nil
		},
	}
	outputFlag(cmd, &f, asTable, asJSON, asYAML)
	cmd.Flags().BoolVar(&bare, "no-headers", false, "leave the first line of the table out")
	return cmd
}

// nodeRow has percentages of what pods may have, as kubectl does.
func nodeRow(n summary.NodeStats, allocatable v1.ResourceList) []cell {
	cpu, memory := cores(n.CPU), workingSet(n.Memory)
	cpuPart, memoryPart := unknown, unknown
	if all := allocatable.Cpu().MilliValue(); cpu != nil && all > 0 {
		cpuPart = percent(float64(*cpu), 1e6*float64(all))
	}
	if all := allocatable.Memory().Value(); memory != nil && all > 0 {
		memoryPart = percent(float64(*memory), float64(all))
	}
	return cells(n.NodeName, millicores(cpu), cpuPart, mebibytes(memory), memoryPart)
}

func percent(part, whole float64) string { return fmt.Sprintf("%d%%", int64(100*part/whole)) }

// metricsObject is a PodMetrics or a NodeMetrics of metrics.k8s.io/v1beta1.
type metricsObject struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Metadata   metricsMeta        `json:"metadata"`
	Timestamp  metav1.Time        `json:"timestamp"`
	Usage      map[string]string  `json:"usage,omitempty"`
	Containers []containerMetrics `json:"containers,omitempty"`
}

type metricsMeta struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

type containerMetrics struct {
	Name  string            `json:"name"`
	Usage map[string]string `json:"usage"`
}

const metricsVersion = "metrics.k8s.io/v1beta1"

func podMetrics(pods []summary.PodStats) (list []metricsObject) {
	for _, p := range pods {
		o := metricsObject{
			APIVersion: metricsVersion, Kind: "PodMetrics",
			Metadata: metricsMeta{Name: p.PodRef.Name, Namespace: p.PodRef.Namespace}, Timestamp: readAt(p.CPU, p.Memory),
		}
		for _, c := range p.Containers {
			o.Containers = append(o.Containers, containerMetrics{c.Name, quantities(c.CPU, c.Memory)})
		}
		list = append(list, o)
	}
	return list
}

func nodeMetrics(n summary.NodeStats) metricsObject {
	return metricsObject{
		APIVersion: metricsVersion, Kind: "NodeMetrics",
		Metadata: metricsMeta{Name: n.NodeName}, Timestamp: readAt(n.CPU, n.Memory), Usage: quantities(n.CPU, n.Memory),
	}
}

func readAt(c *summary.CPUStats, m *summary.MemoryStats) metav1.Time {
	switch {
	case c != nil:
		return c.Time
	case m != nil:
		return m.Time
	default:
		return metav1.Time{}
	}
}

// quantities has what is known.
func quantities(c *summary.CPUStats, m *summary.MemoryStats) map[string]string {
	q := make(map[string]string)
	if n := cores(c); n != nil {
		q["cpu"] = fmt.Sprintf("%dn", *n)
	}
	if n := workingSet(m); n != nil {
		q["memory"] = fmt.Sprintf("%dKi", *n>>10)
	}
	return q
}
