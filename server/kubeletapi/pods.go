package kubeletapi

import (
	"encoding/json"
	"net/http"
	"slices"

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
			item.Spec = masked(p.Spec)
		}
		list.Items = append(list.Items, item)
	}
	return answer(w, list)
}

// masked returns the spec without literal values of environments; what spec points
// to is left as it is.
func masked(spec v1.PodSpec) v1.PodSpec {
	spec.InitContainers = maskedContainers(spec.InitContainers)
	spec.Containers = maskedContainers(spec.Containers)
	return spec
}

func maskedContainers(list []v1.Container) []v1.Container {
	list = slices.Clone(list)
	for i := range list {
		list[i].Env = slices.Clone(list[i].Env)
		for j := range list[i].Env {
			if env := &list[i].Env[j]; env.Value != "" {
				env.Value = "***"
			}
		}
	}
	return list
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
