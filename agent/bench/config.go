package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/podkeeper/podkeeper/server"
)

// config measures from the edit of a ConfigMap until the file in a container that
// mounts it has the new content, as the container's processes see it.
func (b *bench) config(ctx context.Context) ([]Row, error) {
	const pod = "config"
	object := func(value int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {k: \"%d\"}\n", value)
	}
	text := strings.NewReplacer(
		"mountPath: /out}]", "mountPath: /out}, {name: conf, mountPath: /conf}]",
		"  volumes:\n", "  volumes:\n  - {name: conf, configMap: {name: conf}}\n",
	).Replace(b.manifest(pod, 1, ""))
	var edited sample
	err := b.session(ctx, func() error {
		place, err := b.put("conf", object(0))
		if err != nil {
			return err
		}
		if _, err := place(); err != nil {
			return err
		}
		if _, err := b.bring(ctx, pod, text, stamped(pod, 1)); err != nil {
			return err
		}
		file, err := b.inContainer(ctx, "/conf/k")
		if err != nil {
			return err
		}
		for i := range b.opts.n {
			time.Sleep(200 * time.Millisecond) // an edit by hand is a single one
			d, err := b.editUntil(ctx, object(i+1), file, fmt.Sprint(i+1))
			if err != nil {
				return err
			}
			edited.add(d)
		}
		if _, err := b.unput("conf"); err != nil {
			return err
		}
		_, _, err = b.take(ctx, pod)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []Row{row("ConfigMap edited → the file in the container", edited, nil, "≤ 20 ms", "the kubelet takes up to a minute and more; nothing restarts")}, nil
}

// editUntil puts the ConfigMap in place and returns how long it took until the
// file had that content.
func (b *bench) editUntil(ctx context.Context, object, file, want string) (time.Duration, error) {
	rename, err := b.put("conf", object)
	if err != nil {
		return 0, err
	}
	t0, err := rename()
	if err != nil {
		return 0, err
	}
	for {
		data, err := os.ReadFile(file)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist): // the old content goes while its path is walked
			return 0, err
		case string(data) == want:
			return time.Since(t0), nil
		case ctx.Err() != nil || time.Since(t0) > time.Minute:
			return 0, fmt.Errorf("%s has %q a minute after the edit, want %q", file, data, want)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// inContainer returns where a path of the only container of the only pod is seen
// from the host.
func (b *bench) inContainer(ctx context.Context, path string) (string, error) {
	var id string
	if err := b.await(ctx, "the pod runs", func(s server.State) bool {
		if !settled(1)(s) {
			return false
		}
		id = strings.TrimPrefix(s.Pods[0].Pod.Status.ContainerStatuses[0].ContainerID, "docker://")
		return id != ""
	}); err != nil {
		return "", err
	}
	data, err := b.engine.call(ctx, "GET", "/containers/"+id+"/json", nil)
	if err != nil {
		return "", err
	}
	var c struct{ State struct{ Pid int } }
	if err := json.Unmarshal(data, &c); err != nil {
		return "", err
	}
	return fmt.Sprintf("/proc/%d/root%s", c.State.Pid, path), nil
}
