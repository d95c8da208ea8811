package reconcile

import (
	"reflect"
	"time"

	"github.com/podkeeper/podkeeper/reconcile/probe"
)

// Complaint is what a probe said last that was not well.
type Complaint struct {
	Container string
	Probe     probe.Kind
	// Message is worded as the kubelet does.
	Message string
	// Count is how often it was said, Last when last.
	Count int
	Last  time.Time
}

// probes reports whether containers are probed.
func (s *state) probes() bool { return s.deps.Check != nil && !s.cfg.LookOnly }

// probe hands over what is to be probed of a pod, where that changed.
func (s *state) probe(e *entry) {
	if !s.probes() || !e.known() {
		return
	}
	in := ProbeInput{
		Pod: e.plan.Pod, UID: e.plan.UID, Observed: e.observed(), Known: e.probes,
		Began: make(map[string]time.Time), HostIP: first(s.cfg.Node.Addresses),
	}
	for id, seen := range e.seen {
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
		was, ok := e.probes[r.ContainerID]
		if !ok {
			was = e.unprobed(r.ContainerID)
		}
		e.probes[r.ContainerID] = was.fold(r)
		s.mark(key)
		s.sayProbe(e, r)
	}
}

// unprobed returns what is known of a container whose probes have said nothing.
func (e *entry) unprobed(id string) ProbeState {
	for _, t := range e.targets {
		if t.ContainerID == id {
			return ProbeState{Started: t.Startup == nil, Ready: t.Readiness == nil}
		}
	}
	return ProbeState{}
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
		s.deps.Log.Warn("container is unhealthy", append(args, "probe", r.Kind, "reason", r.Result.Reason)...)
	}
}

// complain notes what a probe found that is not well, and says it once. What a
// command printed may hold secrets, and is not logged.
func (s *state) complain(e *entry, r probe.Report) {
	of := r.ContainerID + "/" + string(r.Kind)
	if r.Result.Outcome == probe.Success && !r.Result.Warning {
		delete(e.complaints, of)
		return
	}
	c, before := e.complaints[of]
	if message := r.Message(); message != c.Message {
		c = Complaint{Container: e.seen[r.ContainerID].c.Name, Probe: r.Kind, Message: message}
		s.revision++
	}
	if !before {
		s.deps.Log.Warn("probe does not succeed", "pod", e.key, "container", c.Container, "probe", r.Kind, "reason", r.Result.Reason)
	}
	c.Count++
	c.Last = s.cfg.Wall()
	e.complaints[of] = c
}
