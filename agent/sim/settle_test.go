package sim

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// How long, after the faults, the node may take to be what the sources say: the
// longest back-off, hung call and grace period, one after the other. And how
// long it must then be still, which covers every period of the agent.
const (
	settleTime = 25 * time.Minute
	stillTime  = 11 * time.Minute
	lookEvery  = 30 * time.Second
)

// settle checks what a node must be when the faults have stopped.
func (d *driver) settle() {
	d.pass(settleTime)
	d.converged("after the faults")
	d.editConfigs()
	d.laws.hold(stillness)
	for range stillTime / lookEvery {
		d.pass(lookEvery)
		d.upToDate()
	}
	d.converged("after a long quiet")
	d.planless()
	d.laws.hold(restartLaw)
	ready := d.ready()
	d.crash()
	d.revive()
	for range 40 {
		d.pass(25 * time.Millisecond)
		d.stillReady(ready)
	}
	d.pass(2 * time.Minute)
	d.converged("after a restart of the agent")
	d.laws.hold("")
	d.downAndUp()
	d.crash()
	for _, v := range d.engine.Violations() {
		d.laws.violate(foreign, "%s", v)
	}
}

// upToDate checks that the agent knows which containers have ended: without faults
// it hears of each at once, and does not need its next full look for that.
func (d *driver) upToDate() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	snap, err := d.agent.loop.Snapshot(ctx, 0)
	if err != nil {
		d.laws.violate(convergence, "the loop does not answer: %v", err)
		return
	}
	truth := map[string]fake.View{}
	for _, c := range d.engine.Containers() {
		truth[c.ID] = c
	}
	for _, v := range snap.Pods {
		for _, c := range v.Containers {
			if is, ok := truth[c.ID]; ok && c.State == runtime.Running && is.Container.Ended() && d.wall().Sub(is.Finished) > lookEvery/2 {
				d.laws.violate(convergence, "%s ended at %s, and the agent has not heard of it", is.Name, is.Finished.Format(time.TimeOnly))
			}
		}
	}
}

// planless asks the agent itself whether it has anything to do.
func (d *driver) planless() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	snap, err := d.agent.loop.Snapshot(ctx, 0)
	if err != nil {
		d.laws.violate(convergence, "the loop does not answer: %v", err)
		return
	}
	for _, v := range snap.Pods {
		pulls := len(v.Plan.Steps) == 0 && !slices.ContainsFunc(v.Plan.Images, func(s reconcile.Step) bool { return obtainable(s.Image) })
		if !v.Settled() && !pulls && !d.restless(v.Containers) {
			d.laws.violate(stillness, "%s/%s: %s", v.Object.Namespace, v.Object.Name, v.Plan)
		}
	}
}

// restless: a program of the pod ends by itself, or cannot start.
func (d *driver) restless(list []runtime.Container) bool {
	d.truth.mu.Lock()
	defer d.truth.mu.Unlock()
	return slices.ContainsFunc(list, func(c runtime.Container) bool {
		is := d.laws.live[c.ID]
		return is != nil && d.laws.selfInflicted(is)
	})
}

// converged compares the engine with what the sources say.
func (d *driver) converged(when string) {
	byKey := map[pod.Key][]fake.View{}
	for _, c := range d.engine.Containers() {
		if ours(c) {
			byKey[c.Key] = append(byKey[c.Key], c)
		}
	}
	keys := map[pod.Key]bool{}
	for key := range d.truth.said {
		keys[key] = true
	}
	for key := range byKey {
		keys[key] = true
	}
	folders := map[types.UID]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(keys), pod.Key.Compare) {
		if what := d.convergedPod(key, byKey[key], byKey); what != "" && !d.forgotten(key, byKey[key]) {
			d.laws.violate(convergence, "%s: %s: %s", when, key, what)
		}
		for _, c := range byKey[key] {
			folders[c.UID] = true
			if _, there := d.disk.group(c.UID); c.State == runtime.Running && (!there || c.CgroupParent != parentOf(c.UID)) {
				d.laws.violate(cgroupLaw, "%s: %s runs in %q, there: %t", when, c.Name, c.CgroupParent, there)
			}
		}
		d.shown(when, byKey[key])
	}
	d.saysWhy(when, byKey)
	d.apart(when)
	for _, uid := range d.disk.pods() { // those with a cgroup among them
		if !folders[uid] && !d.waiting(uid) {
			d.laws.violate(convergence, "%s: the folder of %s is left over", when, uid)
		}
	}
}

// forgotten reports whether what was admitted of a pod was lost in a crash, and
// nobody can tell whether it is wanted, or as what: nothing that is readable says
// so, something of its kind is not readable, and it is not what an unreadable origin
// said last. Then it is left as it is, dead or alive (laws 1 and 5).
func (d *driver) forgotten(key pod.Key, have []fake.View) bool {
	for o, said := range d.truth.said[key] {
		if last := said[len(said)-1]; last.pod != nil && (!d.truth.unsure[o] || madeFrom(last.pod, have)) {
			return false
		}
	}
	return len(have) > 0 && !slices.ContainsFunc(have, func(c fake.View) bool {
		return d.disk.files["pods/"+string(c.UID)+"/pod.json"] != nil || !d.truth.mute(func(o pod.Origin) bool { return o.Source.Kind == c.Source })
	})
}

