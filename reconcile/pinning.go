package reconcile

import (
	"cmp"
	"slices"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// This file is the loop's side of CPUs of containers' own; admit_cpus.go decides.

// Pins are the CPUs that the containers of a pod may use, as the kernel spells a
// list. The zero value is all, and nobody is held to any.
type Pins struct {
	// Own has the containers that have some for themselves.
	Own map[string]string
	// Shared are those of all other containers; "" where CPUs are not given out.
	Shared string
	// All are those of a container that was held to some when CPUs were given out.
	All string
}

// of returns the CPUs of a container that has those now; "" leaves it to the engine.
func (p Pins) of(name, now string) string {
	if p.Shared == "" && now != "" {
		return p.All
	}
	return cmp.Or(p.Own[name], p.Shared)
}

// restorePins notes, before any pod is admitted, which container had which CPUs: of
// the pods that run first, the older ones before the younger.
func (s *state) restorePins() {
	type generation struct {
		pod   *pod.Pod
		state State
		up    bool
	}
	var list []generation
	for _, e := range s.pods {
		for uid, rec := range e.records {
			if rec.Pod == nil || len(rec.State.CPUs) == 0 {
				continue
			}
			up := slices.ContainsFunc(e.observed(), func(c runtime.Container) bool { return c.UID == uid && c.State == runtime.Running })
			list = append(list, generation{rec.Pod, rec.State, up})
		}
	}
	rank := map[bool]int{true: 0, false: 1}
	slices.SortFunc(list, func(a, b generation) int {
		return cmp.Or(rank[a.up]-rank[b.up], a.state.Admitted.Compare(b.state.Admitted), a.pod.Key().Compare(b.pod.Key()))
	})
	for _, g := range list {
		for _, m := range slices.Backward(members(g.pod.Object)) { // the primary ones before those that only initialise
			if cpus := g.state.CPUs[m.Name]; cpus != "" {
				s.cpus.Restore(g.pod, m.Name, cpus)
			}
		}
	}
}

// pin says which CPUs the containers of a pod may use, and gives it those that it is
// to have for itself. A pod that there are too few for waits; one that runs already
// goes on with what it has.
func (s *state) pin(e *entry, in *Input) {
	in.Pins.All = s.allCPUs
	if !s.cfg.Node.Pinning.Static {
		return
	}
	want, _ := in.wanted()
	if want != nil && in.Refused == (Waiting{}) && !in.over(want) {
		changed, refusal := s.cpus.Claim(want)
		if changed {
			s.deps.Log.Info("containers have CPUs of their own", "pod", e.key, "cpus", s.cpus.Own(want), "shared", s.cpus.Shared())
			s.repin()
		}
		if refusal != (Waiting{}) {
			if e.unpinned != refusal {
				s.deps.Log.Warn("too few CPUs", "pod", e.key, "reason", refusal.Reason, "message", refusal.Message)
			}
			in.Awaits = cmp.Or(in.Awaits, refusal)
			s.awaiting[e.key] = true
		}
		e.unpinned = refusal
	}
	if want != nil {
		in.Pins.Own = s.cpus.Own(in.goesOn(want))
	}
	in.Pins.Shared = s.cpus.Shared()
}

// goesOn returns the version of a pod that the plan is for: the former one where the one
// that is wanted is refused, and that one runs.
func (in *Input) goesOn(want *pod.Pod) *pod.Pod {
	if in.Refused == (Waiting{}) || running(in.Observed, want.Hash) {
		return want
	}
	for _, c := range in.Observed {
		if was := in.Records[c.UID].Pod; liveSandbox(c) && was != nil {
			return was
		}
	}
	return want
}

// repin has every pod looked at again, since the CPUs that containers share are
// others now.
func (s *state) repin() {
	s.markAll()
	s.wakeWaiting()
}

// unpin takes back the CPUs of versions of a pod of which nothing is left.
func (s *state) unpin(e *entry, observed []runtime.Container) {
	undecided := e.plan.Pod == nil && e.plan.Kept != ""
	keep := func(hash pod.Hash) bool {
		if undecided || slices.ContainsFunc(observed, func(c runtime.Container) bool { return c.PodHash == hash && c.State == runtime.Running }) {
			return true
		}
		return e.plan.Pod != nil && e.plan.Pod.Hash == hash && !e.plan.Finished && !e.plan.Held
	}
	if s.cpus.Keep(e.key, keep) {
		s.deps.Log.Info("CPUs are shared again", "pod", e.key, "shared", s.cpus.Shared())
		s.repin()
	}
}
