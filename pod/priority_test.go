package pod_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/pod"
)

func TestCritical(t *testing.T) {
	for name, c := range map[string]struct {
		class    string
		priority int32 // 0 is none
		want     bool
	}{
		"no priority":                         {},
		"the highest of one's own":            {priority: 1_000_000_000},
		"just below the critical ones":        {priority: 1_999_999_999},
		"the least critical":                  {priority: 2_000_000_000, want: true},
		"critical to the node":                {class: "system-node-critical", want: true},
		"critical to the cluster":             {class: "system-cluster-critical", want: true},
		"a class of one's own":                {class: "mine"},
		"a priority that its class belies":    {class: "system-node-critical", priority: 7},
		"a class of one's own, made critical": {class: "mine", priority: 2_000_000_000, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1.Pod{Spec: v1.PodSpec{PriorityClassName: c.class}}
			if c.priority != 0 {
				p.Spec.Priority = &c.priority
			}
			if got := pod.Critical(p); got != c.want {
				t.Errorf("critical: %v", got)
			}
		})
	}
}
