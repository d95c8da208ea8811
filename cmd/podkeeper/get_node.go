package main

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

func nodesKind() *kind {
	return &kind{
		plural: "nodes", singular: "node", short: []string{"no"}, alone: true, labelled: true,
		about: "Show this machine: its conditions, versions, and what pods may have of it",
		long: `Show this machine. STATUS names what it is short of. -o json and -o yaml print v1.Node
with conditions, capacity, allocatable and versions.`,
		head: []string{"NAME", "STATUS", "ROLES", "VERSION"}, wide: []string{"INTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME", "CPU", "MEMORY", "PODS"},
		list: listNodes,
	}
}

func listNodes(_ *cli, ctx context.Context, client *server.Client, after uint64, _ bool) (listing, error) {
	revision, err := awaitState(ctx, client, after)
	if err != nil {
		return listing{}, err
	}
	n, err := client.Node(ctx)
	if err != nil {
		return listing{}, err
	}
	info, free := n.Status.NodeInfo, n.Status.Allocatable
	word := nodeWord(n)
	i := item{
		name: n.Name, labels: n.Labels, object: n,
		row: cells(n.Name, word, "<none>", orNone(info.KubeletVersion)),
		wide: cells(orNone(internalIP(n)), orNone(info.OSImage), orNone(info.KernelVersion), orNone(info.ContainerRuntimeVersion),
			free.Cpu().String(), free.Memory().String(), free.Pods().String()),
	}
	i.row[1].tint = good
	if word != "Ready" {
		i.row[1].tint = bad
	}
	return listing{revision: revision, items: []item{i}}, nil
}

// nodeWord is kubectl's, and what the node is short of.
func nodeWord(n *v1.Node) string {
	words := []string{"Unknown"}
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type == v1.NodeReady && c.Status == v1.ConditionTrue:
			words[0] = "Ready"
		case c.Type == v1.NodeReady:
			words[0] = "NotReady"
		case c.Status == v1.ConditionTrue:
			words = append(words, string(c.Type))
		}
	}
	return strings.Join(words, ",")
}

func internalIP(n *v1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == v1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}
