package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/runtime"
)

// orphan is a pod's folder whose files are lost: a crash came before the first of
// them, or took them.
type orphan struct {
	// going: it is being removed, and nothing may be made in it.
	going bool
	// after is when to try again what failed.
	after time.Time
}

const sweepAgain = time.Minute

// sweep removes the folders that nobody can want: everything of ours was listed,
// every source has said all that it has to say (law 1), and the UID is none that
// runs, is remembered, or is to be. Nothing that runs is removed for it (law 5).
func (s *state) sweep() {
	if len(s.orphans) == 0 || s.cfg.LookOnly {
		return
	}
	if heard, _ := s.set.Heard(); !heard {
		return
	}
	for _, uid := range sortedKeys(s.orphans) {
		if o := s.orphans[uid]; o.going || time.Now().Before(o.after) || s.claimed(uid) {
			continue
		}
		s.orphans[uid] = orphan{going: true}
		ctx := s.ctx
		s.spawn(func() {
			err := removeFolder(ctx, s.deps, uid)
			s.report(ctx, func(s *state) { s.swept(uid, err) })
		})
	}
}

func (s *state) swept(uid types.UID, err error) {
	if err != nil {
		s.orphans[uid] = orphan{after: time.Now().Add(sweepAgain)}
		s.deps.Log.Warn("what is left of a pod that nobody remembers cannot be removed", "uid", uid, "err", err)
		return
	}
	delete(s.orphans, uid)
	s.deps.Log.Info("pod folder removed", "uid", uid, "reason", string(Removed), "message", "nobody remembers whose it was")
}

// claimed reports whether a pod has a UID, or would be given it.
func (s *state) claimed(uid types.UID) bool {
	for _, e := range s.pods {
		if _, remembered := e.records[uid]; remembered {
			delete(s.orphans, uid) // it was written anew
			return true
		}
		d := e.desired
		if e.plan.UID == uid || d != nil && (d.ExplicitUID() == uid || manifests.MintUID(s.cfg.Node.RootDir, s.cfg.Node.Name, e.key, d.Hash) == uid) ||
			slices.ContainsFunc(e.observed(), func(c runtime.Container) bool { return c.UID == uid }) {
			return true
		}
	}
	return false
}

// removeFolder removes all that a pod has on the node, its folder last: that says
// whose the rest is.
func removeFolder(ctx context.Context, deps Deps, uid types.UID) error {
	if err := vacate(ctx, deps, uid); err != nil {
		return err
	}
	return deps.Store.RemovePod(uid)
}

// vacate removes a pod's cgroup and volumes, and leaves what is remembered of it.
func vacate(ctx context.Context, deps Deps, uid types.UID) error {
	if deps.Cgroups != nil {
		if err := deps.Cgroups.RemovePod(ctx, uid); err != nil {
			return err
		}
	}
	if err := deps.Volumes.Remove(uid); err != nil {
		return fmt.Errorf("remove volumes of %s: %w", uid, err)
	}
	return nil
}
