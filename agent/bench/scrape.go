package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server"
)

// scrape measures the pages about what is used with 50 pods, and with 10 for how that
// grows; those of 10 against asking the engine for the same containers' numbers, one by
// one.
func (b *bench) scrape(ctx context.Context) (rows []Row, err error) {
	for i, pods := range []int{10, many} {
		beside, err := b.beside(fmt.Sprintf("scrape%d", i))
		if err != nil {
			return nil, err
		}
		got, err := beside.scraped(ctx, pods)
		beside.clear()
		if err != nil {
			return nil, err
		}
		rows = append(rows, got...)
	}
	return rows, nil
}

func (b *bench) scraped(ctx context.Context, pods int) (rows []Row, err error) {
	a, err := b.startAgent(ctx, "")
	if err != nil {
		return nil, err
	}
	defer a.stop()
	if err := b.fill(ctx, pods, b.plain); err != nil {
		return nil, err
	}
	var floor sample
	if pods < many { // the engine takes about a second for each container
		begin := time.Now()
		if err := b.engineStats(ctx); err != nil {
			return nil, err
		}
		floor.add(time.Since(begin))
	}
	client := server.NewClient(b.own("root/podkeeper.sock"))
	for _, page := range []string{"/metrics/cadvisor", "/metrics/resource", "/metrics", "/stats/summary"} {
		var took sample
		var size int64
		before, err := cpuSeconds(a.cmd.Process.Pid)
		if err != nil {
			return nil, err
		}
		for range b.opts.n {
			begin := time.Now()
			body, err := client.Get(ctx, page, nil)
			if err != nil {
				return nil, err
			}
			size, err = io.Copy(io.Discard, body)
			body.Close()
			if err != nil {
				return nil, err
			}
			took.add(time.Since(begin))
		}
		after, err := cpuSeconds(a.cmd.Process.Pid)
		if err != nil {
			return nil, err
		}
		against := floor
		if page == "/metrics" {
			against = nil // the engine counts nothing of the kind
		}
		rows = append(rows, row(fmt.Sprintf("%s, %d pods", page, pods), took, against, "",
			fmt.Sprintf("%.1f ms of CPU, %d KiB; floor: the engine asked once for each container, which takes it a second each", (after-before)*1000/float64(b.opts.n), size>>10)))
	}
	return rows, nil
}

// engineStats asks the engine for one reading of each container.
func (b *bench) engineStats(ctx context.Context) error {
	filter, err := json.Marshal(map[string][]string{"label": {runtime.LabelOwner + "=" + b.own("root")}})
	if err != nil {
		return err
	}
	data, err := b.engine.call(ctx, http.MethodGet, "/containers/json?filters="+url.QueryEscape(string(filter)), nil)
	if err != nil {
		return err
	}
	var list []struct{ ID string }
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, c := range list {
		if _, err := b.engine.call(ctx, http.MethodGet, "/containers/"+c.ID+"/stats?stream=false&one-shot=true", nil); err != nil {
			return err
		}
	}
	return nil
}
