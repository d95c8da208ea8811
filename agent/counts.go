package agent

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/reconcile/probe"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/server/metrics"
)

// counts tells the counters what loop and side passes say, in their words.
type counts struct{ *metrics.Counters }

var _ reconcile.Counts = counts{}

// Took is that of reconcile.Counts.
func (c counts) Took(wave []reconcile.Taken) {
	list := make([]metrics.Taken, 0, len(wave))
	for _, t := range wave {
		s := t.Step
		list = append(list, metrics.Taken{
			Step: string(s.Verb), Container: s.Container, Attempt: s.Attempt, Init: t.Init, Took: t.Took, Err: t.Err, Code: string(t.Reason),
			Makes: s.Verb == reconcile.CreateSandbox || s.Verb == reconcile.CreateContainer, Starts: s.Verb == reconcile.StartContainer,
		})
		if s.Verb == reconcile.RemoveFolder && t.Err == nil {
			c.Gone(s.Pod, s.UID)
		}
	}
	c.Counters.Took(list)
}

// Rejected is that of reconcile.Counts.
func (c counts) Rejected(reason reconcile.Reason) { c.Counters.Rejected(string(reason)) }

// Probed is that of reconcile.Counts.
func (c counts) Probed(k reconcile.Checked) {
	result := "unknown"
	switch k.Outcome {
	case probe.Success:
		result = "successful"
	case probe.Failure:
		result = "failed"
	}
	name := strings.ToUpper(string(k.Kind[:1])) + string(k.Kind[1:])
	c.Counters.Probed(metrics.Check{Pod: k.Pod, UID: k.UID, Container: k.Container, Type: name, Result: result, Took: k.Took})
}

func (c counts) imageRemoved(r gc.ImageRemoval) {
	reason := "space"
	if r.Old {
		reason = "age"
	}
	c.ImageRemoved(reason)
}

func (c counts) pressed(y reconcile.Pressure) {
	for condition, short := range map[pod.Cause]reconcile.Shortage{pod.MemoryPressure: y.Memory, pod.DiskPressure: y.Disk, pod.PIDPressure: y.PIDs} {
		c.Pressure(condition, short.Message != "")
	}
}

// pages are those for Prometheus: see kubeletapi.Answers.
func (p *parts) pages() map[string]http.Handler {
	return map[string]http.Handler{
		"":          p.counters.Kubelet(p.now, p.log),
		"/cadvisor": metrics.Containers(p.facts, p.log),
		"/resource": metrics.Resource(p.facts, p.log),
		"/probes":   p.counters.Probes(p.log),
		"/slis": p.counters.SLIs(map[string]func(context.Context) error{
			"ping": func(context.Context) error { return nil }, "syncloop": p.syncLoop,
		}, p.log),
	}
}

// now is how things are: see metrics.Now.
func (p *parts) now(ctx context.Context) (metrics.Now, error) {
	snap, err := p.loop.Snapshot(ctx, 0)
	if err != nil {
		return metrics.Now{}, err
	}
	n := metrics.Now{
		NodeName: p.cfg.NodeName, Ready: ready(snap), Online: snap.Online, CgroupVersion: p.usage.cgroupVersion(),
		Sources: snap.Sources, Conflicts: len(snap.Conflicts),
		Phases: make(map[string]int), Containers: make(map[string]int), Waiting: make(map[string]int),
	}
	for _, state := range []runtime.State{runtime.Created, runtime.Running, runtime.Exited} {
		n.Containers[string(state)] = 0
	}
	for _, phase := range []v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed} {
		n.Phases[string(phase)] = 0
	}
	for _, v := range snap.Pods {
		if !v.Gone() {
			addPod(&n, v)
		}
	}
	n.Volumes = p.volumesInUse(snap.Pods)
	return n, nil
}

// volumesInUse looks at the claims of pods, at each once, and walks through none of them
// meanwhile.
func (p *parts) volumesInUse(pods []reconcile.View) []metrics.Volume {
	var list []metrics.Volume
	seen := make(map[pod.ObjectKey]bool)
	for _, v := range pods {
		for name, claim := range claims(v) {
			key := pod.ObjectKey{Kind: pod.PersistentVolumeClaim, Namespace: v.Object.Namespace, Name: claim}
			if seen[key] {
				continue
			}
			seen[key] = true
			fs, use := p.usage.walker.Volume(p.volumeFolder(v, name))
			list = append(list, metrics.Volume{Namespace: key.Namespace, Claim: claim, FS: fs, Use: use})
		}
	}
	return list
}

// addPod counts a pod in. One that waits as a whole is one that waits, and else each of
// its containers that does.
func addPod(n *metrics.Now, v reconcile.View) {
	if v.Plan.Pod != nil && !v.Removing {
		n.Desired++
		if !v.Plan.Finished {
			n.Active++
		}
	}
	n.Phases[string(cmp.Or(v.Object.Status.Phase, v1.PodUnknown))]++
	for _, c := range v.Containers {
		switch {
		case !c.IsSandbox():
			n.Containers[string(c.State)]++
		case c.State == runtime.Running:
			n.Running++
		}
	}
	if why := v.Plan.Blocked.Reason; why != "" {
		n.Waiting[string(why)]++
		return
	}
	for _, c := range slices.Concat(v.Object.Status.InitContainerStatuses, v.Object.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil {
			n.Waiting[w.Reason]++
		}
	}
}
