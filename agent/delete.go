package agent

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/rootdir"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
)

// DeleteAll removes every container, mount and folder that belongs to the root
// dir: it runs the loop with a set in which everybody has spoken and nobody
// wants anything, until nothing is left.
func DeleteAll(ctx context.Context, cfg Config, log *slog.Logger) error {
	cfg.Manifests, cfg.URLs = nil, nil
	return withParts(cfg, log, func(p *parts) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		group, ctx := errgroup.WithContext(ctx)
		sets := make(chan pod.Set)
		group.Go(func() error { return p.loop.Run(ctx, sets) })
		nothing := pod.Set{Sources: []pod.Source{{ID: pod.SourceID{Kind: pod.FileSource, Name: "delete --all"}, Spoken: true, Present: true}}}
		select {
		case sets <- nothing:
		case <-ctx.Done():
		}
		snap, err := p.loop.Snapshot(ctx, 0)
		for err == nil && !(snap.Ready && len(snap.Pods) == 0) {
			snap, err = p.loop.Snapshot(ctx, max(snap.Revision, 1))
		}
		cancel()
		if err := errors.Join(err, ignoreCancel(group.Wait())); err != nil {
			return err
		}
		return removeFolders(p.dir)
	})
}

// removeFolders removes what no pod was left for: folders whose records are
// lost, and the last good manifests of the sources.
func removeFolders(dir *rootdir.Dir) error {
	var errs []error
	host := volume.Host{RootDir: dir.Path()}
	uids, err := dir.Entries("pods")
	errs = append(errs, err)
	for _, uid := range uids {
		errs = append(errs, host.Remove(types.UID(uid)), dir.RemovePod(types.UID(uid)))
	}
	saved, err := dir.Entries("sources")
	errs = append(errs, err)
	for _, name := range saved {
		errs = append(errs, dir.Remove("sources/"+name))
	}
	return errors.Join(errs...)
}
