package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/google/uuid"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server"
)

// condition is what a test waits for in the agent's state.
type condition = func(server.State) bool

func all(conds ...condition) condition {
	return func(s server.State) bool {
		return !slices.ContainsFunc(conds, func(c condition) bool { return !c(s) })
	}
}

func not(c condition) condition { return func(s server.State) bool { return !c(s) } }

// find returns a pod of namespace default by its name in the manifest.
func find(s server.State, name string) *server.Pod { return findIn(s, "default", name) }

func findIn(s server.State, namespace, name string) *server.Pod {
	i := slices.IndexFunc(s.Pods, func(p server.Pod) bool {
		return p.Pod.Namespace == namespace && p.Pod.Name == name+"-node"
	})
	if i < 0 {
		return nil
	}
	return &s.Pods[i]
}

func status(s server.State, name, container string) *v1.ContainerStatus {
	p := find(s, name)
	if p == nil {
		return nil
	}
	i := slices.IndexFunc(p.Pod.Status.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.Name == container })
	if i < 0 {
		return nil
	}
	return &p.Pod.Status.ContainerStatuses[i]
}

// running: the pod has all of its containers running and nothing left to do.
func running(name string) condition { return runningIn("default", name) }

func runningIn(namespace, name string) condition {
	return func(s server.State) bool {
		p := findIn(s, namespace, name)
		if p == nil || !p.Settled() || len(p.Pod.Status.ContainerStatuses) == 0 {
			return false
		}
		for _, c := range p.Pod.Status.ContainerStatuses {
			if c.State.Running == nil || c.State.Running.StartedAt.IsZero() {
				return false
			}
		}
		return true
	}
}

// runs: the container runs, for the n-th time after its first.
func runs(name, container string, n int32) condition {
	return func(s server.State) bool {
		c := status(s, name, container)
		return c != nil && c.State.Running != nil && !c.State.Running.StartedAt.IsZero() && c.RestartCount == n && find(s, name).Settled()
	}
}

// phase: the pod is in that phase and nothing is left to do.
func phase(name string, want v1.PodPhase) condition {
	return func(s server.State) bool {
		p := find(s, name)
		return p != nil && p.Settled() && p.Pod.Status.Phase == want
	}
}

// waits: the container waits for one of the reasons.
func waits(name, container string, reasons ...string) condition {
	return func(s server.State) bool {
		c := status(s, name, container)
		return c != nil && c.State.Waiting != nil && slices.Contains(reasons, c.State.Waiting.Reason)
	}
}

// blocked: the pod as a whole waits for that reason.
func blocked(name, reason string) condition {
	return func(s server.State) bool {
		p := find(s, name)
		return p != nil && p.Blocked != nil && p.Blocked.Reason == reason
	}
}

// labelled: the newest edit of the pod is the one with that value of label rev.
func labelled(name, rev string) condition {
	return func(s server.State) bool {
		p := find(s, name)
		return p != nil && p.Settled() && p.Pod.Labels["rev"] == rev
	}
}

// suppliedBy: the pod comes from that origin.
func suppliedBy(name, origin string) condition {
	return func(s server.State) bool {
		p := find(s, name)
		return p != nil && p.Settled() && p.Origin.Name == origin
	}
}

// gone: the agent knows of no such pod any more.
func gone(name string) condition {
	return func(s server.State) bool { return s.Ready && find(s, name) == nil }
}

// problem: an error about that origin is shown.
func problem(origin string) condition {
	return func(s server.State) bool {
		o, ok := originOf(s, origin)
		return ok && o.Failed()
	}
}

func originOf(s server.State, name string) (pod.OriginStatus, bool) {
	for _, src := range s.Sources {
		for _, o := range src.Origins {
			if o.Origin.Name == name {
				return o, true
			}
		}
	}
	return pod.OriginStatus{}, false
}

// skipped: the file is listed as one that is no manifest.
func skipped(path string) condition {
	return func(s server.State) bool {
		return slices.ContainsFunc(s.Sources, func(src pod.Source) bool {
			return slices.ContainsFunc(src.Skipped, func(f pod.Skipped) bool { return f.Path == path && f.Reason != "" })
		})
	}
}

// history is what the engine did to the containers of a world, in order.
type history struct {
	w    *world
	mu   sync.Mutex
	list []events.Message
	came chan struct{} // has room for one
}

// record begins to listen, until the test ends.
func (w *world) record() *history {
	w.t.Helper()
	h := &history{w: w, came: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	messages, failed := w.engine.Events(ctx, events.ListOptions{
		Filters: filters.NewArgs(filters.Arg("type", "container"), filters.Arg("label", runtime.LabelOwner+"="+w.cfg.RootDir)),
	})
	var listener sync.WaitGroup
	listener.Go(func() {
		for {
			select {
			case m := <-messages:
				h.mu.Lock()
				h.list = append(h.list, m)
				h.mu.Unlock()
				select {
				case h.came <- struct{}{}:
				default:
				}
			case err := <-failed:
				if ctx.Err() == nil {
					w.t.Errorf("events: %v", err)
				}
				return
			}
		}
	})
	w.t.Cleanup(func() { cancel(); listener.Wait() })
	h.flush()
	return h
}

// flush waits until everything up to now was heard: it makes a container that is
// not the agent's although it bears its label, and waits to hear of that.
func (h *history) flush() {
	h.w.t.Helper()
	ctx, mark := context.Background(), uuid.NewString()
	c, err := h.w.engine.ContainerCreate(ctx, &container.Config{
		Image: "busybox:stable", Labels: map[string]string{runtime.LabelOwner: h.w.cfg.RootDir, "mark": mark},
	}, nil, nil, nil, "")
	if err == nil {
		err = h.w.engine.ContainerRemove(ctx, c.ID, container.RemoveOptions{})
	}
	if err != nil {
		h.w.t.Fatal(err)
	}
	heard := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return slices.ContainsFunc(h.list, func(m events.Message) bool {
			return m.Action == events.ActionDestroy && m.Actor.Attributes["mark"] == mark
		})
	}
	for !heard() {
		<-h.came
	}
}

// count returns how often that happened to a container of the pod.
func (h *history) count(action events.Action, pod, container string) int {
	h.flush()
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, m := range h.list {
		if m.Action == action && concerns(m, pod, container) {
			n++
		}
	}
	return n
}

func concerns(m events.Message, pod, container string) bool {
	return m.Actor.Attributes["io.kubernetes.pod.name"] == pod+"-node" && m.Actor.Attributes["io.kubernetes.container.name"] == container
}

// most returns how many containers of one name in one pod ran at a time, at most.
func (h *history) most(t *testing.T) (most int) {
	t.Helper()
	h.flush()
	h.mu.Lock()
	defer h.mu.Unlock()
	type unit struct{ namespace, pod, container string }
	live := make(map[unit]map[string]bool)
	for _, m := range h.list {
		a := m.Actor.Attributes
		u := unit{a["io.kubernetes.pod.namespace"], a["io.kubernetes.pod.name"], a["io.kubernetes.container.name"]}
		switch m.Action {
		case events.ActionStart:
			if live[u] == nil {
				live[u] = make(map[string]bool)
			}
			live[u][m.Actor.ID] = true
			most = max(most, len(live[u]))
		case events.ActionDie:
			delete(live[u], m.Actor.ID)
		}
	}
	return most
}

func mentions(o pod.OriginStatus, text string) bool {
	return slices.ContainsFunc(o.Problems, func(p pod.Problem) bool { return strings.Contains(p.String(), text) })
}
