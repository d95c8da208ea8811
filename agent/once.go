package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/sources"
)

// ErrNotStarted says that [Once] could not bring every pod up.
var ErrNotStarted = errors.New("not every pod could be started")

// Once asks every source once, then starts the pods one after the other: each is
// waited for until its containers run or have finished, and reported. It returns
// nil when all did, an error that wraps ErrNotStarted and gives the reasons when
// one did not, and leaves the pods as they are.
func Once(ctx context.Context, cfg Config, log *slog.Logger, report func(server.Pod)) error {
	return withParts(cfg, log, func(p *parts) error {
		if err := p.prepareNode(); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		group, ctx := errgroup.WithContext(ctx)
		found := make(chan pod.Set)
		group.Go(func() error { return sources.Run(ctx, p.sources, found) })
		set, err := firstWhole(ctx, found)
		if err != nil {
			return errors.Join(err, ignoreCancel(group.Wait()))
		}
		sets := make(chan pod.Set)
		group.Go(func() error { return p.loop.Run(ctx, sets) })
		failed := problems(set)
		for _, part := range onePodAtATime(set) {
			select {
			case sets <- part.set:
			case <-ctx.Done():
				return errors.Join(ctx.Err(), ignoreCancel(group.Wait()))
			}
			v, why, err := p.settled(ctx, part.key)
			if err != nil {
				return errors.Join(err, ignoreCancel(group.Wait()))
			}
			report(podView(v, p.cfg.policy()))
			if why != "" {
				failed = append(failed, fmt.Errorf("pod %s: %s", part.key, why))
			}
		}
		cancel()
		if err := ignoreCancel(group.Wait()); err != nil {
			return err
		}
		if len(failed) > 0 {
			return fmt.Errorf("%w:\n%w", ErrNotStarted, errors.Join(failed...))
		}
		return nil
	})
}

func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// firstWhole returns the first set in which every source has spoken or said why
// it cannot.
func firstWhole(ctx context.Context, sets <-chan pod.Set) (pod.Set, error) {
	for {
		select {
		case set := <-sets:
			if !slices.ContainsFunc(set.Sources, func(s pod.Source) bool { return !s.Spoken && s.Problem == "" }) {
				return set, nil
			}
		case <-ctx.Done():
			return pod.Set{}, ctx.Err()
		}
	}
}

// problems returns why sources and origins are not what they should be.
func problems(set pod.Set) []error {
	var list []error
	for _, s := range set.Sources {
		if s.Problem != "" {
			list = append(list, fmt.Errorf("source %s: %s", s.ID, s.Problem))
		}
		for _, o := range s.Origins {
			for _, p := range o.Problems {
				if p.Severity == pod.Error {
					list = append(list, errors.New(p.String()))
				}
			}
		}
	}
	return list
}

type partSet struct {
	key pod.Key
	set pod.Set
}

// onePodAtATime returns sets that each want one pod more. Their sources have not
// spoken, so that none of them removes anything (law 1).
func onePodAtATime(whole pod.Set) []partSet {
	silent := slices.Clone(whole.Sources)
	for i := range silent {
		silent[i].Spoken = false
	}
	keys := make([]pod.Key, 0, len(whole.Claims))
	for key := range whole.Claims {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b pod.Key) int {
		p, q := whole.Claims[a][0], whole.Claims[b][0]
		return cmp.Or(p.Origin.Compare(q.Origin), cmp.Compare(p.Line, q.Line), a.Compare(b))
	})
	var parts []partSet
	for i, key := range keys {
		set := pod.Set{Sources: silent, Claims: make(map[pod.Key][]*pod.Pod), Objects: whole.Objects}
		for _, k := range keys[:i+1] {
			set.Claims[k] = whole.Claims[k]
		}
		parts = append(parts, partSet{key, set})
	}
	return parts
}

// settled waits until a pod runs or has finished, or cannot for now; why is "" where
// all is well.
func (p *parts) settled(ctx context.Context, key pod.Key) (v reconcile.View, why string, err error) {
	var after uint64
	for {
		snap, err := p.loop.Snapshot(ctx, after)
		if err != nil {
			return v, "", err
		}
		after = max(snap.Revision, 1)
		for _, c := range snap.Conflicts {
			if c.Key == key && c.UID != "" {
				return v, fmt.Sprintf("uid %s is in use by pod %s", c.UID, c.Holder), nil
			}
		}
		for _, v := range snap.Pods {
			if v.Object.Namespace != key.Namespace || v.Object.Name != key.Name || v.Plan.Pod == nil {
				continue
			}
			if why, done := started(v.Object.Status); done && v.Settled() {
				return v, why, nil
			}
		}
	}
}

// started reports whether a pod needs no more waiting for, and what is wrong
// with it where something is.
func started(status v1.PodStatus) (why string, done bool) {
	if status.Reason != "" && status.Reason != string(reconcile.ContainerCreating) {
		return status.Reason + ": " + status.Message, true
	}
	up := true
	for _, c := range status.ContainerStatuses {
		switch {
		case c.State.Running != nil:
		case c.State.Terminated != nil:
			if c.State.Terminated.ExitCode != 0 {
				why = fmt.Sprintf("container %s: %s, exit code %d", c.Name, c.State.Terminated.Reason, c.State.Terminated.ExitCode)
			}
		case c.State.Waiting != nil && c.State.Waiting.Reason != string(reconcile.ContainerCreating):
			return fmt.Sprintf("container %s: %s: %s", c.Name, c.State.Waiting.Reason, c.State.Waiting.Message), true
		default:
			up = false
		}
	}
	return why, up && len(status.ContainerStatuses) > 0
}
