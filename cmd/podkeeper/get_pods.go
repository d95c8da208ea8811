package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

func podsKind() *kind {
	return &kind{
		plural: "pods", singular: "pod", short: []string{"po"}, namespaced: true, labelled: true,
		about: "List pods, and why they do not run where they do not",
		long: `List pods, and why they do not run where they do not, in kubectl's columns.

A NAME may have the node's suffix or not. -o json and -o yaml print v1.Pod with
its status: one object for one NAME, else a List.`,
		example: `  podkeeper get pods -o wide
  podkeeper get pods web -o yaml
  podkeeper get pods -l app=web --sort-by .status.startTime
  podkeeper get pods -w`,
		head: []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"}, wide: []string{"IP", "NODE", "SOURCE"},
		list: listPods,
		means: func(l listing, i item, namespace, name string) bool {
			return len(named(server.State{NodeName: l.node, Pods: []server.Pod{{Pod: i.object.(*v1.Pod)}}}, namespace, name)) > 0
		},
		gone: func(i item) []cell {
			row := append([]cell{}, i.row...)
			row[2] = cell{"Deleted", wordTint("Deleted")}
			return row
		},
	}
}

func listPods(c *cli, ctx context.Context, client *server.Client, after uint64, _ bool) (listing, error) {
	s, err := client.State(ctx, after)
	l := listing{revision: s.Revision, state: &s, node: s.NodeName}
	for _, p := range podsOf(s, "") {
		l.items = append(l.items, c.podItem(s, p))
	}
	return l, err
}

func (c *cli) podItem(s server.State, p server.Pod) item {
	now, word := c.now(), podWord(p)
	node := p.Pod.Spec.NodeName
	if node == "" {
		node = s.NodeName
	}
	count := int32(0)
	for _, status := range p.Pod.Status.ContainerStatuses {
		count += status.RestartCount
	}
	i := item{
		namespace: p.Pod.Namespace, name: p.Pod.Name, id: string(p.Pod.UID), labels: p.Pod.Labels,
		row:    cells(p.Pod.Name, readiness(p.Pod), word, restarts(p.Pod, now), age(p, now)),
		wide:   cells(orNone(p.Pod.Status.PodIP), orNone(node), orNone(p.Origin.Name)),
		look:   fmt.Sprintln(readiness(p.Pod), word, count, p.Pod.Status.PodIP, p.Origin.Name),
		object: typed(p.Pod),
	}
	i.row[2].tint = wordTint(word)
	return i
}

// typed returns a pod that says what it is, as programs want it.
func typed(p *v1.Pod) *v1.Pod {
	typed := *p
	typed.APIVersion, typed.Kind = "v1", "Pod"
	return &typed
}
