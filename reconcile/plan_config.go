package reconcile

import v1 "k8s.io/api/core/v1"

// configured returns what a container's environment waits for; zero where it can
// be evaluated. What it reads from files is seen only when the container is made.
func (g *generationPlan) configured(spec *v1.Container) Waiting {
	about := surroundings{pod: g.pod.Object, uid: g.uid, node: g.in.Node, objects: g.in.Objects}
	if _, err := environment(spec, about); err != nil {
		return Waiting{CreateContainerConfigError, err.Error()}
	}
	return Waiting{}
}
