package reconcile

import (
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/runtime"
)

// foldWave takes over what a wave came to, and makes the pod due: whatever
// happened, it is looked at again (law 3).
func (s *state) foldWave(e *entry, outcomes []outcome) {
	e.busy = false
	s.took(e, outcomes)
	for _, o := range outcomes {
		maps.Copy(e.written, o.wrote)
		if o.err != nil {
			s.foldFailure(e, o)
			continue
		}
		delete(e.failures, o.step.failureKey())
		s.foldSuccess(e, o)
		if o.step.Verb == CreateContainer && !e.usePull(o.step.Image) {
			s.deps.tell(presentEvent(o.step))
		}
		s.deps.tell(doneEvents(o.step)...)
		if o.step.Changes() || o.step.Reason == ContentChanged || o.step.Verb == UpdateCgroup && o.step.Reason != "" {
			s.deps.Log.Info(done[o.step.Verb], logArgs(o)...)
		}
	}
	if makes(e.wave) {
		s.made()
	}
	for id := range e.touched {
		if e.seen[id] != nil {
			s.inspects.add(id)
		}
	}
	clear(e.touched)
	s.mark(e.key)
}

// done is how the log says that a step was taken.
var done = map[Verb]string{
	CreateSandbox:   "sandbox started",
	CreateContainer: "container created",
	StartContainer:  "container started",
	StopContainer:   "container stopped",
	RemoveContainer: "container removed",
	UpdateResources: "container resources set",
	UpdateCgroup:    "pod resources set",
	UpdateVolume:    "volume content updated",
	RemoveVolumes:   "pod volumes removed",
	EmptyFolder:     "pod folder emptied",
	RemoveFolder:    "pod folder removed",
}

func logArgs(o outcome) []any {
	args := []any{"pod", o.step.Pod}
	if o.step.Container != "" {
		args = append(args, "container", o.step.Container, "attempt", o.step.Attempt)
	}
	if o.step.Volume != "" {
		args = append(args, "volume", o.step.Volume)
	}
	if o.step.Reason != "" {
		args = append(args, "reason", string(o.step.Reason))
	}
	if o.step.Message != "" {
		args = append(args, "message", o.step.Message)
	}
	return append(args, "took", o.took.Round(time.Millisecond))
}

func (s *state) foldSuccess(e *entry, o outcome) {
	id := o.step.ID
	switch o.step.Verb {
	case SavePod:
		s.updateRecord(e, o.step.UID, func(r *Record) { r.Pod = e.plan.Pod })
	case SaveState:
		s.updateRecord(e, o.step.UID, func(r *Record) { r.State = e.plan.State })
	case CreateSandbox:
		s.learn(o.container)
		if o.container.CgroupParent != "" {
			e.cgroups[o.step.UID] = CgroupSet{Limits: podCgroup(e.plan.Pod.Object, o.step.UID, s.cfg.Node.exempt(len(e.plan.State.CPUs) > 0)).Limits}
		}
		s.inspects.add(o.container.ID) // it may have ended since it was inspected
	case CreateContainer:
		s.learn(o.container)
		e.seen[o.container.ID].Updated = &o.container.Resources
	case StartContainer:
		if seen := e.seen[id]; seen != nil {
			s.seq++
			seen.c.State, seen.seq, seen.began = runtime.Running, s.seq, time.Now()
			s.inspects.add(id)
		}
	case StopContainer:
		s.ask(e, id)
	case RemoveContainer:
		s.forget(id)
	case UpdateCgroup:
		e.cgroups[o.step.UID] = CgroupSet{podCgroup(e.plan.Pod.Object, o.step.UID, s.cfg.Node.exempt(len(e.plan.State.CPUs) > 0)).Limits, o.step.Grow}
	case UpdateResources:
		if seen := e.seen[id]; seen != nil {
			seen.Updated = &o.container.Resources
			s.inspects.add(id)
		}
	case ReadMessage:
		if seen := e.seen[id]; seen != nil {
			seen.Message = &o.said
		}
	case LinkLog:
		if seen := e.seen[id]; seen != nil {
			seen.Linked = true
		}
	case RemoveVolumes:
		e.vacated[o.step.UID] = true
		maps.DeleteFunc(e.written, func(k VolumeKey, _ []volume.File) bool { return k.UID == o.step.UID })
	case EmptyFolder:
		if was := e.plan.State.Evicted; was != nil {
			e.emptied[o.step.UID] = was.At
		}
		maps.DeleteFunc(e.written, func(k VolumeKey, _ []volume.File) bool { return k.UID == o.step.UID })
	case RemoveFolder:
		delete(e.records, o.step.UID)
		delete(e.begun, o.step.UID)
		delete(e.out, o.step.UID)
		delete(e.emptied, o.step.UID)
		delete(e.cgroups, o.step.UID)
		delete(e.vacated, o.step.UID)
		maps.DeleteFunc(e.written, func(k VolumeKey, _ []volume.File) bool { return k.UID == o.step.UID })
	}
}

