package defaults

import v1 "k8s.io/api/core/v1"

// Pod fills in the absent fields of p, in place.
func Pod(p *v1.Pod) {
	if p.Spec.RestartPolicy == "" {
		p.Spec.RestartPolicy = v1.RestartPolicyAlways
	}
}
