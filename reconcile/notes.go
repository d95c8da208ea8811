package reconcile

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// notes says what a pod asks for and, though it runs, does not get on this node.
func notes(p *v1.Pod, node Node) (list []string) {
	if node.NoQuotas == "" {
		return nil
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			list = append(list, fmt.Sprintf("volume %q: the size of its claim does not hold: %s", v.Name, node.NoQuotas))
		}
	}
	return list
}
