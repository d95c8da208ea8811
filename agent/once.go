package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/server"
	"github.com/podkeeper/podkeeper/sources"
)

// ErrNotStarted says that of [Once] a pod was refused, did not come up or failed.
var ErrNotStarted = errors.New("not every pod could be started, or succeeded")

// OnceConfig is how [Once] goes about it.
type OnceConfig struct {
	// Parallel starts the pods all at once, not one after the other.
	Parallel bool
	// Timeout is how long all of it may take; 0 is as long as it does. Taking down is
	// not counted: it takes no longer than the pods' grace periods.
	Timeout time.Duration
	// Down removes the pods afterwards, however they ended.
	Down bool
}

// Once asks every source once, then starts the pods. Each is waited for, until its
// containers run or, where its restartPolicy is Never or OnFailure, have finished, and
// is reported. It returns nil when all did and succeeded, else an error that wraps
// ErrNotStarted and gives the reasons, and leaves the pods as they are but with Down.
func Once(ctx context.Context, cfg Config, how OnceConfig, log *slog.Logger, report func(server.Pod)) error {
	cfg.GC.KeepLogs = 0 // whoever waits for the end of a pod has its output then
	return withParts(cfg, log, func(p *parts) error {
		if err := p.prepareNode(ctx); err != nil {
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
		group.Go(func() error { return p.evict(ctx) })
		select {
		case <-p.known: // no pod is let onto a full disk
		case <-ctx.Done():
			return errors.Join(ctx.Err(), ignoreCancel(group.Wait()))
		}
		once := once{parts: p, how: how, sets: sets, failed: problems(set), report: report}
		err = once.run(ctx, set)
		p.images.Remember(context.WithoutCancel(ctx))
		cancel()
		if err := errors.Join(err, ignoreCancel(group.Wait())); err != nil {
			return err
		}
		if len(once.failed) > 0 {
			return fmt.Errorf("%w:\n%w", ErrNotStarted, errors.Join(once.failed...))
		}
		return nil
	})
}

// once is one run of [Once].
type once struct {
	*parts
	how    OnceConfig
	sets   chan<- pod.Set
	failed []error
	report func(server.Pod)
}

func (o *once) run(ctx context.Context, whole pod.Set) error {
	parts := onePodAtATime(whole)
	if o.how.Parallel && len(parts) > 0 {
		last := parts[len(parts)-1]
		for _, part := range parts[:len(parts)-1] {
			last.keys = append(last.keys, part.keys...)
		}
		slices.SortFunc(last.keys, pod.Key.Compare)
		parts = []partSet{last}
	}
	waits, cancel := ctx, context.CancelFunc(func() {})
	if o.how.Timeout > 0 {
		waits, cancel = context.WithTimeout(ctx, o.how.Timeout)
	}
	defer cancel()
	for _, part := range parts {
		if ctx.Err() == nil && waits.Err() != nil {
			o.fail(part.keys[0], "not started: the time was over")
			continue
		}
		select {
		case o.sets <- part.set:
			o.await(waits, part.keys)
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if o.how.Down {
		return o.takeDown(ctx, whole)
	}
	return nil
}

func (o *once) fail(key pod.Key, why string) {
	o.failed = append(o.failed, fmt.Errorf("pod %s: %s", key, why))
}

// await waits for pods, reports each as it is then, and notes what is wrong with it.
func (o *once) await(ctx context.Context, keys []pod.Key) {
	left := slices.Clone(keys)
	last := make(map[pod.Key]reconcile.View)
	var after uint64
	for len(left) > 0 {
		snap, err := o.loop.Snapshot(ctx, after)
		if err != nil {
			for _, key := range left {
				v, ok := last[key]
				if ok {
					o.report(podView(v, o.cfg.policy(), !o.cfg.Cgroups.Off))
				}
				o.fail(key, cmp.Or(judge(v).why, "not done when the time was over"))
			}
			return
		}
		after = max(snap.Revision, 1)
		for _, v := range snap.Pods {
			last[pod.Key{Namespace: v.Object.Namespace, Name: v.Object.Name}] = v
		}
		left = o.sift(left, snap, last)
	}
}

// sift returns the pods that have to be waited for still. One that is refused is, as
// long as another may yet make room for it.
func (o *once) sift(keys []pod.Key, snap reconcile.Snapshot, last map[pod.Key]reconcile.View) (left []pod.Key) {
	refused := make(map[pod.Key]string)
	pending := false
	for _, key := range keys {
		i := slices.IndexFunc(snap.Conflicts, func(c pod.Conflict) bool { return c.Key == key && c.UID != "" })
		if i >= 0 {
			o.fail(key, fmt.Sprintf("uid %s is in use by pod %s", snap.Conflicts[i].UID, snap.Conflicts[i].Holder))
			continue
		}
		v := last[key]
		switch j := judge(v); {
		case v.Plan.Pod == nil || !j.done || !v.Settled():
			left, pending = append(left, key), true
		case j.refused:
			left, refused[key] = append(left, key), j.why
		default:
			o.report(podView(v, o.cfg.policy(), !o.cfg.Cgroups.Off))
			if j.why != "" {
				o.fail(key, j.why)
			}
		}
	}
	if pending {
		return left
	}
	for _, key := range left {
		o.report(podView(last[key], o.cfg.policy(), !o.cfg.Cgroups.Off))
		o.fail(key, refused[key])
	}
	return nil
}

// takeDown removes the pods and waits until nothing is left of them.
func (o *once) takeDown(ctx context.Context, whole pod.Set) error {
	select {
	case o.sets <- pod.Set{Sources: whole.Sources, Objects: whole.Objects}:
	case <-ctx.Done():
		return ctx.Err()
	}
	var after uint64
	for {
		snap, err := o.loop.Snapshot(ctx, after)
		if err != nil {
			return err
		}
		after = max(snap.Revision, 1)
		there := slices.DeleteFunc(snap.Pods, func(v reconcile.View) bool {
			return whole.Claims[v.Plan.Key] == nil
		})
		if slices.ContainsFunc(there, func(v reconcile.View) bool { return v.Plan.Kept == "" || !v.Settled() }) {
			continue
		}
		for _, v := range there {
			o.fail(v.Plan.Key, "not taken down: "+v.Plan.Kept)
		}
		return nil
	}
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

// partSet is a set, and which of its pods are new in it.
type partSet struct {
	keys []pod.Key
	set  pod.Set
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
		parts = append(parts, partSet{[]pod.Key{key}, set})
	}
	return parts
}

// judgement is what has come of a pod.
type judgement struct {
	// done: it needs no more waiting for. refused: but for what others may yet do.
	done, refused bool
	why           string // what is wrong with it; "" where nothing is
}

// judge says of a pod whether it runs or, where it is to come to its end, has.
func judge(v reconcile.View) judgement {
	if v.Plan.Pod == nil {
		return judgement{}
	}
	status, job := v.Object.Status, v.Object.Spec.RestartPolicy != v1.RestartPolicyAlways
	all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	switch {
	case status.Phase == v1.PodSucceeded:
		return judgement{done: true}
	case status.Phase == v1.PodFailed:
		return judgement{done: true, why: cmp.Or(reasonOf(status), firstFailure(all), "it has failed")}
	case status.Reason != "" && status.Reason != string(reconcile.ContainerCreating):
		return judgement{done: true, refused: true, why: reasonOf(status)}
	}
	for _, c := range all {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		again := w.Reason == string(reconcile.CrashLoopBackOff) && job // it may succeed yet
		if !again && w.Reason != string(reconcile.ContainerCreating) && w.Reason != string(reconcile.PodInitializing) {
			return judgement{done: true, why: fmt.Sprintf("container %s: %s: %s", c.Name, w.Reason, w.Message)}
		}
	}
	up := !slices.ContainsFunc(status.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.State.Running == nil })
	return judgement{done: up && !job && len(status.ContainerStatuses) > 0}
}

func reasonOf(status v1.PodStatus) string {
	if status.Reason == "" {
		return ""
	}
	return status.Reason + ": " + status.Message
}

// firstFailure says which container failed first.
func firstFailure(list []v1.ContainerStatus) string {
	c, ok := FirstFailure(list)
	if !ok {
		return ""
	}
	return fmt.Sprintf("container %s: %s, exit code %d", c.Name, c.State.Terminated.Reason, c.State.Terminated.ExitCode)
}

// FirstFailure returns the container that was the first to end with an exit code that
// is not 0; ok is false where none did.
func FirstFailure(list []v1.ContainerStatus) (first v1.ContainerStatus, ok bool) {
	for _, c := range list {
		end := c.State.Terminated
		if end == nil || end.ExitCode == 0 {
			continue
		}
		if !ok || end.FinishedAt.Before(&first.State.Terminated.FinishedAt) {
			first, ok = c, true
		}
	}
	return first, ok
}
