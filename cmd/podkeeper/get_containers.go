package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podkeeper/podkeeper/server"
)

// containerObject is the shape of -o json.
type containerObject struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Name      string `json:"name"`
	// Type is container, init or sidecar.
	Type string `json:"type"`
	// Status has restarts, id and state, as in the status of the pod.
	Status v1.ContainerStatus `json:"status"`
}

func containersKind() *kind {
	return &kind{
		plural: "containers", singular: "container", namespaced: true, labelled: true,
		about: "List the containers of pods, and why they do not run where they do not",
		long: `List the containers of pods, and why they do not run where they do not. A NAME is
that of a container, or POD/CONTAINER.`,
		example: `  podkeeper get containers -o wide
  podkeeper get containers web/app`,
		head: []string{"POD", "NAME", "TYPE", "READY", "STATUS", "RESTARTS", "AGE"}, wide: []string{"IMAGE", "ID"},
		list: listContainers,
		means: func(l listing, i item, namespace, name string) bool {
			o := i.object.(containerObject)
			if owner, rest, ok := strings.Cut(name, "/"); ok {
				return o.Name == rest && (o.Pod == owner || o.Pod == owner+"-"+l.node)
			}
			return o.Name == name
		},
	}
}

func listContainers(c *cli, ctx context.Context, client *server.Client, after uint64, _ bool) (listing, error) {
	s, err := client.State(ctx, after)
	l := listing{revision: s.Revision, state: &s, node: s.NodeName}
	for _, p := range podsOf(s, "") {
		sidecar := sidecars(p.Pod)
		for at, status := range slices.Concat(p.Pod.Status.InitContainerStatuses, p.Pod.Status.ContainerStatuses) {
			o := containerObject{Namespace: p.Pod.Namespace, Pod: p.Pod.Name, Name: status.Name, Type: "container", Status: status}
			switch {
			case sidecar[status.Name]:
				o.Type = "sidecar"
			case at < len(p.Pod.Status.InitContainerStatuses):
				o.Type = "init"
			}
			l.items = append(l.items, c.containerItem(p, o))
		}
	}
	return l, err
}

func (c *cli) containerItem(p server.Pod, o containerObject) item {
	word, since := stateWord(o.Status.State), time.Time{}
	if r := o.Status.State.Running; r != nil {
		word, since = "Running", r.StartedAt.Time
	}
	old := "<none>"
	if !since.IsZero() {
		old = duration.HumanDuration(c.now().Sub(since))
	}
	count := strconv.Itoa(int(o.Status.RestartCount))
	i := item{
		namespace: o.Namespace, name: o.Name, id: string(p.Pod.UID) + "/" + o.Pod, of: o.Pod, labels: p.Pod.Labels, object: o,
		row:  cells(o.Pod, o.Name, o.Type, strconv.FormatBool(o.Status.Ready), orNone(word), count, old),
		wide: cells(orNone(o.Status.Image), orNone(shortID(o.Status.ContainerID))),
		look: fmt.Sprintln(o.Status.Ready, word, count, o.Status.ContainerID),
	}
	i.row[4].tint = wordTint(word)
	return i
}

// shortID is an id as docker shows it.
func shortID(id string) string {
	_, id, _ = strings.Cut(id, ":")
	id = strings.TrimPrefix(id, "//")
	return id[:min(len(id), 12)]
}
