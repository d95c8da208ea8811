package agent

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/rootdir"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/sources"
)

// readOnly is a root dir that is looked at and not changed: what there would be
// to remember is forgotten.
type readOnly struct{ reader }

type reader interface {
	ReadFile(name string) ([]byte, error)
	Entries(dir string) ([]string, error)
}

// nothing is a root dir that was never made.
type nothing struct{}

func (nothing) ReadFile(string) ([]byte, error)  { return nil, fs.ErrNotExist }
func (nothing) Entries(string) ([]string, error) { return nil, nil }

func (readOnly) WriteFile(string, []byte) error { return nil }
func (readOnly) Remove(string) error            { return nil }
func (readOnly) RemovePod(types.UID) error      { return nil }

// Look returns what an agent with this configuration would find and do now. It
// does nothing, and needs no lock.
func Look(ctx context.Context, cfg Config, log *slog.Logger) (server.State, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return server.State{}, err
	}
	var files reader = nothing{}
	switch dir, err := rootdir.OpenReader(cfg.RootDir); {
	case err == nil:
		defer dir.Close()
		files = dir
	case !errors.Is(err, fs.ErrNotExist):
		return server.State{}, err
	}
	loop, _ := cfg.loop(hardware(cfg)) // an agent would not start; what it would do is shown
	loop.LookOnly = true
	p, err := build(cfg, loop, readOnly{files}, nil, log)
	if err != nil {
		return server.State{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	sets := make(chan pod.Set)
	group.Go(func() error { return sources.Run(ctx, p.sources, sets) })
	group.Go(func() error { return p.loop.Run(ctx, sets) })
	state, err := p.state(ctx, 0)
	for err == nil && !(state.Ready && state.Online && known(state)) {
		state, err = p.state(ctx, max(state.Revision, 1))
	}
	cancel()
	for i := range state.Pods {
		// Links are looked at by each agent anew: that is no news.
		for _, verb := range []reconcile.Verb{reconcile.LinkLog, reconcile.UpdateVolume} {
			state.Pods[i].Steps = slices.DeleteFunc(state.Pods[i].Steps, isVerb(verb))
		}
		// The same goes for the limits of its cgroup, unless those of its containers change.
		if !slices.ContainsFunc(state.Pods[i].Steps, isVerb(reconcile.UpdateResources)) {
			state.Pods[i].Steps = slices.DeleteFunc(state.Pods[i].Steps, isVerb(reconcile.UpdateCgroup))
		}
	}
	return state, errors.Join(err, ignoreCancel(group.Wait()))
}

// known reports whether every container and every image of every pod was looked
// at.
func known(s server.State) bool {
	return !slices.ContainsFunc(s.Pods, func(p server.Pod) bool {
		return p.Busy || slices.ContainsFunc(p.Steps, isVerb(reconcile.CheckImage))
	})
}

func isVerb(verb reconcile.Verb) func(server.Step) bool {
	return func(s server.Step) bool { return s.Verb == string(verb) }
}
