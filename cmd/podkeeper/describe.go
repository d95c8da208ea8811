package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

func (c *cli) describeCommand(l *location) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Tell all about a pod, the node, a ConfigMap, a Secret, a claim or a volume",
		Long: `Tell all about a pod, the node, a ConfigMap, a Secret, a claim or a volume. Things of
several kinds can be named as KIND/NAME.`,
		Example: `  podkeeper describe pod web
  podkeeper describe pod/web configmap/web -n shop`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return c.describeAll(cmd, namespace, args)
		},
	}
	namespaceFlags(cmd, &namespace)
	sub := &cobra.Command{
		Use:     "pod NAME...",
		Aliases: []string{"pods", "po"},
		Short:   "Tell all about a pod: what it is, why it waits, what is to be done about it",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return oneName(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			state, err := c.ask(cmd.Context(), *l)
			if err != nil {
				return err
			}
			happened, err := c.events(cmd.Context(), *l)
			if err != nil {
				return err
			}
			c.caution(state)
			for at, name := range args {
				p, ok, err := onePod(state, namespace, name)
				if err != nil {
					return err
				}
				if !ok {
					return noPod(namespace, name)
				}
				if at > 0 {
					c.out.printf("\n\n")
				}
				describePod(c.out, state, p, eventsOf(happened, p), c.now())
			}
			return nil
		},
	}
	namespaceFlags(sub, &namespace)
	sub.ValidArgsFunction = c.completePods(l, &namespace, true)
	cmd.AddCommand(sub)
	c.describeOthers(cmd, l)
	return cmd
}

