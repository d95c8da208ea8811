package defaults_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/defaults"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// C028: requests follow from limits, one by one; nothing is limited by a request.
func TestContainerResources(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"requests from limits":             {`limits: {cpu: 500m, memory: 64Mi}`, `{limits: {cpu: 500m, memory: 64Mi}, requests: {cpu: 500m, memory: 64Mi}}`},
		"a request that is set stays":      {`{limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 100m}}`, `{limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 100m, memory: 1Gi}}`},
		"no limits from requests":          {`requests: {cpu: 250m}`, `requests: {cpu: 250m}`},
		"nothing from nothing":             {`{}`, `{}`},
		"no finer than a thousandth, up":   {`limits: {cpu: 100u, memory: "0.5"}`, `{limits: {cpu: 1m, memory: 500m}, requests: {cpu: 1m, memory: 500m}}`},
		"rounded up once it is a request":  {`requests: {cpu: 1500u}`, `requests: {cpu: 2m}`},
		"devices are requested as limited": {`limits: {example.com/gpu: 1}`, `{limits: {example.com/gpu: 1}, requests: {example.com/gpu: 1}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var in, want v1.ResourceRequirements
			unmarshal(t, test.in, &in)
			unmarshal(t, test.want, &want)
			p := &v1.Pod{Spec: v1.PodSpec{
				Containers:     []v1.Container{{Name: "a", Resources: in}},
				InitContainers: []v1.Container{{Name: "b", Resources: *in.DeepCopy()}},
			}}
			defaults.Pod(p)
			for _, got := range []v1.ResourceRequirements{p.Spec.Containers[0].Resources, p.Spec.InitContainers[0].Resources} {
				if diff := cmp.Diff(text(t, want), text(t, got)); diff != "" {
					t.Errorf("resources (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestPodResources(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"none are made up": {
			spec: `containers: [{resources: {limits: {cpu: 1}}}]`,
			want: `null`,
		},
		"requests are the sum of the containers": {
			spec: `{resources: {limits: {cpu: 4}}, containers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 500m}}}]}`,
			want: `{limits: {cpu: 4}, requests: {cpu: 1500m}}`,
		},
		"requests are the limits where no container requests anything": {
			spec: `{resources: {limits: {cpu: 4, memory: 1Gi}}, containers: [{}]}`,
			want: `{limits: {cpu: 4, memory: 1Gi}, requests: {cpu: 4, memory: 1Gi}}`,
		},
		"the hungriest moment is an init container beside the sidecars before it": {
			spec: `
resources: {limits: {memory: 8Gi}}
initContainers:
- {restartPolicy: Always, resources: {requests: {memory: 1Gi}}}
- {resources: {requests: {memory: 3Gi}}}
- {restartPolicy: Always, resources: {requests: {memory: 512Mi}}}
containers: [{resources: {requests: {memory: 1Gi}}}]`,
			want: `{limits: {memory: 8Gi}, requests: {memory: 4Gi}}`,
		},
		"sidecars count with the containers": {
			spec: `
resources: {limits: {memory: 8Gi}}
initContainers: [{restartPolicy: Always, resources: {requests: {memory: 1Gi}}}]
containers: [{resources: {requests: {memory: 2Gi}}}]`,
			want: `{limits: {memory: 8Gi}, requests: {memory: 3Gi}}`,
		},
		"the limit is that of the containers where each has one": {
			spec: `{resources: {requests: {cpu: 1}}, containers: [{resources: {limits: {cpu: 1}}}, {resources: {limits: {cpu: 2}}}]}`,
			want: `{limits: {cpu: 3}, requests: {cpu: 1}}`,
		},
		"there is no limit where one container has none": {
			spec: `{resources: {requests: {cpu: 1}}, containers: [{resources: {limits: {cpu: 1}}}, {}]}`,
			want: `{requests: {cpu: 1}}`,
		},
		"the limit is not below the request": {
			spec: `{resources: {requests: {cpu: 5}}, containers: [{resources: {limits: {cpu: 1}}}]}`,
			want: `{limits: {cpu: 5}, requests: {cpu: 5}}`,
		},
		"huge pages of the containers are limited and requested": {
			spec: `{resources: {limits: {cpu: 1}}, containers: [{resources: {limits: {hugepages-2Mi: 4Mi, cpu: 1}}}]}`,
			want: `{limits: {cpu: 1, hugepages-2Mi: 4Mi}, requests: {cpu: 1, hugepages-2Mi: 4Mi}}`,
		},
		"resources that a pod cannot have stay with the containers": {
			spec: `{resources: {limits: {cpu: 1}}, containers: [{resources: {limits: {cpu: 1, example.com/gpu: 1, ephemeral-storage: 1Gi}}}]}`,
			want: `{limits: {cpu: 1}, requests: {cpu: 1}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var p v1.Pod
			var want *v1.ResourceRequirements
			unmarshal(t, test.spec, &p.Spec)
			unmarshal(t, test.want, &want)
			defaults.Pod(&p)
			if diff := cmp.Diff(text(t, want), text(t, p.Spec.Resources)); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	bytes, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes)
}
