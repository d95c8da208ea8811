package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// describeOthers adds what can be described beside pods.
func (c *cli) describeOthers(cmd *cobra.Command, l *location) {
	add := func(k *kind, about string) {
		var namespace string
		sub := &cobra.Command{
			Use: k.singular + " NAME", Aliases: slices.Concat([]string{k.plural}, k.short), Short: about, Args: oneArg(k.singular),
			RunE: func(cmd *cobra.Command, args []string) error {
				i, err := c.theItem(cmd.Context(), *l, k, namespace, args[0])
				if err == nil {
					describeObject(c.out, i.said.(server.Object))
				}
				return err
			},
		}
		namespaceFlags(sub, &namespace)
		sub.ValidArgsFunction = c.completeNames(l, k, &namespace)
		cmd.AddCommand(sub)
	}
	add(configMapsKind(), "Tell all about a ConfigMap, its data too")
	add(secretsKind(), "Tell all about a Secret but its values")
	add(claimsKind(), "Tell all about a claim and its folder")
	cmd.AddCommand(c.describeVolumeCommand(l), c.describeNodeCommand(l))
}

// oneArg is for commands about one thing.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage(cmd.CommandPath(), fmt.Errorf("want the name of one %s, got %d", what, len(args)))
		}
		return nil
	}
}

// theItem asks for the one item that a name means, and for all about it.
func (c *cli) theItem(ctx context.Context, l location, k *kind, namespace, name string) (item, error) {
	g := &getList{cli: c, kind: k, names: []string{name}, namespace: namespace, format: asJSON}
	items, err := g.ask(ctx, l)
	if err != nil {
		return item{}, err
	}
	if len(items) > 1 {
		var keys []string
		for _, i := range items {
			keys = append(keys, i.namespace+"/"+i.name)
		}
		return item{}, &failure{
			code: exitFailed, err: fmt.Errorf("%s %q can mean %s", k.singular, name, strings.Join(keys, " or ")),
			hint: "Give the namespace with -n.",
		}
	}
	return items[0], nil
}