// describeAll describes things named as KIND/NAME, each by the command of its kind.
func (c *cli) describeAll(cmd *cobra.Command, namespace string, things []string) error {
	var kinds []*cobra.Command
	var names []string
	for _, thing := range things {
		kind, name, ok := strings.Cut(thing, "/")
		at := slices.IndexFunc(cmd.Commands(), func(k *cobra.Command) bool { return k.Name() == kind || k.HasAlias(kind) })
		switch {
		case !ok && len(kinds) == 0:
			return noSuchCommand(cmd, things)
		case !ok || name == "":
			return usage(cmd.CommandPath(), fmt.Errorf("%q: want KIND/NAME, as the others", thing))
		case at < 0:
			return noSuchCommand(cmd, []string{kind})
		}
		kinds, names = append(kinds, cmd.Commands()[at]), append(names, name)
	}
	for i, kind := range kinds {
		if f := kind.Flags().Lookup("namespace"); f != nil {
			if err := f.Value.Set(namespace); err != nil {
				return err
			}
		}
		if i > 0 {
			c.out.printf("\n\n")
		}
		kind.SetContext(cmd.Context())
		if err := kind.RunE(kind, names[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// description writes "Key:  value" lines with the values of neighbours in one
// column, as kubectl does.
type description struct{ w *tabwriter.Writer }

// line writes one line. Lines of a value after the first get lines of their own.
func (d description) line(depth int, key, value string) {
	indent := strings.Repeat("  ", depth)
	for i, text := range strings.Split(strings.TrimRight(value, "\n"), "\n") {
		if i > 0 {
			key = ""
		}
		fmt.Fprintf(d.w, "%s%s\t%s\n", indent, oneLine(key), oneLine(text))
	}
}

// head writes a key that has lines below it.
func (d description) head(depth int, key string) {
	fmt.Fprintf(d.w, "%s%s\n", strings.Repeat("  ", depth), oneLine(key))
}

// text writes a value on lines of its own.
func (d description) text(depth int, value string) {
	for text := range strings.SplitSeq(strings.TrimRight(value, "\n"), "\n") {
		fmt.Fprintf(d.w, "%s%s\n", strings.Repeat("  ", depth), oneLine(text))
	}
}

func describePod(out *stream, s server.State, p server.Pod, happened []v1.Event, now time.Time) {
	d := description{tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	defer d.w.Flush()
	o, status := p.Pod, &p.Pod.Status
	d.line(0, "Name:", o.Name)
	d.line(0, "Namespace:", o.Namespace)
	d.line(0, "UID:", orNone(string(o.UID)))
	d.line(0, "Node:", nodeText(s, status))
	d.line(0, "Source:", sourceOf(p))
	d.line(0, "Start Time:", when(status.StartTime))
	d.line(0, "Labels:", mapText(o.Labels, "="))
	d.line(0, "Annotations:", mapText(o.Annotations, ": "))
	d.line(0, "Status:", podWord(p))
	describeWhy(d, p)
	d.line(0, "IP:", status.PodIP)
	if len(status.PodIPs) > 1 {
		var ips []string
		for _, ip := range status.PodIPs {
			ips = append(ips, ip.IP)
		}
		d.line(0, "IPs:", strings.Join(ips, ", "))
	}
	describeContainers(d, "Init Containers:", o.Spec.InitContainers, status.InitContainerStatuses, p)
	describeContainers(d, "Containers:", o.Spec.Containers, status.ContainerStatuses, p)
	describeConditions(d, status.Conditions)
	describeVolumes(d, o.Spec.Volumes)
	d.line(0, "Priority:", strconv.Itoa(int(pod.Priority(o))))
	if len(o.Spec.NodeSelector) > 0 {
		d.line(0, "Node-Selectors:", mapText(o.Spec.NodeSelector, "="))
	}
	d.line(0, "QoS Class:", orNone(string(status.QOSClass)))
	d.line(0, "Restart Policy:", orNone(string(o.Spec.RestartPolicy)))
	if g := o.Spec.TerminationGracePeriodSeconds; g != nil {
		d.line(0, "Grace Period:", (time.Duration(*g) * time.Second).String())
	}
	describeFindings(d, s, p)
	describeSteps(d, p)
	describeEvents(d, happened, now)
}

func nodeText(s server.State, status *v1.PodStatus) string {
	if status.HostIP == "" {
		return s.NodeName
	}
	return s.NodeName + "/" + status.HostIP
}

func sourceOf(p server.Pod) string {
	if p.Origin == (pod.Origin{}) {
		return "<none>"
	}
	text := p.Origin.Name
	if p.Line > 0 {
		text = fmt.Sprintf("%s:%d", text, p.Line)
	}
	return text
}

// describeWhy says why the pod is not what its manifest asks for.
func describeWhy(d description, p server.Pod) {
	if p.Blocked != nil {
		d.line(0, "Reason:", p.Blocked.Reason)
		if p.Blocked.Message != "" {
			d.line(0, "Message:", p.Blocked.Message)
		}
	}
	if !p.Held.IsZero() {
		d.line(0, "Held:", "by hand since "+p.Held.Local().Format(time.RFC1123Z)+", until `podkeeper start`")
	}
	if p.Removing {
		d.line(0, "Removed:", "nothing supplies it any more")
	}
	if p.Kept != "" {
		d.line(0, "Kept:", "left as it is, since "+p.Kept)
	}
	for _, note := range p.Notes {
		d.line(0, "Note:", note)
	}
	if len(p.Drift) > 0 {
		d.line(0, "Drift:", "made with other settings of the agent than now: "+strings.Join(p.Drift, ", "))
	}
}

func describeConditions(d description, conditions []v1.PodCondition) {
	if len(conditions) == 0 {
		return
	}
	d.head(0, "Conditions:")
	d.line(1, "Type", "Status")
	for _, c := range conditions {
		text := string(c.Status)
		if c.Reason != "" {
			text += " (" + c.Reason + ")"
		}
		d.line(1, string(c.Type), text)
	}
}

// describeFindings tells what is wrong with what the pod comes from.
func describeFindings(d description, s server.State, p server.Pod) {
	var lines []string
	for _, src := range s.Sources {
		for _, o := range src.Origins {
			for _, problem := range o.Problems {
				if o.Origin == p.Origin && problem.Severity != pod.Note {
					lines = append(lines, problem.String())
				}
			}
		}
	}
	for _, c := range s.Conflicts {
		if c.Key == keyOf(p) {
			lines = append(lines, conflictText(c))
		}
	}
	if len(lines) == 0 {
		return
	}
	d.head(0, "Findings:")
	for _, line := range lines {
		d.text(1, oneLine(line))
	}
}

func describeSteps(d description, p server.Pod) {
	switch {
	case len(p.Steps) > 0:
		d.head(0, "Next Steps:")
		for _, s := range p.Steps {
			d.text(1, oneLine(s.Text))
		}
	case p.Busy:
		d.line(0, "Next Steps:", "under way")
	default:
		d.line(0, "Next Steps:", "<none>")
	}
}

// mapText has an entry a line, sorted.
func mapText(m map[string]string, between string) string {
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, k+between+oneLine(m[k]))
	}
	return orNone(strings.Join(lines, "\n"))
}

func when(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return "<none>"
	}
	return t.Local().Format(time.RFC1123Z)
}
