package sim

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
)

// role is what a container is to its pod.
type role int

const (
	primary role = iota
	initial
	sidecar
)

func roleOf(p *v1.Pod, name string) role {
	i := slices.IndexFunc(p.Spec.InitContainers, func(c v1.Container) bool { return c.Name == name })
	switch {
	case i < 0:
		return primary
	case p.Spec.InitContainers[i].RestartPolicy != nil:
		return sidecar
	default:
		return initial
	}
}

// version returns a version of its pod that a container can have been made from; nil
// for none. What initialises a pod is the same in all of them.
func (l *laws) version(c *life) (version *pod.Pod) {
	l.truth.ever(c.Key, func(p *pod.Pod) bool {
		if p.Hash == c.PodHash && (version == nil || p.Containers[c.Identity.Name] == c.ContainerHash) {
			version = p
		}
		return false
	})
	return version
}

func (l *laws) role(c *life) role {
	if v := l.version(c); v != nil {
		return roleOf(v.Object, c.Identity.Name)
	}
	return primary
}

// worked notes that a container ended well, which is all an init container is for.
func (l *laws) worked(c *life) {
	if l.role(c) == initial {
		if l.initialised[c.Sandbox] == nil {
			l.initialised[c.Sandbox] = map[string]bool{}
		}
		l.initialised[c.Sandbox][c.Identity.Name] = true
	}
}

// asksForAll: a container ended with an exit code for which all of its pod are
// restarted. The first rule that is about the code says so.
func (l *laws) asksForAll(c *life) bool {
	return l.spec(c, func(s *v1.Container) bool {
		for _, r := range s.RestartPolicyRules {
			listed := slices.Contains(r.ExitCodes.Values, int32(c.ExitCode))
			if listed == (r.ExitCodes.Operator == v1.ContainerRestartRuleOnExitCodesOpIn) {
				return r.Action == v1.ContainerRestartRuleActionRestartAllContainers
			}
		}
		return false
	})
}

// inItsTurn checks that a container starts when those before it have let it, and no
// init container once the pod's others have begun.
func (l *laws) inItsTurn(c *life) {
	v := l.version(c)
	if c.IsSandbox() || v == nil {
		return
	}
	switch l.role(c) {
	case primary:
		l.opened[c.Sandbox] = true
	case initial:
		if l.opened[c.Sandbox] {
			l.violate(initFirst, "%s starts, and the pod was initialised", c.Name)
		}
	}
	for _, before := range v.Object.Spec.InitContainers {
		if before.Name == c.Identity.Name {
			break
		}
		if before.RestartPolicy == nil && !l.initialised[c.Sandbox][before.Name] {
			l.violate(initFirst, "%s starts, and %s has not done its work", c.Name, before.Name)
		}
	}
}

// served: a sidecar ends when nothing is left that it was there for, as does an init
// container that somebody started again and that outlived its pod.
func (l *laws) served(c *life, others []*life) bool {
	if l.role(c) == initial {
		return !c.byUs && over(l.version(c), others)
	}
	return l.role(c) == sidecar && !slices.ContainsFunc(others, func(o *life) bool {
		return !o.IsSandbox() && o.State == runtime.Running && l.role(o) != sidecar
	})
}

// over reports whether each main container of a pod had its last attempt.
func over(v *pod.Pod, lives []*life) bool {
	return !slices.ContainsFunc(v.Object.Spec.Containers, func(spec v1.Container) bool {
		var newest *life
		for _, c := range lives {
			if c.PodHash == v.Hash && c.Identity.Name == spec.Name && (newest == nil || newest.Attempt < c.Attempt) {
				newest = c
			}
		}
		if newest == nil || !newest.Ended() {
			return true
		}
		policy := v.Object.Spec.RestartPolicy
		if spec.RestartPolicy != nil {
			policy = v1.RestartPolicy(*spec.RestartPolicy)
		}
		return policy != v1.RestartPolicyNever && !(policy == v1.RestartPolicyOnFailure && newest.ExitCode == 0)
	})
}

// lastEnd returns when the last main container of a pod that is over ended.
func lastEnd(v *pod.Pod, lives []*life) (last time.Time) {
	for _, c := range lives {
		main := c.PodHash == v.Hash && !c.IsSandbox() && roleOf(v.Object, c.Identity.Name) == primary
		if main && c.ended.After(last) {
			last = c.ended
		}
	}
	return last
}

// lastOut checks that the agent ends a sidecar only when nothing runs any more that
// it has to outlast, or for its own sake, or when the grace period may be over.
func (l *laws) lastOut(c *life, others []*life) {
	v := l.version(c)
	if v == nil || l.role(c) != sidecar || l.rivals(c, others) || l.orphaned(c) || l.probeFails(c) || l.objectsChanged(c) || l.overdue(c) {
		return
	}
	edited := l.truth.unlike(c.Key, c.made, func(p *pod.Pod) bool {
		return p.Hash != c.PodHash || p.Containers[c.Identity.Name] == c.ContainerHash
	})
	same := func(p *pod.Pod) bool { return p.Hash == c.PodHash }
	grace := time.Hour // the least that it may be by now
	l.truth.ever(c.Key, func(p *pod.Pod) bool {
		grace = min(grace, time.Duration(*p.Object.Spec.TerminationGracePeriodSeconds)*time.Second)
		return false
	})
	outlived := over(v, others) && time.Since(lastEnd(v, others)) >= grace
	if edited || outlived || l.outOfTime(c.Key, grace) || time.Now().Before(l.rough) || l.truth.unlike(c.Key, c.made, same) && l.truth.unwantedFor(c.Key, same) >= grace {
		return
	}
	for _, o := range others {
		if !o.IsSandbox() && o.UID == c.UID && o.State == runtime.Running && o.byUs && place(v, o) > place(v, c) {
			l.violate(sidecarLast, "%s is stopped while %s runs", c.Name, o.Name)
		}
	}
}

// place is when a container of a pod has its turn to start; they end in the reverse order.
func place(v *pod.Pod, c *life) int {
	i := slices.IndexFunc(v.Object.Spec.InitContainers, func(o v1.Container) bool { return o.Name == c.Identity.Name })
	if i < 0 {
		return len(v.Object.Spec.InitContainers)
	}
	return i
}
