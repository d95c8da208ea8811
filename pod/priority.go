package pod

import v1 "k8s.io/api/core/v1"

// The priorities of the two classes that every API server has, and that need
// none: system-cluster-critical and system-node-critical.
const (
	ClusterCritical int32 = 2_000_000_000
	NodeCritical    int32 = 2_000_001_000
)

// Priority returns the priority of a pod. Where its class is none of those two,
// only an API server would know what the class stands for.
func Priority(p *v1.Pod) int32 {
	switch {
	case p.Spec.Priority != nil:
		return *p.Spec.Priority
	case p.Spec.PriorityClassName == "system-node-critical":
		return NodeCritical
	case p.Spec.PriorityClassName == "system-cluster-critical":
		return ClusterCritical
	default:
		return 0
	}
}

// Critical reports whether other pods make room for this one, and it for none.
// Only the priority makes it so: a pod of a file is not critical for that.
func Critical(p *v1.Pod) bool { return Priority(p) >= ClusterCritical }
