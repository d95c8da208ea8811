package main

import (
	"context"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// stock is what the agent of scripts has beside pods.
type stock struct {
	Objects   server.Objects   `json:"objects"`
	Images    server.Images    `json:"images"`
	Node      v1.Node          `json:"node"`
	Collected server.Collected `json:"collected"`
}

func (s *stateServer) inventory() server.Inventory {
	has := func() stock {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.stock
	}
	return server.Inventory{
		Objects: func(_ context.Context, kind pod.ObjectKind, data bool) (server.Objects, error) {
			items := slices.DeleteFunc(slices.Clone(has().Objects.Items), func(o server.Object) bool { return kind != "" && o.Kind != kind })
			for i := range items {
				if !data {
					items[i].Data, items[i].BinaryData = nil, nil
				}
			}
			return server.Objects{Items: items}, nil
		},
		Images: func(context.Context) (server.Images, error) { return has().Images, nil },
		Node: func(context.Context) (*v1.Node, error) {
			node := has().Node
			return &node, nil
		},
		Collect: func(_ context.Context, what server.Collection) (server.Collected, error) {
			found := has().Collected
			found.DryRun = what.DryRun
			if !what.Containers {
				found.Containers = []server.CollectedItem{}
			}
			if what.DryRun {
				found.Removed, found.Freed, found.Failed = 0, 0, nil
			}
			return found, nil
		},
		Pull: func(_ context.Context, image string, progress func(server.Progress)) (string, error) {
			if image == "nope:1" {
				return "", errors.New("image not found: nope:1")
			}
			progress(server.Progress{Done: 1, Layers: 2, Bytes: 5, Total: 10})
			return "sha256:0123456789abcdef", nil
		},
	}
}
