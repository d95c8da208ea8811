package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// outcome is what one step came to.
type outcome struct {
	step Step
	// container is what a create made, or an update left.
	container runtime.Container
	// wrote has the content that volumes were given.
	wrote map[VolumeKey][]volume.File
	// said is what a container said of its end.
	said string
	took time.Duration
	err  error
}

// starts reports whether the wave makes or starts containers, which is what
// keeps the engine busy. Waiting for one to end does not.
func starts(wave []Step) bool {
	return slices.ContainsFunc(wave, func(s Step) bool {
		return s.Verb == CreateSandbox || s.Verb == CreateContainer || s.Verb == StartContainer
	})
}

// makes reports whether the wave makes containers, whose ids nobody knows yet.
func makes(wave []Step) bool {
	return slices.ContainsFunc(wave, func(s Step) bool { return s.Verb == CreateSandbox || s.Verb == CreateContainer })
}

// queued is where a pod's wave waits to be started. One whose wave came to be of the
// other sort may stand in both queues for a while.
type queued struct{ light, heavy bool }

// enqueue has a pod's wave wait for its start.
func (s *state) enqueue(e *entry) {
	queue, in := &s.light, &e.queued.light
	if starts(e.wave) {
		queue, in = &s.heavy, &e.queued.heavy
	}
	if !*in {
		*in = true
		*queue = append(*queue, e.key)
	}
}

// startQueued starts the waves that may run now, in the order they came. One
// that waits follows its pod's plan until it starts. What does not keep the engine busy
// waits for nobody, and of the others only as many are looked at as can start: thousands
// may wait.
func (s *state) startQueued() {
	if !s.online || s.cfg.LookOnly {
		return
	}
	s.light = slices.DeleteFunc(s.light, func(key pod.Key) bool {
		e := s.pods[key]
		switch {
		case e == nil || !e.queued.light:
		case s.orphans[e.plan.UID].going:
			return false
		default:
			e.queued.light = false
			if !starts(e.wave) {
				s.start(e)
			}
		}
		return true
	})
	now := time.Now()
	s.starting = slices.DeleteFunc(s.starting, func(e *entry) bool { return !e.busy || !starts(e.wave) || now.Sub(e.began) >= slowCall })
	var held []pod.Key
	for len(s.heavy) > 0 && len(s.starting) < s.cfg.Parallel {
		key := s.heavy[0]
		s.heavy = s.heavy[1:]
		e := s.pods[key]
		switch {
		case e == nil || !e.queued.heavy:
		case s.orphans[e.plan.UID].going:
			held = append(held, key)
		default:
			e.queued.heavy = false
			if starts(e.wave) && s.start(e) {
				s.starting = append(s.starting, e)
			}
		}
	}
	if len(held) > 0 {
		s.heavy = append(held, s.heavy...)
	}
}

// start starts the wave of a pod and reports whether it did: not where another is
// under way, or the pod is to be planned again first.
func (s *state) start(e *entry) bool {
	if e.busy || len(e.wave) == 0 || !e.known() {
		return false
	}
	e.busy, e.began = true, time.Now()
	if makes(e.wave) {
		s.making++
	}
	job := job{
		deps: s.deps, node: s.cfg.Node, pod: e.plan.Pod, state: e.plan.State, admitted: e.admittedPods(),
		objects: s.objects, images: make(map[string]runtime.ImageInfo), observed: e.observed(), wave: e.wave, mounting: new(sync.Mutex),
	}
	for _, step := range e.wave {
		if step.Verb == CreateContainer {
			job.images[step.Image] = s.image(e.plan.Pod, step.Image).Info
		}
	}
	s.probe(e) // what the wave stops is not to be probed as before
	for _, step := range e.wave {
		s.deps.tell(takenEvents(step)...)
	}
	ctx := s.ctx
	s.spawn(func() {
		outcomes := job.run(ctx)
		s.report(ctx, func(s *state) { s.foldWave(e, outcomes) })
	})
	return true
}

