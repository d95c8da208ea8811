package kubeletapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/server/kubeletapi"
)

func examplePod() *v1.Pod {
	env := func() []v1.EnvVar {
		return []v1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}, {Name: "EMPTY"}, {Name: "NODE", ValueFrom: &v1.EnvVarSource{}}}
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-n", UID: "u1",
			Annotations: map[string]string{v1.LastAppliedConfigAnnotation: `{"env": "hunter2"}`, "about": "web"},
		},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{{Name: "init", Env: env()}},
			Containers: []v1.Container{{
				Name: "web", Env: env(),
				StartupProbe: asks(), LivenessProbe: asks(), ReadinessProbe: asks(),
				Lifecycle: &v1.Lifecycle{PostStart: &v1.LifecycleHandler{HTTPGet: asks().HTTPGet}, PreStop: &v1.LifecycleHandler{HTTPGet: asks().HTTPGet}},
			}},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
}

// asks is a probe with a secret in a header.
func asks() *v1.Probe {
	return &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: "hunter2"}}}}}
}

func TestPods(t *testing.T) {
	masked := examplePod()
	masked.Spec.InitContainers[0].Env[0].Value = "***"
	masked.Annotations[v1.LastAppliedConfigAnnotation] = "***"
	web := &masked.Spec.Containers[0]
	web.Env[0].Value = "***"
	for _, get := range []*v1.HTTPGetAction{
		web.StartupProbe.HTTPGet, web.LivenessProbe.HTTPGet, web.ReadinessProbe.HTTPGet, web.Lifecycle.PostStart.HTTPGet, web.Lifecycle.PreStop.HTTPGet,
	} {
		get.HTTPHeaders[0].Value = "***"
	}
	for name, c := range map[string]struct {
		access kubeletapi.Access
		want   *v1.Pod
	}{
		"read-only port": {kubeletapi.ReadOnlyPort, masked},
		"read-only role": {kubeletapi.ReadOnly, examplePod()},
		"full":           {kubeletapi.Full, examplePod()},
	} {
		code, body := call(t, c.access, everything(), http.MethodGet, "/pods")
		var got v1.PodList
		if err := json.Unmarshal([]byte(body), &got); code != http.StatusOK || err != nil {
			t.Fatalf("%s: %d, %v: %s", name, code, err, body)
		}
		want := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []v1.Pod{*c.want}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What is hidden in an answer stays in what it was made of.
func TestMaskingCopies(t *testing.T) {
	p := examplePod()
	a := everything()
	a.Pods = podsOf(p)
	call(t, kubeletapi.ReadOnlyPort, a, http.MethodGet, "/pods")
	if diff := cmp.Diff(examplePod(), p); diff != "" {
		t.Errorf("the pod was changed (-want +got):\n%s", diff)
	}
}
