package main

import (
	"context"
	"slices"
	"strings"

	"github.com/docker/go-units"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podkeeper/podkeeper/server"
)

func imagesKind() *kind {
	return &kind{
		plural: "images", singular: "image",
		about: "List the images of the engine, and the pods that use them",
		long: `List the images of the engine, whoever's, and the pods that name them. USE says why
an image stays: a pod wants it, some container has it, or it is not the agent's.`,
		example: "  podkeeper get images -o wide",
		head:    []string{"NAME", "ID", "SIZE", "USE", "PODS"}, wide: []string{"BUILT", "LAST USED", "DIGEST"},
		list: listImages,
		means: func(_ listing, i item, _, name string) bool {
			o := i.object.(server.Image)
			return slices.Contains(o.Names, name) || slices.Contains(o.Names, name+":latest") || slices.Contains(o.Digests, name) ||
				len(name) >= 6 && strings.HasPrefix(strings.TrimPrefix(o.ID, "sha256:"), strings.TrimPrefix(name, "sha256:"))
		},
	}
}

func listImages(c *cli, ctx context.Context, client *server.Client, after uint64, _ bool) (listing, error) {
	revision, err := awaitState(ctx, client, after)
	if err != nil {
		return listing{}, err
	}
	found, err := client.Images(ctx)
	l := listing{revision: revision}
	for _, o := range found.Items {
		name, title, digest, used, built := shortID(o.ID), "<none>", "<none>", "<never>", "<unknown>"
		if len(o.Names) > 0 {
			name, title = o.Names[0], strings.Join(o.Names, ",")
		}
		if len(o.Digests) > 0 {
			digest = o.Digests[0]
		}
		if !o.Used.IsZero() {
			used = duration.HumanDuration(c.now().Sub(o.Used)) + " ago"
		}
		if !o.Built.IsZero() {
			built = duration.HumanDuration(c.now().Sub(o.Built)) + " ago"
		}
		l.items = append(l.items, item{
			name: name, id: o.ID, object: o,
			row:  cells(title, shortID(o.ID), units.HumanSize(float64(o.Size)), imageUse(o), orNone(strings.Join(o.Pods, ","))),
			wide: cells(built, used, digest),
		})
	}
	return l, err
}

func imageUse(o server.Image) string {
	switch {
	case o.Wanted:
		return "wanted"
	case o.InUse:
		return "in use"
	case !o.Ours:
		return "foreign"
	default:
		return "unused"
	}
}

// awaitState waits for the state after a revision; for 0 it does not ask.
func awaitState(ctx context.Context, client *server.Client, after uint64) (uint64, error) {
	if after == 0 {
		return 1, nil
	}
	s, err := client.State(ctx, after)
	return s.Revision, err
}