// madeFrom reports whether the newest attempts were made from that version.
func madeFrom(p *pod.Pod, have []fake.View) bool {
	newest := map[string]fake.View{}
	for _, c := range have {
		if n, ok := newest[c.Identity.Name]; !ok || n.Attempt < c.Attempt {
			newest[c.Identity.Name] = c
		}
	}
	for name, c := range newest {
		if c.PodHash != p.Hash || !c.IsSandbox() && c.ContainerHash != p.Containers[name] {
			return false
		}
	}
	return true
}

// waiting reports whether a folder belongs to a pod that is desired, or may be:
// one that has finished or waits has no container. Of one that is lost but for its
// volumes nobody knows whose it is while anything is unreadable.
func (d *driver) waiting(uid types.UID) bool {
	dir := "pods/" + string(uid)
	data := string(d.disk.files[dir+"/pod.json"]) + string(d.disk.files[dir+"/state.json"])
	for key := range d.truth.said {
		versions, sure := d.truth.now(key)
		its := func(p *pod.Pod) bool { return manifests.MintUID(rootDir, nodeName, key, p.Hash) == uid }
		if data != "" && (len(versions) > 0 || !sure) && strings.Contains(data, key.Name) || slices.ContainsFunc(versions, its) {
			return true
		}
	}
	return data == "" && d.truth.mute(func(pod.Origin) bool { return true })
}

// convergedPod returns what is wrong with a pod, "" for nothing.
func (d *driver) convergedPod(key pod.Key, have []fake.View, all map[pod.Key][]fake.View) string {
	versions, sure := d.truth.now(key)
	if !sure {
		// What an unreadable origin said last, or what the other one says.
		for _, said := range d.truth.said[key] {
			for _, s := range said {
				if s.pod != nil {
					versions = append(versions, s.pod)
				}
			}
		}
	}
	var wrong []string
	for _, want := range versions {
		what := d.matches(want, have, all)
		if what == "" {
			return ""
		}
		wrong = append(wrong, fmt.Sprintf("%s (%s)", what, want.Origin))
	}
	if len(have) == 0 && (len(versions) == 0 || !sure) {
		return ""
	}
	if len(versions) == 0 {
		return "nobody wants it, and " + names(have) + " are there"
	}
	return strings.Join(wrong, "; or ") + "; there is " + names(have)
}

func names(list []fake.View) string {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, " %s(%s)", c.Name, c.State)
	}
	return b.String()
}

// matches returns what differs between a version of a pod and what is there.
func (d *driver) matches(want *pod.Pod, have []fake.View, all map[pod.Key][]fake.View) string {
	if d.laws.isHeld(want.Key()) {
		return heldPod(want, have)
	}
	runs := slices.ContainsFunc(have, func(c fake.View) bool { return c.State == runtime.Running && c.PodHash == want.Hash })
	if (!runs || d.resized(want)) && (d.refused(want, all, nil) || d.crowded(want, all) || d.truth.mayLack(want)) {
		return "" // it waits, and an older version may go on
	}
	if len(have) == 0 && (d.laws.wasEvicted(want) || d.wasPreempted(want)) && want.Object.Spec.RestartPolicy != v1.RestartPolicyAlways {
		return "" // it stays as it is until it is edited
	}
	var sandboxes []fake.View
	running := map[string][]fake.View{}
	newest := map[string]fake.View{}
	for _, c := range have {
		switch {
		case c.PodHash != want.Hash:
			return c.Name + " is of another generation"
		case c.IsSandbox() && c.State == runtime.Running:
			sandboxes = append(sandboxes, c)
		case c.IsSandbox():
		default:
			name := c.Identity.Name
			if last, ok := newest[name]; !ok || last.Attempt < c.Attempt {
				newest[name] = c
			}
			if c.State == runtime.Running {
				running[name] = append(running[name], c)
			}
			if _, ok := want.Containers[name]; !ok {
				return c.Name + " is not in the pod"
			}
		}
	}
	over, held := true, d.truth.mayLack(want)
	spec := &want.Object.Spec
	// One that was killed once fails a pod that never restarts.
	failed := spec.RestartPolicy == v1.RestartPolicyNever && (d.laws.isBotched(want) || slices.ContainsFunc(spec.InitContainers, func(c v1.Container) bool {
		last := newest[c.Name]
		return c.RestartPolicy == nil && last.ID != "" && last.Container.Ended() && last.ExitCode != 0
	}))
	for i := range spec.Containers {
		c := &spec.Containers[i]
		done, what := d.matchesContainer(want, c, running[c.Name], newest[c.Name], sandboxes)
		if what != "" && !(len(running[c.Name]) == 0 && (held || failed || stuck(spec.InitContainers))) {
			return what
		}
		over = over && done
	}
	over = over || failed || spec.RestartPolicy == v1.RestartPolicyNever && stuck(spec.InitContainers)
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		_, what := d.matchesContainer(want, c, running[c.Name], newest[c.Name], sandboxes)
		idle := len(running[c.Name]) == 0 && (held || over || roleOf(want.Object, c.Name) == initial || stuck(spec.InitContainers[:i]) ||
			stuck(spec.InitContainers) && restlessAmong(spec.InitContainers[:i]))
		if what != "" && !idle {
			return what
		}
	}
	if len(sandboxes) != 1 && !(over && len(sandboxes) == 0) {
		return fmt.Sprintf("%d sandboxes run", len(sandboxes))
	}
	return ""
}

