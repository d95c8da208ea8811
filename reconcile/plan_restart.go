package reconcile

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// restarts reports whether a container that ended with that code is started
// again: the first of its rules that applies says so, else its policy.
func restarts(p *v1.Pod, m member, code int) bool {
	if slices.ContainsFunc(m.RestartPolicyRules, func(r v1.ContainerRestartRule) bool { return applies(r, code) }) {
		return true
	}
	switch policy := restartPolicy(p, m); {
	case policy == v1.ContainerRestartPolicyNever:
		return false
	case policy == v1.ContainerRestartPolicyOnFailure, m.kind == initial:
		return code != 0
	default:
		return true
	}
}

// restartable reports whether failures of a container make it start again.
func (g *generationPlan) restartable(name string) bool {
	at := slices.IndexFunc(g.members, func(m member) bool { return m.Name == name })
	return at >= 0 && restartPolicy(g.pod.Object, g.members[at]) != v1.ContainerRestartPolicyNever
}

func restartPolicy(p *v1.Pod, m member) v1.ContainerRestartPolicy {
	if m.RestartPolicy != nil {
		return *m.RestartPolicy
	}
	return v1.ContainerRestartPolicy(p.Spec.RestartPolicy)
}

// applies reports whether a rule is about that exit code.
func applies(r v1.ContainerRestartRule, code int) bool {
	if r.ExitCodes == nil {
		return false
	}
	in := slices.Contains(r.ExitCodes.Values, int32(code))
	return in == (r.ExitCodes.Operator == v1.ContainerRestartRuleOnExitCodesOpIn)
}