func describeObject(out *stream, o server.Object) {
	d := description{tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	defer d.w.Flush()
	d.line(0, "Name:", o.Name)
	d.line(0, "Namespace:", o.Namespace)
	d.line(0, "Source:", where(o))
	if o.Type != "" {
		d.line(0, "Type:", o.Type)
	}
	if o.Immutable {
		d.line(0, "Immutable:", "True")
	}
	d.line(0, "Used By:", orNone(strings.Join(o.Pods, "\n")))
	if c := o.Claim; c != nil {
		d.line(0, "Status:", string(claimPhase(o)))
		d.line(0, "Capacity:", c.Size)
		d.line(0, "Access Modes:", accessText(c.AccessModes))
		d.line(0, "StorageClass:", orNone(c.StorageClass))
		d.line(0, "Reclaim:", c.Reclaim)
		d.line(0, "Path:", c.Path)
		return
	}
	d.head(0, "Data:")
	for _, key := range slices.Sorted(maps.Keys(o.Sizes)) {
		d.line(1, key+":", plural(o.Sizes[key], "byte"))
		if text, shown := o.Data[key]; shown && text != "" {
			d.text(2, text)
		}
	}
}

func (c *cli) describeVolumeCommand(l *location) *cobra.Command {
	var namespace string
	k := volumesKind()
	cmd := &cobra.Command{
		Use: "volume POD/VOLUME", Aliases: []string{"volumes", "vol"}, Short: "Tell all about a volume of a pod", Args: oneArg("volume"),
		RunE: func(cmd *cobra.Command, args []string) error {
			i, err := c.theItem(cmd.Context(), *l, k, namespace, args[0])
			if err != nil {
				return err
			}
			o := i.object.(volumeObject)
			d := description{tabwriter.NewWriter(c.out, 0, 8, 2, ' ', 0)}
			defer d.w.Flush()
			d.line(0, "Name:", o.Volume.Name)
			d.line(0, "Namespace:", o.Namespace)
			d.line(0, "Pod:", o.Pod)
			kind, source := volumeType(o.Volume)
			d.line(0, "Type:", kind)
			d.line(0, "Source:", orNone(source))
			d.head(0, "Definition:")
			d.text(1, asWritten(&o.Volume.VolumeSource))
			d.head(0, "Mounts:")
			for _, m := range o.Mounts {
				mode := "rw"
				if m.ReadOnly {
					mode = "ro"
				}
				d.line(1, m.Container+":", m.Path+" ("+mode+")")
			}
			return nil
		},
	}
	namespaceFlags(cmd, &namespace)
	cmd.ValidArgsFunction = c.completeNames(l, k, &namespace)
	return cmd
}

func (c *cli) describeNodeCommand(l *location) *cobra.Command {
	return &cobra.Command{
		Use: "node", Aliases: []string{"nodes", "no"}, Short: "Tell all about this machine: conditions, what pods may have of it, what they ask for, versions",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd.CommandPath(), fmt.Errorf("there is one node, got %d names", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			i, err := (&getList{cli: c, kind: nodesKind(), names: args}).ask(cmd.Context(), *l)
			if err != nil {
				return err
			}
			state, err := c.ask(cmd.Context(), *l)
			if err != nil {
				return err
			}
			happened, err := c.events(cmd.Context(), *l)
			if err != nil {
				return err
			}
			c.caution(state)
			events := slices.DeleteFunc(happened, func(e v1.Event) bool { return e.InvolvedObject.Kind != "Node" })
			describeNode(c.out, i[0].object.(*v1.Node), state, events, c.now())
			return nil
		},
	}
}

func describeNode(out *stream, n *v1.Node, s server.State, happened []v1.Event, now time.Time) {
	d := description{tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	defer d.w.Flush()
	d.line(0, "Name:", n.Name)
	d.line(0, "Labels:", mapText(n.Labels, "="))
	d.head(0, "Conditions:")
	d.row("Type", "Status", "LastHeartbeatTime", "LastTransitionTime", "Reason", "Message")
	d.row("----", "------", "-----------------", "------------------", "------", "-------")
	for _, c := range n.Status.Conditions {
		d.row(string(c.Type), string(c.Status), c.LastHeartbeatTime.Format(time.RFC1123Z), c.LastTransitionTime.Format(time.RFC1123Z), c.Reason, c.Message)
	}
	d.head(0, "Addresses:")
	for _, a := range n.Status.Addresses {
		d.line(1, string(a.Type)+":", a.Address)
	}
	describeAmounts(d, "Capacity:", n.Status.Capacity)
	describeAmounts(d, "Allocatable:", n.Status.Allocatable)
	d.head(0, "System Info:")
	info := n.Status.NodeInfo
	for _, line := range [][2]string{
		{"Machine ID", info.MachineID}, {"Boot ID", info.BootID}, {"Kernel Version", info.KernelVersion}, {"OS Image", info.OSImage},
		{"Operating System", info.OperatingSystem}, {"Architecture", info.Architecture},
		{"Container Runtime Version", info.ContainerRuntimeVersion}, {"Podkeeper Version", info.KubeletVersion},
	} {
		d.line(1, line[0]+":", orNone(line[1]))
	}
	d.line(0, "Root Dir:", s.RootDir)
	describeNodePods(d, podsOf(s, ""), now)
	describeEvents(d, happened, now)
}

func describeAmounts(d description, title string, list v1.ResourceList) {
	d.head(0, title)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		d.line(1, string(name)+":", q.String())
	}
}

// describeNodePods lists the pods and what they ask for, as kubectl does.
func describeNodePods(d description, pods []server.Pod, now time.Time) {
	d.line(0, "Pods:", strconv.Itoa(len(pods))+" in total")
	d.row("Namespace", "Name", "Status", "CPU Requests", "Memory Requests", "Age")
	d.row("---------", "----", "------", "------------", "---------------", "---")
	for _, p := range pods {
		cpu, memory := v1.ResourceList{}, v1.ResourceList{}
		add := func(list v1.ResourceList) {
			c, m := cpu[v1.ResourceCPU], memory[v1.ResourceMemory]
			c.Add(*list.Cpu())
			m.Add(*list.Memory())
			cpu[v1.ResourceCPU], memory[v1.ResourceMemory] = c, m
		}
		if r := p.Pod.Spec.Resources; r != nil && len(r.Requests) > 0 {
			add(r.Requests)
		} else {
			for _, c := range p.Pod.Spec.Containers {
				add(c.Resources.Requests)
			}
		}
		d.row(p.Pod.Namespace, p.Pod.Name, podWord(p), cpu.Cpu().String(), memory.Memory().String(), age(p, now))
	}
}

// row writes a line of a table.
func (d description) row(texts ...string) {
	for i := range texts {
		texts[i] = oneLine(texts[i])
	}
	fmt.Fprintf(d.w, "  %s\n", strings.Join(texts, "\t"))
}
