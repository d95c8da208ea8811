package reconcile

import (
	"reflect"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
)

// Complaint is what a probe said last that was not well.
type Complaint struct {
	Container string
	// Message is worded as the kubelet does.
	Message string
	// Count is how often it was said, Last when last.
	Count int
	Last  time.Time

	logged bool
}

// probes reports whether containers are probed.
func (s *state) probes() bool { return s.deps.Check != nil && !s.cfg.LookOnly }

// probe hands over what is to be probed of a pod, where that changed.
func (s *state) probe(e *entry) {
	probed := e.plan.Pod != nil && hasProbes(e.plan.Pod.Object)
	if !s.probes() || !e.known() || !probed && len(e.targets) == 0 {
		return
	}
	in := ProbeInput{
		Pod: e.plan.Pod, UID: e.plan.UID, Observed: e.observed(), State: e.plan.State, HostIP: first(s.cfg.Node.Addresses),
		Known: make(map[string]ProbeState), Began: make(map[string]time.Time),
	}
	for id, seen := range e.seen {
		in.Known[id], _ = e.probed(seen.c)
		in.Began[id] = seen.began
	}
	if e.busy {
		in.Wave = e.wave
	}
	targets := ProbeTargets(in)
	if len(targets) == 0 && len(e.targets) == 0 || reflect.DeepEqual(targets, e.targets) {
		return
	}
	e.targets = targets
	select {
	case s.targets <- probe.Update{Group: e.key.String(), Targets: targets}:
	case <-s.ctx.Done():
	}
}

// foldProbes takes over what probes found. Only a change of what one has come to
// makes a pod due.
func (s *state) foldProbes(list []probe.Report) {
	for _, r := range list {
		key, known := s.byID[r.ContainerID]
		if !known {
			continue
		}
		e := s.pods[key]
		s.complain(e, r)
		if !r.Changed {
			continue
		}
		c := e.seen[r.ContainerID].c
		was, ok := e.probed(c)
		if !ok {
			was = unprobed(e.plan.Pod, c.Name)
		}
		found := was.fold(r)
		e.seen[r.ContainerID].Probes = &found
		s.mark(key)
		s.sayProbe(e, r)
	}
}

// probed returns what the probes of a container have come to, as far as they have
// said anything: in this process or before.
func (e *entry) probed(c runtime.Container) (ProbeState, bool) {
	if seen := e.seen[c.ID]; seen != nil && seen.Probes != nil {
		return *seen.Probes, true
	}
	if was := e.records[c.UID].State.container(c.Name).Probed; was.ID == c.ID {
		return ProbeState{Started: was.Started, Ready: was.Ready}, true
	}
	return ProbeState{}, false
}

// unprobed returns the state of a container whose probes have said nothing.
func unprobed(p *pod.Pod, name string) ProbeState {
	if p == nil {
		return ProbeState{}
	}
	spec := containerOf(p.Object, name)
	return ProbeState{Started: spec == nil || spec.StartupProbe == nil, Ready: spec == nil || spec.ReadinessProbe == nil}
}

func (s *state) sayProbe(e *entry, r probe.Report) {
	args := []any{"pod", e.key, "container", e.seen[r.ContainerID].c.Name}
	switch well := r.Result.Outcome == probe.Success; {
	case well && r.Kind == probe.Startup:
		s.deps.Log.Info("container has started up", args...)
	case well:
		s.deps.Log.Info("container is ready", args...)
	case r.Kind == probe.Readiness:
		s.deps.Log.Warn("container is not ready any more", append(args, "reason", r.Result.Reason)...)
	default:
		s.deps.Log.Warn("container is unhealthy", append(args, "probe", string(r.Kind), "reason", r.Result.Reason)...)
	}
}

// complain notes what a probe found that is not well, and says it once. What a
// command printed may hold secrets: it is not logged, nor shown of a pod that has
// any (C104).
func (s *state) complain(e *entry, r probe.Report) {
	seen := e.seen[r.ContainerID]
	if r.Result.Outcome == probe.Success && !r.Result.Warning {
		delete(seen.complaints, r.Kind)
		return
	}
	if e.plan.Pod != nil && usesSecrets(e.plan.Pod.Object) {
		r.Result.Output = ""
	}
	c := seen.complaints[r.Kind]
	if message := r.Message(); message != c.Message {
		c = Complaint{Container: seen.c.Name, Message: message, logged: c.logged}
		s.revision++
	}
	if !r.Try && !c.logged {
		c.logged = true
		s.deps.Log.Warn("probe does not succeed", "pod", e.key, "container", c.Container, "probe", string(r.Kind), "reason", r.Result.Reason)
	}
	c.Count++
	c.Last = s.cfg.Wall()
	if seen.complaints == nil {
		seen.complaints = make(map[probe.Kind]Complaint)
	}
	seen.complaints[r.Kind] = c
	if !r.Try {
		s.deps.tell(probeEvent(e.key, seen.c.UID, c, r.Result.Warning))
	}
}
