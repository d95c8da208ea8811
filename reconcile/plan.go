package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// PlanPod says what to do about one pod now. It is a pure function (law 2).
func PlanPod(in Input) Plan {
	plan := Plan{Key: in.Key, Asks: in.Refused == unheard}
	want, kept := in.wanted()
	plan.Kept = kept
	if want == nil && kept != "" {
		return plan
	}
	uid, current, former := in.split(want)
	if want != nil && in.Refused != (Waiting{}) {
		switch {
		case slices.ContainsFunc(current, liveSandbox):
			return in.planFormer(uid)
		case len(current) == 0 && slices.ContainsFunc(former, liveSandbox):
			return in.planFormer(former[0].UID)
		}
	}
	plan.UID, plan.Pod = uid, want
	plan.Steps = in.teardown(want, uid, current, former)
	plan.Ending = slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Verb == StopContainer })
	in.leave(&plan, uid, current, former)
	if want == nil {
		in.keepLogs(&plan)
	}
	if want == nil || len(plan.Steps) > 0 {
		in.holdBack(&plan)
		// Replacement is in order: nothing starts before the old one is gone.
		if want != nil && plan.Blocked == (Waiting{}) {
			plan.Blocked = Waiting{ContainerCreating, "waits until the pod's former generation is gone"}
		}
		return plan
	}
	g := in.generation(plan, want, uid, current)
	g.run()
	in.holdBack(&g.plan)
	return g.plan
}

// planFormer lets the old version go on as long as the new one is refused. One
// that has no sandbox any more has lost its ports: it is left as it is, as is one
// of which nobody remembers what it was. Where the old one, too, asks for what it
// may not have any more, what runs of it runs on and nothing is created.
func (in Input) planFormer(uid types.UID) Plan {
	was := in.Records[uid].Pod
	plan := Plan{Key: in.Key, UID: uid, Pod: was, Blocked: in.Refused, Asks: in.Refused == unheard}
	if was == nil || !running(in.Observed, was.Hash) {
		return plan
	}
	refused := in.Refused
	if want, _ := in.wanted(); sameAdmitted(was, want) {
		refused = Waiting{} // it is no edit that is refused
	}
	in.frozen = cmp.Or(in.Policy.refusal(was), in.unsupported(was))
	asks := plan.Asks || in.frozen == unheard
	in.Desired, in.MayRemove, in.Refused = was, true, Waiting{}
	plan = PlanPod(in)
	plan.Asks = asks
	plan.Blocked = cmp.Or(plan.Blocked, refused)
	return plan
}

// holdBack takes out the steps that failed and wait for their time, and all
// that was to come after them.
func (in Input) holdBack(plan *Plan) {
	last := -1 // wave of the earliest step held back
	plan.Steps = slices.DeleteFunc(plan.Steps, func(s Step) bool {
		f, ok := in.Failures[s.failureKey()]
		if !ok || !in.Now.Before(f.Retry) {
			return false
		}
		if s.Changes() && (last < 0 || s.Wave < last) {
			last = s.Wave
			plan.Blocked = f.Waiting
		}
		if plan.Wake.IsZero() || f.Retry.Before(plan.Wake) {
			plan.Wake = f.Retry
		}
		return true
	})
	if last >= 0 {
		plan.Steps = slices.DeleteFunc(plan.Steps, func(s Step) bool { return s.Wave > last })
	}
}

// teardown returns the steps that take away every generation but the current
// one: containers, then sandboxes, then folders, also those that no container is
// left of.
func (in Input) teardown(want *pod.Pod, uid types.UID, current, former []runtime.Container) []Step {
	reason := Removed
	switch {
	case want != nil && len(current) > 0:
		reason = Superseded
	case in.Again != "":
		reason = RestartedByHand
	case want != nil:
		reason = PodChanged
	}
	steps := in.removal(former, reason)
	wave := 0
	if len(steps) > 0 {
		wave = steps[len(steps)-1].Wave + 1
	}
	folders := make(map[types.UID]bool)
	for _, c := range former {
		folders[c.UID] = true
	}
	for left, rec := range in.Records {
		other := rec.State.Leaving || left == in.Again || rec.Pod != nil && want != nil && !in.same(left, rec.Pod.Hash, want)
		folders[left] = left != uid || folders[left] || other
	}
	if len(current) > 0 {
		delete(folders, uid)
	}
	for _, left := range slices.Sorted(maps.Keys(folders)) {
		if folders[left] {
			steps = append(steps, Step{Verb: RemoveFolder, UID: left, Reason: reason, Wave: wave})
		}
	}
	for i := range steps {
		steps[i].Pod = in.Key
	}
	return steps
}

// leave writes down, beside the first step of a removal, that it has begun.
func (in Input) leave(plan *Plan, uid types.UID, current, former []runtime.Container) {
	for _, c := range former {
		state := in.Records[c.UID].State
		if state.Leaving || c.UID == uid && len(current) > 0 {
			continue
		}
		state.Key, state.Leaving = in.Key, true
		plan.State = state
		plan.Steps = append([]Step{{Verb: SaveState, Pod: in.Key, UID: c.UID, Reason: Recorded}}, plan.Steps...)
		return
	}
}

func backOffMessage(delay time.Duration, container string, key pod.Key) string {
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", delay, container, key)
}