func (s *state) updateRecord(e *entry, uid types.UID, change func(*Record)) {
	rec := e.records[uid]
	change(&rec)
	e.records[uid] = rec
}

// learn takes over a container that a step made.
func (s *state) learn(c runtime.Container) {
	delete(s.strangers, c.ID)
	seen := s.sight(c.ID, c.Key)
	s.seq++
	seen.c, seen.known, seen.made, seen.seq = c, true, true, s.seq
	s.deps.Ran(c.ImageID)
}

// ask holds the pod back until a container was inspected.
func (s *state) ask(e *entry, id string) {
	if seen := e.seen[id]; seen != nil {
		s.seq++
		seen.known, seen.seq = false, s.seq
		s.inspects.add(id)
	}
}

// foldFailure notes a failed step and when to try it again. What it may have
// done all the same is found by looking.
func (s *state) foldFailure(e *entry, o outcome) {
	if s.ctx.Err() != nil {
		return
	}
	switch o.step.Verb { // it may have been done all the same
	case CreateSandbox, CreateContainer:
		s.seq++
		e.listAfter = s.seq
	case UpdateResources:
		if seen := e.seen[o.step.ID]; seen != nil {
			seen.Updated = nil
		}
	case UpdateCgroup:
		delete(e.cgroups, o.step.UID)
	}
	if _, remembered := e.records[o.step.UID]; o.step.Verb == CreateSandbox && !remembered {
		s.orphans[o.step.UID] = orphan{} // nobody may remember what was made for it, once it is not wanted
	}
	s.look(false)
	for id, seen := range e.seen {
		if id == o.step.ID || seen.c.IsSandbox() {
			s.ask(e, id)
		}
	}
	if o.step.Verb == CreateContainer && errors.Is(o.err, runtime.ErrImageNotFound) {
		for _, need := range neededBy(e.plan.Pod.Object, containerOf(e.plan.Pod.Object, o.step.Container)) {
			s.image(e.plan.Pod, need.name).absent()
		}
		e.forgetPulls(func(p Pull) bool { return p.Container == o.step.Container })
	}
	key := o.step.failureKey()
	f := e.failures[key]
	f.Count++
	f.away = unavailable(o.err)
	f.Waiting = Waiting{failureReason(o), o.err.Error()}
	f.Retry = time.Now().Add(stepDelay(f.Count))
	e.failures[key] = f
	s.deps.Log.Warn(string(o.step.Verb)+" failed", append(logArgs(o), "err", o.err, "retry", stepDelay(f.Count))...)
}

func failureReason(o outcome) Reason {
	var mount errMount
	var config errConfig
	switch {
	case errors.As(o.err, &mount):
		return FailedMount
	case errors.As(o.err, &config):
		return CreateContainerConfigError
	case errors.Is(o.err, runtime.ErrNoNetwork):
		return NetworkNotReady
	case o.step.Verb == CreateSandbox:
		return FailedCreatePodSandBox
	case o.step.Verb == CreateContainer:
		return CreateContainerError
	case o.step.Verb == StartContainer:
		return RunContainerError
	default:
		return FailedSync
	}
}
