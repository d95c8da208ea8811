package reconcile

import v1 "k8s.io/api/core/v1"

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