// job is one wave with all that it needs.
type job struct {
	deps  Deps
	node  Node
	pod   *pod.Pod
	state State
	// admitted has what each generation under the key was made from.
	admitted map[types.UID]*pod.Pod
	objects  objects
	images   map[string]runtime.ImageInfo // of the containers that are made
	observed []runtime.Container
	wave     []Step
	// mounting is held while files of the pod are written: one volume at a time.
	mounting *sync.Mutex
	wrote    map[VolumeKey][]volume.File // by the step
	said     *string                     // as outcome has it
}

// admittedPods returns what each generation was made from, as far as it is known.
func (e *entry) admittedPods() map[types.UID]*pod.Pod {
	pods := make(map[types.UID]*pod.Pod)
	in := Input{Records: e.records}
	for _, seen := range e.seen {
		uid, want := seen.c.UID, e.plan.Pod
		if uid != e.plan.UID {
			want = nil
		}
		pods[uid] = in.admitted(uid, want)
	}
	return pods
}

// run takes the steps of the wave beside each other and waits for all.
func (j job) run(ctx context.Context) []outcome {
	out := make([]outcome, len(j.wave))
	one := func(i int) {
		begin := time.Now()
		j := j
		j.wrote, j.said = make(map[VolumeKey][]volume.File), new(string)
		c, err := j.step(ctx, j.wave[i])
		out[i] = outcome{step: j.wave[i], container: c, wrote: j.wrote, said: *j.said, took: time.Since(begin), err: err}
	}
	if len(out) == 1 {
		one(0)
		return out
	}
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { one(i) })
	}
	all.Wait()
	return out
}

// step does one thing and decides nothing.
func (j job) step(ctx context.Context, s Step) (runtime.Container, error) {
	rt := j.deps.Runtime
	switch s.Verb {
	case SavePod:
		data, err := encodePod(j.pod)
		if err != nil {
			return runtime.Container{}, fmt.Errorf("encode pod %s: %w", s.Pod, err)
		}
		return runtime.Container{}, j.deps.Store.WriteFile(podFileName(s.UID), data)
	case SaveState:
		data, err := encodeState(j.state)
		if err != nil {
			return runtime.Container{}, fmt.Errorf("encode state of %s: %w", s.Pod, err)
		}
		return runtime.Container{}, j.deps.Store.WriteFile(stateFileName(s.UID), data)
	case CreateSandbox:
		return j.createSandbox(ctx, s)
	case CreateContainer:
		return j.createContainer(ctx, s)
	case StartContainer:
		return runtime.Container{}, rt.Start(ctx, s.ID)
	case StopContainer:
		return runtime.Container{}, j.stop(ctx, s)
	case RemoveContainer:
		return runtime.Container{}, rt.Remove(ctx, s.ID)
	case UpdateCgroup:
		return runtime.Container{}, j.deps.Cgroups.SetPod(ctx, s.Parent, podCgroup(j.pod.Object, s.UID, j.node.exempt(len(j.state.CPUs) > 0)), s.Grow)
	case UpdateResources:
		r := resources(j.pod.Object, containerOf(j.pod.Object, s.Container), j.node.exempt(j.state.CPUs[s.Container] != ""), j.parent(s.ID))
		r.CPUSet = s.CPUs
		return runtime.Container{Resources: r}, rt.UpdateResources(ctx, s.ID, r)
	case UpdateVolume:
		v, _ := volumeOf(j.pod.Object, s.Volume)
		return runtime.Container{}, j.ensureVolumes(ctx, j.surroundings(s), []v1.Volume{v}, true)
	case ReadMessage:
		said, err := j.readMessage(ctx, s)
		*j.said = said
		return runtime.Container{}, err
	case LinkLog:
		return runtime.Container{}, j.link(s.ID)
	case RemoveVolumes:
		return runtime.Container{}, j.deps.Volumes.Remove(s.UID)
	case EmptyFolder, RemoveFolder:
		err := errors.Join(j.deps.Logs.Unlink(s.Pod, s.UID), vacate(ctx, j.deps, s.UID))
		if err == nil && s.Verb == RemoveFolder { // it has what is remembered of the pod, and goes last
			err = j.deps.Store.RemovePod(s.UID)
		}
		return runtime.Container{}, err
	default:
		panic("no such step: " + string(s.Verb))
	}
}

