package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
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
	observed []runtime.Container // by rising attempt
	record   Record

	state   State
	changed map[string][]string // see changedFields; nil before it was asked
	wave    int                 // of the next step that must wait for the ones before
}

func (g *generationPlan) run() {
	g.plan.Waiting = make(map[string]Waiting)
	g.state = g.record.State.fold(g.observed)
	g.state.Key = g.in.Key
	if g.plan.Kept == "" {
		origin := g.pod.Origin
		g.state.Origin = &origin
	}
	sandbox, running := g.sandbox()
	g.plan.Finished = g.finished()
	if g.in.Refused != (Waiting{}) && !running && !g.plan.Finished {
		g.plan.Blocked = g.in.Refused
		return
	}
	if g.state.Admitted.IsZero() {
		g.state.Admitted = g.in.Wall
	}
	g.stopStrays(sandbox, running)
	switch {
	case g.plan.Finished:
		g.retireSandboxes(runtime.Container{})
	case running:
		g.retireSandboxes(sandbox)
		g.containers(sandbox.Ref())
	default:
		g.newSandbox()
	}
	g.remember()
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

// sandbox returns the newest running sandbox.
func (g *generationPlan) sandbox() (runtime.Container, bool) {
	for _, c := range slices.Backward(g.observed) {
		if c.IsSandbox() && c.State == runtime.Running {
			return c, true
		}
	}
	return runtime.Container{}, false
}

// attempts returns the containers of one name, by rising attempt.
func (g *generationPlan) attempts(name string) []runtime.Container {
	var list []runtime.Container
	for _, c := range g.observed {
		if c.Name == name {
			list = append(list, c)
		}
	}
	return list
}

func (g *generationPlan) newest(name string) (runtime.Container, bool) {
	list := g.attempts(name)
	if len(list) == 0 {
		return runtime.Container{}, false
	}
	return list[len(list)-1], true
}

func (g *generationPlan) nextAttempt(name string) int {
	next := g.state.container(name).Attempt + 1
	if c, ok := g.newest(name); ok {
		next = max(next, c.Attempt+1)
	}
	return next
}

// stopStrays stops every running container that must not run as it is: not in
// the pod, of an older attempt, of another definition, or in a sandbox that is
// gone. Dead ones that the pod does not name are removed.
func (g *generationPlan) stopStrays(sandbox runtime.Container, running bool) {
	for _, c := range g.observed {
		if c.IsSandbox() {
			continue
		}
		spec := containerOf(g.pod.Object, c.Name)
		switch {
		case spec == nil && c.State == runtime.Running:
			g.stop(c, Removed, "the pod has no such container any more")
		case spec == nil:
			g.add(Step{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: Removed})
		case c.State != runtime.Running:
		case !running || c.Sandbox != sandbox.Ref():
			g.stop(c, SandboxChanged, "its sandbox is gone")
		default:
			if fields := g.definitionChange(c); len(fields) > 0 {
				g.stop(c, DefinitionChanged, fmt.Sprintf("%s changed", joined(fields)))
			} else if g.resizeRestarts(spec, c) {
				g.stop(c, ResourcesChanged, "its resizePolicy asks for a restart")
			} else if newest, _ := g.newest(c.Name); newest.Attempt > c.Attempt && (newest.State == runtime.Running || newest.Ended()) {
				g.stop(c, Superseded, fmt.Sprintf("attempt %d is the newest", newest.Attempt))
			}
		}
	}
	if len(g.plan.Steps) > 0 {
		g.wave = 1
	}
}

func (g *generationPlan) stop(c runtime.Container, reason Reason, message string) {
	g.add(Step{Verb: StopContainer, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Grace: gracePeriod(g.pod), Reason: reason, Message: message})
}

// definitionChange returns what differs between the definition that a container
// was made with and the one wanted. A hash of this version decides; the fields
// that changed are looked up only to name them. With an unknown version the
// fields decide, and where they are lost nothing changed.
func (g *generationPlan) definitionChange(c runtime.Container) []string {
	return g.hashChange(c.Name, c.ContainerHash)
}

func (g *generationPlan) hashChange(name string, made pod.Hash) []string {
	want := g.pod.Containers[name]
	if made == want {
		return nil
	}
	fields := g.changedFields()[name]
	if made.Version == want.Version && len(fields) == 0 {
		return []string{"definition"}
	}
	return fields
}

// changedFields returns what differs between pod.json and the pod wanted, by
// container. Most plans need not know.
func (g *generationPlan) changedFields() map[string][]string {
	if g.changed == nil {
		g.changed = make(map[string][]string)
		if g.record.Pod != nil {
			maps.Copy(g.changed, manifests.Changed(g.record.Pod.Object, g.pod.Object).Containers)
		}
	}
	return g.changed
}

// finished reports whether every container had its last attempt.
func (g *generationPlan) finished() bool {
	for i := range g.pod.Object.Spec.Containers {
		if !g.done(&g.pod.Object.Spec.Containers[i]) {
			return false
		}
	}
	return true
}

// done reports whether a container ended and is not to be started again.
func (g *generationPlan) done(spec *v1.Container) bool {
	last := g.state.container(spec.Name).Last
	if c, ok := g.newest(spec.Name); ok {
		if !c.Ended() || len(g.definitionChange(c)) > 0 {
			return false
		}
		last = terminationOf(c)
	} else if was := g.state.container(spec.Name); last == nil || last.Attempt != was.Attempt || len(g.hashChange(spec.Name, was.Hash)) > 0 {
		return false // pod.json may be newer than what ended, and cannot tell
	}
	switch g.pod.Object.Spec.RestartPolicy {
	case v1.RestartPolicyNever:
		return true
	case v1.RestartPolicyOnFailure:
		return last.ExitCode == 0
	default:
		return false
	}
}

// retireSandboxes stops and removes all sandboxes but the one kept.
func (g *generationPlan) retireSandboxes(keep runtime.Container) {
	for _, c := range g.observed {
		if !c.IsSandbox() || c.ID == keep.ID {
			continue
		}
		s := Step{Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: Superseded, Wave: g.wave}
		if keep.ID == "" {
			s.Reason = Finished
		}
		if c.FailedStart() {
			s.Reason = FailedToStart
		}
		if c.State == runtime.Running {
			s.Verb, s.Grace = StopContainer, minGrace
			g.add(s)
			s.Wave, s.Grace = s.Wave+1, 0
		}
		s.Verb = RemoveContainer
		g.add(s)
	}
}

// newSandbox makes a sandbox, and forecasts the containers in it.
func (g *generationPlan) newSandbox() {
	attempt, message, removed := g.state.Sandboxes, "", false
	for _, c := range g.observed {
		if !c.IsSandbox() {
			continue
		}
		// The engine would not make another of its name: one that was made from
		// what the manifest said before is not taken over.
		if c.State == runtime.Created && !c.FailedStart() && c.Identity == identity(g.pod, g.uid, c.Name, c.Attempt) {
			attempt = c.Attempt
			continue
		}
		why := SandboxChanged
		switch {
		case c.FailedStart():
			why = FailedToStart
		case c.State == runtime.Created:
			why = Superseded
		}
		if c.Ended() {
			message = "the former one ended"
		}
		g.add(Step{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: why, Wave: g.wave})
		removed = true
	}
	if removed {
		g.wave++ // one that cannot be removed may yet be started
	}
	g.images(g.nextAttempt)
	if f, ok := g.in.Failures[runtime.SandboxName]; ok && g.in.Now.Before(f.Retry) {
		g.plan.Blocked = f.Waiting
		g.wakeAt(f.Retry)
		return
	}
	reason := Added
	if attempt > 0 {
		reason = SandboxChanged
	}
	g.add(Step{Verb: CreateSandbox, Container: runtime.SandboxName, Attempt: attempt, Reason: reason, Message: message, Wave: g.wave})
	g.wave++
	g.containers(runtime.SandboxRef{})
}

// containers starts what is to run in the sandbox, in the order of the manifest.
func (g *generationPlan) containers(sandbox runtime.SandboxRef) {
	for i := range g.pod.Object.Spec.Containers {
		g.container(&g.pod.Object.Spec.Containers[i], sandbox)
	}
}

func (g *generationPlan) container(spec *v1.Container, sandbox runtime.SandboxRef) {
	if g.done(spec) {
		return
	}
	c, found := g.newest(spec.Name)
	switch {
	case found && c.State == runtime.Running:
		switch {
		case c.Sandbox != sandbox: // is being stopped
			g.wait(spec, Waiting{ContainerCreating, "waits for a new sandbox"})
		case len(g.definitionChange(c)) > 0:
			g.create(spec, sandbox, DefinitionChanged, 0)
		case g.resizeRestarts(spec, c):
			g.create(spec, sandbox, ResourcesChanged, 0)
		default:
			g.resize(spec, c)
		}
	case found && c.State == runtime.Created && !c.FailedStart():
		if c.Sandbox != sandbox || len(g.definitionChange(c)) > 0 || g.olderRuns(c) {
			g.add(Step{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: Superseded, Wave: g.wave})
			g.wait(spec, Waiting{ContainerCreating, ""})
			return
		}
		reason := Added
		if c.Attempt > 0 {
			reason = Exited
		}
		g.start(spec, c.ID, c.Attempt, reason)
	case found && len(g.definitionChange(c)) > 0:
		g.create(spec, sandbox, DefinitionChanged, g.wave)
	case found:
		g.restart(spec, c, sandbox)
	default:
		reason := Added
		if g.state.container(spec.Name).Attempt >= 0 {
			reason = Missing
		}
		g.create(spec, sandbox, reason, g.wave)
	}
}

// olderRuns reports whether an earlier attempt runs and is to go on.
func (g *generationPlan) olderRuns(c runtime.Container) bool {
	return slices.ContainsFunc(g.attempts(c.Name), func(o runtime.Container) bool {
		return o.Attempt < c.Attempt && o.State == runtime.Running && o.Sandbox == c.Sandbox && len(g.definitionChange(o)) == 0
	})
}

// restart makes the next attempt of a container that ended, after its back-off.
func (g *generationPlan) restart(spec *v1.Container, c runtime.Container, sandbox runtime.SandboxRef) {
	delay := crashDelay(g.state.container(spec.Name).Level)
	ended, seen := g.in.Ended[c.ID]
	if !seen {
		ended = g.in.Now
	}
	if until := ended.Add(delay); g.in.Now.Before(until) {
		g.wait(spec, Waiting{CrashLoopBackOff, backOffMessage(delay, spec.Name, g.in.Key)})
		g.wakeAt(until)
		return
	}
	g.create(spec, sandbox, Exited, g.wave)
}

// create makes the next attempt and starts it, once its image is there and it
// is not waiting after a failure.
func (g *generationPlan) create(spec *v1.Container, sandbox runtime.SandboxRef, reason Reason, wave int) {
	attempt := g.nextAttempt(spec.Name)
	if w, ok := g.image(spec, attempt); !ok {
		g.wait(spec, w)
		return
	}
	if g.held(spec) {
		return
	}
	g.wait(spec, Waiting{Reason: ContainerCreating})
	g.add(Step{Verb: CreateContainer, Container: spec.Name, Attempt: attempt, Image: spec.Image, Sandbox: sandbox, Reason: reason, Wave: wave})
	g.wave = max(g.wave, wave+1)
	g.start(spec, "", attempt, reason)
}

func (g *generationPlan) start(spec *v1.Container, id string, attempt int, reason Reason) {
	if g.held(spec) {
		return
	}
	g.wait(spec, Waiting{Reason: ContainerCreating})
	g.add(Step{Verb: StartContainer, Container: spec.Name, Attempt: attempt, ID: id, Reason: reason, Wave: g.wave})
	g.wave++
}

// held reports whether the container waits after a failed step.
func (g *generationPlan) held(spec *v1.Container) bool {
	f, ok := g.in.Failures[spec.Name]
	if !ok || !g.in.Now.Before(f.Retry) {
		return false
	}
	g.wait(spec, f.Waiting)
	g.wakeAt(f.Retry)
	return true
}

func (g *generationPlan) wait(spec *v1.Container, w Waiting) { g.plan.Waiting[spec.Name] = w }

// resized reports whether the limits of a running container are not those
// wanted. What was set in this process counts as set, however the engine spells it.
func (g *generationPlan) resized(spec *v1.Container, c runtime.Container) bool {
	want := resources(spec)
	done, ok := g.in.Updated[c.ID]
	return c.Resources != want && !(ok && done == want)
}

// resizeRestarts reports whether the limits that differ are set by a restart.
func (g *generationPlan) resizeRestarts(spec *v1.Container, c runtime.Container) bool {
	if !g.resized(spec, c) {
		return false
	}
	want := resources(spec)
	cpu := c.Resources.CPUShares != want.CPUShares || c.Resources.CPUQuota != want.CPUQuota || c.Resources.CPUPeriod != want.CPUPeriod
	memory := c.Resources.Memory != want.Memory
	return slices.ContainsFunc(spec.ResizePolicy, func(p v1.ContainerResizePolicy) bool {
		return p.RestartPolicy == v1.RestartContainer && (p.ResourceName == v1.ResourceCPU && cpu || p.ResourceName == v1.ResourceMemory && memory)
	})
}

// resize sets the limits of a running container in place.
func (g *generationPlan) resize(spec *v1.Container, c runtime.Container) {
	if !g.resized(spec, c) {
		return
	}
	if g.held(spec) {
		return
	}
	g.add(Step{Verb: UpdateResources, Container: c.Name, Attempt: c.Attempt, ID: c.ID, Reason: ResourcesChanged})
}

// images looks up or pulls, beside the making of the sandbox, what the
// containers will need.
func (g *generationPlan) images(attempt func(string) int) {
	for i := range g.pod.Object.Spec.Containers {
		spec := &g.pod.Object.Spec.Containers[i]
		if w, ok := g.image(spec, attempt(spec.Name)); !ok {
			g.wait(spec, w)
		}
	}
}

// image reports whether the image of a container is ready for that attempt, and
// if not, plans how to get it.
func (g *generationPlan) image(spec *v1.Container, attempt int) (Waiting, bool) {
	if _, err := reference.ParseNormalizedNamed(spec.Image); err != nil {
		return Waiting{InvalidImageName, fmt.Sprintf("image %q: %v", spec.Image, err)}, false
	}
	image, known := g.in.Images[spec.Image]
	always, never := spec.ImagePullPolicy == v1.PullAlways, spec.ImagePullPolicy == v1.PullNever
	if always && g.in.Pulled[spec.Name] == (Pull{g.uid, spec.Image, attempt}) || !always && image.Present {
		return Waiting{}, true
	}
	switch {
	case image.Failed > 0 && g.in.Now.Before(image.Retry):
		g.wakeAt(image.Retry)
		if never {
			return Waiting{ErrImageNeverPull, image.Message}, false
		}
		return Waiting{ImagePullBackOff, fmt.Sprintf("back-off pulling image %q: %s", spec.Image, image.Message)}, false
	case never && known && g.in.Now.Before(image.Recheck):
		g.wakeAt(image.Recheck)
	case never:
		g.fetch(Step{Verb: CheckImage, Image: spec.Image, Reason: PolicyNever})
	case always:
		g.fetch(Step{Verb: PullImage, Image: spec.Image, Container: spec.Name, Attempt: attempt, Reason: PolicyAlways})
	case !known:
		g.fetch(Step{Verb: CheckImage, Image: spec.Image})
	default:
		g.fetch(Step{Verb: PullImage, Image: spec.Image, Reason: ImageAbsent})
	}
	switch {
	case never && known:
		return Waiting{ErrImageNeverPull, "the image is not present and its pull policy is Never"}, false
	case image.Failed > 0:
		return Waiting{ErrImagePull, image.Message}, false
	default:
		return Waiting{ContainerCreating, ""}, false
	}
}

func (g *generationPlan) fetch(s Step) {
	s.Pod, s.UID = g.in.Key, g.uid
	if !slices.Contains(g.plan.Images, s) {
		g.plan.Images = append(g.plan.Images, s)
	}
}

// remember writes down what changed, beside the first wave: a file must not
// delay a container. pod.json waits until nothing runs any more that was made
// from what it says now.
func (g *generationPlan) remember() {
	replacing := slices.ContainsFunc(g.plan.Steps, func(s Step) bool { return s.Reason == DefinitionChanged && s.Verb == StopContainer })
	if g.plan.Kept == "" && !replacing && !sameAdmitted(g.record.Pod, g.pod) {
		if g.record.Pod == nil && slices.ContainsFunc(g.pod.Object.Spec.Volumes, func(v v1.Volume) bool { return v.EmptyDir != nil }) {
			// A folder that volumes are made in is one that a crash must not orphan.
			for i := range g.plan.Steps {
				g.plan.Steps[i].Wave++
			}
		}
		g.add(Step{Verb: SavePod, Reason: Recorded})
	}
	g.plan.State = g.state
	if !g.state.equal(g.record.State) {
		g.add(Step{Verb: SaveState, Reason: Recorded})
	}
	for _, c := range g.observed {
		if !c.IsSandbox() && c.LogPath != "" && !g.in.Linked[c.ID] {
			g.add(Step{Verb: LinkLog, Container: c.Name, Attempt: c.Attempt, ID: c.ID})
		}
	}
	slices.SortStableFunc(g.plan.Steps, func(a, b Step) int { return a.Wave - b.Wave })
}

// configHash is the annotation that changes with every edit of a pod.
const configHash = "kubernetes.io/config.hash"

func sameAdmitted(a, b *pod.Pod) bool {
	return a != nil && a.Origin == b.Origin && a.Hash == b.Hash &&
		a.Object.Annotations[configHash] == b.Object.Annotations[configHash]
}

func containerOf(p *v1.Pod, name string) *v1.Container {
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Name == name {
			return &p.Spec.Containers[i]
		}
	}
	return nil
}
