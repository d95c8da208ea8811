package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
)

// hook is a handler of a container's lifecycle, and where it goes.
type hook struct {
	*v1.LifecycleHandler
	id      string
	ports   []v1.ContainerPort
	address string
}

// run runs a hook to its end. Its error never has what the hook printed, which may
// be secret. Like the kubelet it asks of an HTTP server only that it answers.
func (h hook) run(ctx context.Context, d Deps) error {
	switch {
	case h.Exec != nil:
		result, err := d.Runtime.Exec(ctx, h.id, h.Exec.Command, 0)
		if err == nil && result.ExitCode != 0 {
			err = fmt.Errorf("the command exited with code %d", result.ExitCode)
		}
		return err
	case h.HTTPGet != nil && d.Get != nil:
		_, err := d.Get(ctx, probe.Check{
			ContainerID: h.id, Address: h.address, Ports: h.ports, Handler: v1.ProbeHandler{HTTPGet: h.HTTPGet},
		})
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			return wrapped.Err // without the URL
		}
		return err
	case h.Sleep != nil:
		select {
		case <-time.After(time.Duration(h.Sleep.Seconds) * time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	default:
		return errors.New("no such hook")
	}
}

// hookAddress is where a hook of a generation finds the ports of its pod.
func hookAddress(observed []runtime.Container, uid types.UID, node Node) string {
	sandbox, _ := runningSandbox(ofUID(observed, uid))
	return podAddress(sandbox, first(node.Addresses))
}

// stop runs the preStop hook, where there is one, and then ends the container;
// both within the grace period. A hook that fails is noted and no obstacle.
func (j job) stop(ctx context.Context, s Step) error {
	grace := s.Grace
	if h := preStop(j.admitted[s.UID], s.Container); s.Hook && h != nil {
		c := containerOf(j.admitted[s.UID].Object, s.Container)
		begin := time.Now()
		within, cancel := context.WithTimeout(ctx, grace)
		err := hook{h, s.ID, c.Ports, hookAddress(j.observed, s.UID, j.node)}.run(within, j.deps)
		cancel()
		if err != nil && ctx.Err() == nil {
			j.deps.tell(s.event(pod.EventWarning, string(FailedPreStopHook), "PreStopHook failed: "+err.Error()))
			j.deps.Log.Warn("preStop hook failed", "pod", s.Pod, "container", s.Container, "reason", string(FailedPreStopHook), "err", err)
		}
		grace = max(grace-time.Since(begin), minGrace)
	}
	return j.deps.Runtime.Stop(ctx, s.ID, grace)
}

// hookRun is a postStart hook under way.
type hookRun struct{ cancel context.CancelFunc }

// runHooks starts the postStart hooks that the plan of a pod names, and cuts off
// those that it does not: their container is to end.
func (s *state) runHooks(e *entry) {
	if !s.online || s.cfg.LookOnly {
		return
	}
	wanted := make(map[string]bool)
	for _, step := range e.plan.Hooks {
		wanted[step.ID] = true
		if c := e.seen[step.ID]; c != nil && c.hook == nil && c.Hook == "" {
			s.runHook(e, c, step)
		}
	}
	for id, c := range e.seen {
		if !wanted[id] {
			c.endHook()
		}
	}
}

func (c *sighting) endHook() {
	if c.hook != nil {
		c.hook.cancel()
		c.hook = nil
	}
}

func (s *state) runHook(e *entry, seen *sighting, step Step) {
	c := containerOf(e.plan.Pod.Object, step.Container)
	h := hook{postStart(c), step.ID, c.Ports, hookAddress(e.observed(), step.UID, s.cfg.Node)}
	ctx, cancel := context.WithCancel(s.ctx)
	run := &hookRun{cancel: cancel}
	seen.hook = run
	begin := time.Now()
	s.spawn(func() {
		defer cancel()
		err := h.run(ctx, s.deps)
		s.report(ctx, func(s *state) {
			if seen.hook == run {
				s.foldHook(e, seen, outcome{step: step, took: time.Since(begin), err: err})
			}
		})
	})
}

// foldHook takes over what a postStart hook came to. That it failed is no failure
// of ours: its container is to end for it.
func (s *state) foldHook(e *entry, seen *sighting, o outcome) {
	seen.hook = nil
	switch {
	case o.err == nil:
		seen.Hook = HookDone
		delete(e.failures, o.step.failureKey())
		s.deps.Log.Info("postStart hook succeeded", logArgs(o)...)
	case unavailable(o.err):
		s.foldFailure(e, o)
	default:
		seen.Hook = HookFailed
		s.deps.tell(o.step.event(pod.EventWarning, string(FailedPostStartHook), "PostStartHook failed: "+o.err.Error()))
		s.deps.Log.Warn("postStart hook failed", append(logArgs(o), "reason", string(FailedPostStartHook), "err", o.err)...)
	}
	s.mark(e.key)
}
