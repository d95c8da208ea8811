package decode_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/decode"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
)

func fill(t *testing.T, text string) (*v1.Pod, string, []string) {
	t.Helper()
	docs := decode.Documents([]byte(text))
	if len(docs) != 1 || docs[0].Root == nil {
		t.Fatalf("want one document: %v", show(docs))
	}
	var pod v1.Pod
	text2, findings := decode.Fill(docs[0].Root, &pod)
	var out []string
	for _, f := range findings {
		out = append(out, fmt.Sprintf("%d:%d %s: %s", f.Line, f.Column, f.Path, f.Message))
	}
	return &pod, string(text2), out
}

// TestEveryFindingIsReported also holds C104: what the values are is not said.
func TestEveryFindingIsReported(t *testing.T) {
	pod, text, got := fill(t, `x-common: {anything: goes}
y-common: 1
kind: Pod
metadata:
  name: web
  restartPolicy: Never
  labels: {a: 1, b: yes, c: d}
  labels: {a: 1, c: d}
spec:
  hostNetwork: "true"
  terminationGracePeriodSeconds: 1.5
  activeDeadlineSeconds: 99999999999999999999
  containers:
  - Image: nginx
    imagePullPolciy: Never
    name: [a]
    env:
    - {name: A, value: 4711}
    - {name: B, name: B}
    - hush-4711
    -
    ports: {containerPort: 80}
    resources:
      limits: {cpu: one, memory: 64Mi, memory: 1Gi, disk: {}}
    livenessProbe: {httpGet: {port: 1.5}}
  - name: b
    ports: [{containerPort: 3000000000}]
  volumes: hush-4711
`)
	want := []string{
		"2:1 y-common: unknown field",
		"8:3 metadata.labels: duplicate key, also on line 7; the last one counts",
		"6:3 metadata.restartPolicy: unknown field",
		"8:15 metadata.labels[a]: must be a string (write it in quotes), not a number",
		"10:16 spec.hostNetwork: must be a boolean, not a string",
		"11:34 spec.terminationGracePeriodSeconds: must be a whole number of 64 bits",
		"12:26 spec.activeDeadlineSeconds: must be a whole number of 64 bits",
		"14:5 spec.containers[0].Image: unknown field; did you mean image?",
		"15:5 spec.containers[0].imagePullPolciy: unknown field; did you mean imagePullPolicy?",
		"16:11 spec.containers[0].name: must be a string, not a list",
		"18:24 spec.containers[0].env[0].value: must be a string (write it in quotes), not a number",
		"19:17 spec.containers[0].env[1].name: duplicate key, also on line 19; the last one counts",
		"20:7 spec.containers[0].env[2]: must be a mapping, not a string",
		"22:12 spec.containers[0].ports: must be a list, not a mapping",
		"24:40 spec.containers[0].resources.limits[memory]: duplicate key, also on line 24; the last one counts",
		"24:21 spec.containers[0].resources.limits[cpu]: must be a quantity, such as 250m or 64Mi",
		"24:59 spec.containers[0].resources.limits[disk]: must be a quantity, such as 250m or 64Mi",
		"25:37 spec.containers[0].livenessProbe.httpGet.port: must be a whole number of 32 bits or a string",
		"27:29 spec.containers[1].ports[0].containerPort: must be a whole number of 32 bits",
		"28:12 spec.volumes: must be a list, not a string",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if strings.Contains(strings.Join(got, "\n"), "4711") {
		t.Error("a value is quoted")
	}
	if pod.Name != "web" || pod.Labels["c"] != "d" || len(pod.Spec.Containers) != 2 || len(pod.Spec.Containers[0].Env) != 4 {
		t.Errorf("what fits is not filled in: %s", text)
	}
}

// TestScalarsInAStringField is the table of C009.
func TestScalarsInAStringField(t *testing.T) {
	for _, v := range []string{"8080", "1.20", "1e3", "0755", "0o17", "0x1F", "1_000", "true", "yes", "no", "on", "off", "y", "n"} {
		_, _, got := fill(t, "spec:\n  containers:\n  - env:\n    - name: A\n      value: "+v+"\n")
		if len(got) != 1 || !strings.HasPrefix(got[0], "5:14 spec.containers[0].env[0].value: must be a string (write it in quotes), not a ") {
			t.Errorf("%s: got %v", v, got)
		}
	}
	for v, want := range map[string]string{
		`"8080"`: "8080", `"true"`: "true", "!!str 8080": "8080", "2024-01-01": "2024-01-01", "12:30:45": "12:30:45",
		"NaN": "NaN", "=": "=", "null": "", "~": "", "": "",
	} {
		pod, _, got := fill(t, "spec:\n  containers:\n  - env:\n    - name: A\n      value: "+v+"\n")
		if len(got) != 0 || pod.Spec.Containers[0].Env[0].Value != want {
			t.Errorf("%s: got %v, findings %v", v, pod.Spec.Containers[0].Env, got)
		}
	}
}

func TestTooManyValues(t *testing.T) {
	_, _, got := fill(t, "spec:\n  containers: ["+strings.Repeat("{}, ", 100_000)+"]\n")
	want := []string{"1:1 : holds more than the limit of 100000 values"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzFill holds our reading of objects against the decoder of the Kubernetes
// API machinery: the same objects fit, and they come out the same.
func FuzzFill(f *testing.F) {
	for _, s := range []string{
		`{"metadata":{"name":"a","creationTimestamp":null},"spec":{"containers":[{"name":"b","env":[null,{"value":"x"}],"resources":{"limits":{"cpu":1}}}]}}`,
		`{"spec":{"terminationGracePeriodSeconds":1.0,"hostNetwork":true,"volumes":[{"emptyDir":{"sizeLimit":"1Gi"}}],"nodeSelector":{"a":null}}}`,
		`{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":"http"}},"ports":[{"hostPort":-1}]}],"tolerations":[]}}`,
		`{"metadata":{"managedFields":[{"time":"2020-01-01T00:00:00Z","fieldsV1":{"a":1}}]},"Spec":{}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		docs := decode.Documents([]byte(text))
		if len(docs) != 1 || docs[0].Root == nil || len(docs[0].Errors) > 0 || docs[0].Root.Kind != decode.Object {
			return
		}
		var ours, theirs v1.Pod
		_, findings := decode.Fill(docs[0].Root, &ours)
		misfit := false
		for _, f := range findings {
			misfit = misfit || f.Flaw == decode.Mismatch
		}
		err := json.UnmarshalCaseSensitivePreserveInts(docs[0].Root.JSON(), &theirs)
		if misfit != (err != nil) {
			t.Fatalf("%q: ours: %v, theirs: %v", text, findings, err)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Fatalf("%q: -theirs +ours:\n%s", text, diff)
		}
	})
}