// isBotched reports whether an init container of a version of a pod failed, and may have
// been collected since.
func (l *laws) isBotched(p *pod.Pod) bool {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	return l.botched[manifests.MintUID(rootDir, nodeName, p.Key(), p.Hash)]
}

// stuck reports whether one of those never lets the next ones start.
func stuck(inits []v1.Container) bool {
	return slices.ContainsFunc(inits, func(c v1.Container) bool {
		p := fake.ParseProgram(runtime.ContainerSpec{Command: c.Command})
		return c.RestartPolicy == nil && p.Code != 0
	})
}

// restlessAmong reports whether a program of those ends now and then: before the pod is
// initialised, who comes after it waits for it.
func restlessAmong(inits []v1.Container) bool {
	return slices.ContainsFunc(inits, func(c v1.Container) bool {
		return fake.ParseProgram(runtime.ContainerSpec{Command: c.Command}).Exits
	})
}

// matchesContainer also reports whether the container had its last attempt.
func (d *driver) matchesContainer(want *pod.Pod, spec *v1.Container, running []fake.View, newest fake.View, sandboxes []fake.View) (done bool, what string) {
	program := fake.ParseProgram(runtime.ContainerSpec{Command: spec.Command})
	policy := want.Object.Spec.RestartPolicy
	if spec.RestartPolicy != nil {
		policy = v1.RestartPolicy(*spec.RestartPolicy)
	}
	if len(running) > 1 {
		return false, fmt.Sprintf("%d attempts of %s run", len(running), spec.Name)
	}
	if len(running) == 1 {
		c := running[0]
		switch {
		case c.ContainerHash != want.Containers[spec.Name]:
			return false, c.Name + " runs with another definition"
		case len(sandboxes) == 1 && !sandboxes[0].HostNetwork && c.Network != sandboxes[0].Ref():
			return false, c.Name + " runs in a network that is gone"
		case c.Resources.Memory != spec.Resources.Limits.Memory().Value():
			return false, fmt.Sprintf("%s has %d bytes of memory", c.Name, c.Resources.Memory)
		}
		return false, ""
	}
	ended := newest.ID != "" && newest.Container.Ended() && newest.ContainerHash == want.Containers[spec.Name]
	switch {
	case policy == v1.RestartPolicyNever, policy == v1.RestartPolicyOnFailure && newest.ExitCode == 0:
		// It may have had its attempt, and been collected since.
		return true, ""
	case program.Exits, program.FailStart != "", probesFail(spec), hookFails(spec):
		return false, "" // between two attempts
	case !obtainable(spec.Image):
		return false, ""
	}
	return ended, spec.Name + " does not run"
}

// refused reports whether a version has to wait for its host port: another pod has
// it, and keeps it, or waits itself for what it would have in its place. Those
// that only wait for each other (since has them) are to be admitted together. One
// that was admitted, and waits for an object before anything of it can be made,
// has its port too.
func (d *driver) refused(want *pod.Pod, all map[pod.Key][]fake.View, since []pod.Key) bool {
	port := hostPort(want.Object)
	since = append(since, want.Key())
	for key := range d.truth.said {
		has := slices.ContainsFunc(all[key], func(c fake.View) bool { return hasPort(c, port) }) || d.reserved(key, port)
		if port == 0 || slices.Contains(since, key) || !has {
			continue
		}
		versions, sure := d.truth.now(key)
		if !sure || slices.ContainsFunc(versions, func(p *pod.Pod) bool { return hostPort(p.Object) == port || d.refused(p, all, since) }) {
			return true
		}
	}
	return false
}

// reserved reports whether the root dir says that a version of a pod was admitted
// which has that port, and waits for an object.
func (d *driver) reserved(key pod.Key, port int32) bool {
	versions, _ := d.truth.now(key)
	return slices.ContainsFunc(versions, func(p *pod.Pod) bool {
		if hostPort(p.Object) != port || !d.truth.mayLack(p) {
			return false
		}
		for name, data := range d.disk.files {
			if path.Base(name) == "pod.json" && strings.Contains(string(data), p.Hash.Digest) && strings.Contains(string(data), `"`+key.Name+`"`) {
				return true
			}
		}
		return false
	})
}

func hostPort(p *v1.Pod) int32 {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				return port.HostPort
			}
		}
	}
	return 0
}
