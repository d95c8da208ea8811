package agent

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/server"
)

// DeleteAll removes every container, mount and folder that belongs to the root
// dir, but for the folders of claims that did not ask for it: it runs the loop with a set in which everybody has spoken and nobody
// wants anything, until nothing is left.
func DeleteAll(ctx context.Context, cfg Config, log *slog.Logger) error {
	cfg.Manifests, cfg.URLs, cfg.Cgroups.Off, cfg.GC.KeepLogs = nil, nil, true, 0
	return withParts(cfg, log, func(p *parts) error {
		looping, cancel := context.WithCancel(ctx)
		defer cancel()
		group, looping := errgroup.WithContext(looping)
		sets := make(chan pod.Set)
		group.Go(func() error { return p.loop.Run(looping, sets) })
		nothing := pod.Set{Sources: []pod.Source{{ID: pod.SourceID{Kind: pod.FileSource, Name: "delete --all"}, Spoken: true, Present: true}}}
		select {
		case sets <- nothing:
		case <-looping.Done():
		}
		snap, err := p.loop.Snapshot(looping, 0)
		for err == nil && !(snap.Ready && len(snap.Pods) == 0) {
			snap, err = p.loop.Snapshot(looping, max(snap.Revision, 1))
		}
		cancel()
		if err := errors.Join(err, ignoreCancel(group.Wait())); err != nil {
			return err
		}
		return errors.Join(p.removeFolders(ctx), p.dir.Remove(reconcile.HoldsFile), p.dir.RemoveWithFolder(server.MadeCertificate), p.cgroups.drop(ctx), p.removeClaims())
	})
}

// removeFolders removes what no pod was left for: folders whose records are
// lost, and the last good manifests of the sources.
func (p *parts) removeFolders(ctx context.Context) error {
	dir := p.dir
	var errs []error
	uids, err := dir.Entries("pods")
	errs = append(errs, err)
	for _, uid := range uids {
		uid := types.UID(uid)
		errs = append(errs, p.cgroups.RemovePod(ctx, uid), p.volumes.Remove(uid), dir.RemovePod(uid))
	}
	saved, err := dir.Entries("sources")
	errs = append(errs, err)
	for _, name := range saved {
		errs = append(errs, dir.Remove("sources/"+name))
	}
	return errors.Join(errs...)
}

// removeClaims removes the folders of claims that asked for it. The others are
// data, and stay.
func (p *parts) removeClaims() error {
	stored, err := p.volumes.Claims()
	errs := []error{err}
	for _, s := range stored {
		if s.Claim.Reclaim != pod.Delete {
			p.log.Info("folder of a claim kept", "claim", s.Key.String())
			continue
		}
		_, err := p.volumes.RemoveClaim(s)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
