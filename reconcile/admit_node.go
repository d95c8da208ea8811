package reconcile

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Admission is which pods a node lets in, as one configures it.
type Admission struct {
	// MaxPods is how many may run at a time; 0 is no limit.
	MaxPods int64
	// Labels are the node's, besides those that it has by itself.
	Labels map[string]string
}

// mismatch says why a pod is not for this node; zero where it is. What runs goes on
// running: only who asks to be let in is asked.
func (n Node) mismatch(p *v1.Pod) Waiting {
	if p.Spec.OS != nil && p.Spec.OS.Name != v1.Linux {
		return Waiting{PodOSNotSupported, "Failed to admit pod as the OS field doesn't match node OS"}
	}
	const failed = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
	for _, label := range sortedKeys(p.Spec.NodeSelector) {
		want := p.Spec.NodeSelector[label]
		switch has, ok := n.Labels[label]; {
		case !ok:
			return Waiting{NodeAffinity, fmt.Sprintf("%s: nodeSelector wants %s=%s, and the node has no such label (--node-labels)", failed, label, want)}
		case has != want:
			return Waiting{NodeAffinity, fmt.Sprintf("%s: nodeSelector wants %s=%s, and the node has %s", failed, label, want, has)}
		}
	}
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return Waiting{}
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	switch match, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(node); {
	case err != nil:
		return Waiting{NodeAffinity, fmt.Sprintf("%s: %s", failed, err)}
	case !match:
		return Waiting{NodeAffinity, fmt.Sprintf("%s: no term matches %s", failed, n.labelText())}
	}
	return Waiting{}
}

func (n Node) labelText() string {
	list := []string{"metadata.name=" + n.Name}
	for _, label := range sortedKeys(n.Labels) {
		list = append(list, label+"="+n.Labels[label])
	}
	return strings.Join(list, ", ")
}
