package kubeletapi

import (
	"encoding/json"
	"maps"
	"net/http"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pods answers /pods. On the read-only port values that stand in the manifest are
// hidden: any user of the machine can read there.
func (a *Answers) pods(w http.ResponseWriter, r *http.Request) error {
	found, err := a.Pods(r.Context())
	if err != nil {
		return err
	}
	return answerPods(w, found, accessOf(r) < ReadOnly)
}

// runningPods answers /runningpods/.
func (a *Answers) runningPods(w http.ResponseWriter, r *http.Request) error {
	found, err := a.RunningPods(r.Context())
	if err != nil {
		return err
	}
	return answerPods(w, found, false)
}

func answerPods(w http.ResponseWriter, pods []*v1.Pod, mask bool) error {
	list := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []v1.Pod{}}
	for _, p := range pods {
		item := *p
		if mask {
			hide(&item)
		}
		list.Items = append(list.Items, item)
	}
	return answer(w, list)
}

const hidden = "***"

// hide masks values that a manifest has for environments and for headers of probes and
// hooks, also where kubectl keeps a copy of it. What the pod points to is left as it is.
func hide(p *v1.Pod) {
	if _, ok := p.Annotations[v1.LastAppliedConfigAnnotation]; ok {
		p.Annotations = maps.Clone(p.Annotations)
		p.Annotations[v1.LastAppliedConfigAnnotation] = hidden
	}
	copied := p.Spec.DeepCopy()
	for _, list := range [][]v1.Container{copied.InitContainers, copied.Containers} {
		for i := range list {
			hideContainer(&list[i])
		}
	}
	p.Spec = *copied
}

func hideContainer(c *v1.Container) {
	for i := range c.Env {
		if c.Env[i].Value != "" {
			c.Env[i].Value = hidden
		}
	}
	for _, probe := range []*v1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe != nil {
			hideHeaders(probe.HTTPGet)
		}
	}
	if c.Lifecycle != nil {
		for _, hook := range []*v1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				hideHeaders(hook.HTTPGet)
			}
		}
	}
}

func hideHeaders(get *v1.HTTPGetAction) {
	if get == nil {
		return
	}
	for i := range get.HTTPHeaders {
		get.HTTPHeaders[i].Value = hidden
	}
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return err
}