// createSandbox sets up every volume of the pod first: one that cannot be had
// holds the whole pod back.
func (j job) createSandbox(ctx context.Context, s Step) (runtime.Container, error) {
	if err := j.ensureVolumes(ctx, j.surroundings(s), j.pod.Object.Spec.Volumes, false); err != nil {
		return runtime.Container{}, err
	}
	hostname, err := kernelHostname(j.pod.Object, j.node.ClusterDNS.Domain)
	if err != nil {
		return runtime.Container{}, err
	}
	spec := sandboxSpec(j.pod, s.UID, s.Attempt, hostname)
	if spec.DNS, err = j.dns(); err != nil {
		return runtime.Container{}, fmt.Errorf("resolvers of the node: %w", err)
	}
	if j.deps.Cgroups != nil {
		if spec.CgroupParent, err = j.deps.Cgroups.EnsurePod(ctx, podCgroup(j.pod.Object, s.UID, j.node.exempt(len(j.state.CPUs) > 0))); err != nil {
			return runtime.Container{}, err
		}
	}
	return j.deps.Runtime.EnsureSandbox(ctx, spec)
}

// createContainer looks at the volumes that the container mounts again: a socket
// may be gone since the last attempt.
func (j job) createContainer(ctx context.Context, s Step) (runtime.Container, error) {
	c := containerOf(j.pod.Object, s.Container)
	about := j.surroundings(s)
	if err := j.ensureVolumes(ctx, about, mounted(j.pod.Object, c), true); err != nil {
		return runtime.Container{}, err
	}
	env, err := environment(c, about)
	if err != nil {
		return runtime.Container{}, errConfig{err}
	}
	security, err := j.security(c)
	if err != nil {
		return runtime.Container{}, errConfig{err}
	}
	mounts, err := j.mounts(s.UID, c, env)
	if err != nil {
		return runtime.Container{}, errConfig{err}
	}
	if managesHosts(c) {
		hosts, err := j.hostsMount(about)
		if err != nil {
			return runtime.Container{}, err
		}
		mounts = append(mounts, hosts)
	}
	message, err := j.messageMount(s, c, mounts)
	if err != nil {
		return runtime.Container{}, err
	}
	mounts = append(mounts, message...)
	spec := containerSpec(j.pod, s.UID, c, s.Attempt, s.Sandbox, j.parent(s.Sandbox.ID), j.node.exempt(j.state.CPUs[s.Container] != ""), env, mounts)
	spec.Security, spec.Resources.CPUSet = security, s.CPUs
	id, err := j.deps.Runtime.EnsureContainer(ctx, spec)
	return runtime.Container{ID: id, Identity: spec.Identity, State: runtime.Created, Image: spec.Image, Resources: spec.Resources, CgroupParent: spec.CgroupParent}, err
}

// parent returns the cgroup that a container was made in, as the engine was told of it.
func (j job) parent(id string) string {
	for _, c := range j.observed {
		if c.ID == id {
			return c.CgroupParent
		}
	}
	return ""
}

// security has the seccomp profile that a container names read.
func (j job) security(c *v1.Container) (runtime.Security, error) {
	s, why := security(j.pod.Object, c, j.images[c.Image])
	if why != (Waiting{}) {
		return s, errors.New(why.Message)
	}
	name, local := strings.CutPrefix(string(s.Seccomp), localProfile)
	if !local {
		return s, nil
	}
	profile, err := j.deps.Store.ReadFile("seccomp/" + name)
	if err != nil {
		return s, fmt.Errorf("read seccomp profile %s: %w", name, err)
	}
	s.Seccomp = runtime.Seccomp(profile)
	return s, nil
}

// surroundings returns what a container that the step makes may be told.
func (j job) surroundings(s Step) surroundings {
	about := surroundings{pod: j.pod.Object, uid: s.UID, node: j.node, objects: j.objects}
	about.file = func(name, path string) (string, bool, error) { return j.envFile(s.UID, name, path) }
	for _, c := range j.observed {
		if c.ID == s.Sandbox.ID {
			about.podIPs = c.IPs
		}
	}
	return about
}

func (j job) link(id string) error {
	for _, c := range j.observed {
		if c.ID == id {
			return j.deps.Logs.Link(c)
		}
	}
	return nil
}
