package agent

import (
	"context"
	"maps"
	"slices"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server"
)

// state answers clients: see server.Serve.
func (p *parts) state(ctx context.Context, after uint64) (server.State, error) {
	snap, err := p.loop.Snapshot(ctx, after)
	if err != nil {
		return server.State{}, err
	}
	return view(p.cfg, snap), nil
}

// view is a snapshot in the shape that clients read.
func view(cfg Config, snap reconcile.Snapshot) server.State {
	s := server.State{
		Revision: snap.Revision, Version: cfg.Version, Ready: ready(snap), Online: snap.Online,
		NodeName: cfg.NodeName, RootDir: cfg.RootDir, Strict: cfg.Strict, Extensions: cfg.Extensions,
		Pods: []server.Pod{}, Sources: snap.Sources, Conflicts: snap.Conflicts,
	}
	policy := cfg.policy()
	for _, v := range snap.Pods {
		if !v.Gone() {
			s.Pods = append(s.Pods, podView(v, policy, !cfg.Cgroups.Off))
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(snap.Holds), pod.Key.Compare) {
		s.Holds = append(s.Holds, server.Hold{Pod: key, Since: snap.Holds[key]})
	}
	return s
}

// ready reports whether the engine was listed and every source was asked once.
func ready(snap reconcile.Snapshot) bool {
	return snap.Ready && !slices.ContainsFunc(snap.Sources, func(src pod.Source) bool { return !src.Spoken && src.Problem == "" })
}

func podView(v reconcile.View, policy Policy, cgroups bool) server.Pod {
	p := server.Pod{Pod: v.Object, Origin: v.Origin, Line: v.Line, Kept: v.Plan.Kept, Notes: v.Notes, Held: v.Held, CPUs: v.Plan.State.CPUs, Busy: v.Busy, Removing: v.Removing}
	if b := v.Plan.Blocked; b.Reason != "" {
		p.Blocked = &server.Waiting{Reason: string(b.Reason), Message: b.Message}
	}
	for _, c := range v.Containers {
		if c.State == runtime.Running {
			p.Drift = append(p.Drift, c.Drift...)
			if c.IsSandbox() && cgroups != (c.CgroupParent != "") {
				p.Drift = append(p.Drift, "--cgroups-per-qos")
			}
			for _, f := range policy.Forbids(v.Plan.Pod) {
				p.Drift = append(p.Drift, f.Flag)
			}
		}
	}
	slices.Sort(p.Drift)
	p.Drift = slices.Compact(p.Drift)
	for _, c := range v.Complaints {
		p.Complaints = append(p.Complaints, server.Complaint{Container: c.Container, Message: c.Message, Count: c.Count, Last: c.Last})
	}
	for _, list := range [][]reconcile.Step{v.Plan.Steps, v.Plan.Images} {
		for _, s := range list {
			p.Steps = append(p.Steps, server.Step{
				Verb: string(s.Verb), Container: s.Container, Attempt: s.Attempt, ID: s.ID, Image: s.Image,
				Reason: string(s.Reason), Message: s.Message, Wave: s.Wave, Text: s.String(),
			})
		}
	}
	return p
}
