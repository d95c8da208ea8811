package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// pageCalls is how often a page is asked for in a repetition: one alone is too short.
const pageCalls = 10

// pages measures pages of the kubelet API with 50 pods on the node, as a client on the
// socket has them. The floor of /pods is the bare encoding of the same list.
func (b *bench) pages(ctx context.Context) ([]Row, error) {
	var pods, floor sample
	var size int
	err := b.session(ctx, func() error {
		if err := b.fill(ctx, many, b.plain); err != nil {
			return err
		}
		client := server.NewClient(b.own("root", "podkeeper.sock"))
		var body []byte
		for range b.opts.n {
			t0 := time.Now()
			for range pageCalls {
				var err error
				if body, err = wholePage(ctx, client, "/pods"); err != nil {
					return err
				}
			}
			pods.add(time.Since(t0) / pageCalls)
			var list v1.PodList
			if err := json.Unmarshal(body, &list); err != nil || len(list.Items) != many {
				return fmt.Errorf("/pods has %d pods: %v", len(list.Items), err)
			}
			t0 = time.Now()
			for range pageCalls {
				if _, err := json.Marshal(list); err != nil {
					return err
				}
			}
			floor.add(time.Since(t0) / pageCalls)
		}
		size = len(body)
		return b.takeMany(ctx)
	})
	if err != nil {
		return nil, err
	}
	return []Row{row("/pods with 50 pods", pods, floor, "", fmt.Sprintf("%d KiB; floor: its JSON encoded", size>>10))}, nil
}

func wholePage(ctx context.Context, client *server.Client, path string) ([]byte, error) {
	body, err := client.Get(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}
