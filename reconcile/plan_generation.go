package reconcile

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// generationPlan plans the generation that is wanted, once nothing else of the
// key is left.
type generationPlan struct {
	in       Input
	plan     Plan
	pod      *pod.Pod
	uid      types.UID
	members  []member            // in the order in which they start
	observed []runtime.Container // by rising attempt
	record   Record

	state   State
	changed map[string][]string // see changedFields; nil before it was asked
	wave    int                 // of the next step that must wait for the ones before
}

func (in Input) generation(plan Plan, want *pod.Pod, uid types.UID, observed []runtime.Container) *generationPlan {
	g := &generationPlan{in: in, plan: plan, pod: want, uid: uid, members: members(want.Object), observed: observed, record: in.Records[uid]}
	g.state = g.record.State.fold(observed)
	return g
}

func (g *generationPlan) run() {
	g.plan.Waiting = make(map[string]Waiting)
	g.foldProbes()
	g.foldHooks()
	g.foldMessages()
	g.renew()
	g.state.Key = g.in.Key
	if g.plan.Kept == "" {
		origin := g.pod.Origin
		g.state.Origin = &origin
	}
	sandbox, running := runningSandbox(g.observed)
	g.condemn()
	if g.comeBack() {
		g.plan.Blocked = Waiting{ContainerCreating, "runs again after it was evicted"}
		g.remember()
		return
	}
	g.plan.Finished = g.finished()
	g.plan.Held = !g.in.Held.IsZero()
	if held := cmp.Or(g.in.Refused, g.in.Awaits); held != (Waiting{}) && !running && !g.plan.Finished {
		g.plan.Blocked = held
		g.yield()
		return
	}
	if !g.plan.Held {
		if g.state.Admitted.IsZero() {
			g.state.Admitted = g.in.Wall
		}
		g.meetDeadline()
	}
	if running {
		g.beginRestart(sandbox.Ref())
	}
	switch {
	case g.state.Evicted != nil:
		g.evict()
	case g.plan.Finished:
		g.finish()
	case g.shuts():
		g.shutDown()
	case g.plan.Held:
		g.hold()
	case running:
		g.stopStrays(sandbox.Ref())
		g.retireSandboxes(sandbox)
		g.updateVolumes()
		g.resizeCgroup(sandbox)
		g.containers(sandbox.Ref())
	default:
		g.stopStrays(runtime.SandboxRef{})
		g.newSandbox()
	}
	g.remember()
}

// yield notes that a pod which is refused has nothing of the machine any more: over a
// restart of the agent, too, it asks for it anew. A shutdown takes from nobody what he
// is to have afterwards.
func (g *generationPlan) yield() {
	r := g.in.Refused
	if r == (Waiting{}) || r == unheard || r.Reason == NodeShutdown || g.record.State.Admitted.IsZero() {
		return
	}
	g.state.Admitted = time.Time{}
	g.remember()
}

// foldProbes remembers what probes have said.
func (g *generationPlan) foldProbes() {
	for _, c := range g.observed {
		if said := g.in.Learnt[c.ID].Probes; said != nil && !c.IsSandbox() {
			was := g.state.container(c.Name)
			was.Probed = Probed{ID: c.ID, Started: said.Started, Ready: said.Ready}
			g.state.Containers[c.Name] = was
		}
	}
}

func (g *generationPlan) add(s Step) {
	s.Pod, s.UID = g.in.Key, g.uid
	g.plan.Steps = append(g.plan.Steps, s)
}

func (g *generationPlan) wakeAt(t time.Time) {
	if g.plan.Wake.IsZero() || t.Before(g.plan.Wake) {
		g.plan.Wake = t
	}
}

func (g *generationPlan) newest(name string) (runtime.Container, bool) {
	return newestOf(g.observed, name)
}

// newestOf returns the container of a name with the highest attempt, of those of a
// generation by rising attempt.
func newestOf(observed []runtime.Container, name string) (runtime.Container, bool) {
	for i := range slices.Backward(observed) {
		if observed[i].Name == name {
			return observed[i], true
		}
	}
	return runtime.Container{}, false
}

func (g *generationPlan) nextAttempt(name string) int {
	was := g.state.container(name)
	next := max(was.Attempt+1, was.From)
	if c, ok := g.newest(name); ok {
		next = max(next, c.Attempt+1)
	}
	return next
}

func (g *generationPlan) wait(name string, w Waiting) { g.plan.Waiting[name] = w }

// creating is why a container waits that waits for nothing else.
func (g *generationPlan) creating() Reason {
	if len(g.pod.Object.Spec.InitContainers) > 0 {
		return PodInitializing
	}
	return ContainerCreating
}

// remember writes down what changed, beside the first wave: a file must not
// delay a container, but in restartHolds, where all would be restarted once more
// after a crash. pod.json waits until nothing runs any more that was made from
// what it says now.
func (g *generationPlan) remember() {
	replacing := slices.ContainsFunc(g.plan.Steps, func(s Step) bool { return s.Reason == DefinitionChanged && s.Verb == StopContainer })
	if g.plan.Kept == "" && !replacing && !sameAdmitted(g.record.Pod, g.pod) {
		g.add(Step{Verb: SavePod, Reason: Recorded})
	}
	g.rememberConditions()
	g.recordUses()
	g.state.CPUs = g.in.Pins.Own
	g.plan.State = g.state
	if !g.state.equal(g.record.State) {
		g.add(Step{Verb: SaveState, Reason: Recorded})
	}
	for _, c := range g.observed {
		if !c.IsSandbox() && c.LogPath != "" && !g.in.Learnt[c.ID].Linked {
			g.add(Step{Verb: LinkLog, Container: c.Name, Attempt: c.Attempt, ID: c.ID})
		}
	}
	g.readMessages()
	slices.SortStableFunc(g.plan.Steps, func(a, b Step) int { return a.Wave - b.Wave })
}

func (g *generationPlan) rememberConditions() {
	changed := make(map[v1.PodConditionType]Transition)
	status := Status(g.plan, g.observed, g.state, nil, g.in.Wall)
	g.plan.Phase = status.Phase
	for _, c := range status.Conditions {
		changed[c.Type] = Transition{c.Status, c.LastTransitionTime.Time}
	}
	g.state.Conditions = changed
}

// configHash is the annotation that changes with every edit of a pod.
const configHash = "kubernetes.io/config.hash"

func sameAdmitted(a, b *pod.Pod) bool {
	return a != nil && a.Origin == b.Origin && a.Hash == b.Hash &&
		a.Object.Annotations[configHash] == b.Object.Annotations[configHash]
}
