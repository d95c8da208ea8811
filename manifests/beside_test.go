package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// oneObject parses a text that holds one good object beside pods.
func oneObject(t *testing.T, text string) *pod.Object {
	t.Helper()
	r := parse(text)
	if len(r.Documents) != 1 || r.Documents[0].Object == nil {
		t.Fatalf("no object: %v", r.Problems)
	}
	return r.Documents[0].Object
}

func values(made func(string) pod.Value, pairs ...string) map[string]pod.Value {
	m := map[string]pod.Value{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = made(pairs[i+1])
	}
	return m
}

func TestObjects(t *testing.T) {
	key := func(kind pod.ObjectKind, namespace, name string) pod.ObjectKey {
		return pod.ObjectKey{Kind: kind, Namespace: namespace, Name: name}
	}
	tests := map[string]struct {
		text string
		want *pod.Object
	}{
		"a name gets no suffix, the namespace is default": {
			"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata: {k: v, e: \"\", m: }\n",
			&pod.Object{Key: key(pod.ConfigMap, "default", "a"), Data: values(pod.PlainValue, "k", "v", "e", "", "m", "")},
		},
		"C020: no data at all is valid": {
			"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: b}\ndata:\n",
			&pod.Object{Key: key(pod.ConfigMap, "b", "a")},
		},
		"bytes of a ConfigMap": {
			"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\nimmutable: true\nbinaryData: {k: AAEC/w==}\n",
			&pod.Object{Key: key(pod.ConfigMap, "default", "a"), Immutable: true, BinaryData: values(pod.PlainValue, "k", "\x00\x01\x02\xff")},
		},
		"C074: data are base64, stringData are as they stand, and win": {
			"kind: Secret\napiVersion: v1\nmetadata: {name: sec}\ndata: {a: YmFy, b: AAEC}\nstringData: {a: plain, c: YmFy}\n",
			&pod.Object{Key: key(pod.Secret, "default", "sec"), Type: v1.SecretTypeOpaque, Data: values(pod.SecretValue, "a", "plain", "b", "\x00\x01\x02", "c", "YmFy")},
		},
		"C020: base64 with line breaks": {
			"kind: Secret\napiVersion: v1\nmetadata: {name: sec}\ntype: example.com/x\ndata: {a: \"Ym\\nFy\\n\"}\nimmutable: false\n",
			&pod.Object{Key: key(pod.Secret, "default", "sec"), Type: "example.com/x", Data: values(pod.SecretValue, "a", "bar")},
		},
		"a claim": {
			"kind: PersistentVolumeClaim\napiVersion: v1\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
			&pod.Object{Key: key(pod.PersistentVolumeClaim, "default", "a"), Claim: &pod.Claim{
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Size: resource.MustParse("1Gi"), Reclaim: pod.Retain,
			}},
		},
		"a claim that goes with its manifest, of a size between bytes": {
			"kind: PersistentVolumeClaim\napiVersion: v1\nmetadata: {name: a, annotations: {podkeeper.io/reclaim: delete}}\n" +
				"spec: {accessModes: [ReadOnlyMany, ReadWriteMany], storageClassName: local, resources: {requests: {storage: 1500m}}}\n",
			&pod.Object{Key: key(pod.PersistentVolumeClaim, "default", "a"), Claim: &pod.Claim{
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadOnlyMany, v1.ReadWriteMany}, Size: resource.MustParse("2"), StorageClass: "local", Reclaim: pod.Delete,
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Origin, test.want.Line = file, 1
			if diff := cmp.Diff(test.want, oneObject(t, test.text)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// An object may hold 1 MiB: keys do not count, every value does.
func TestSizeOfObjects(t *testing.T) {
	const limit = 1 << 20
	full := strings.Repeat("x", limit-3)
	for name, test := range map[string]struct{ text, problem string }{
		"a full ConfigMap":     {fmt.Sprintf("kind: ConfigMap\ndata: {k: %s}\nbinaryData: {b: AAEC}\n", full), ""},
		"a ConfigMap too full": {fmt.Sprintf("kind: ConfigMap\ndata: {k: x%s}\nbinaryData: {b: AAEC}\n", full), "/m/a.yaml:1:1: error: Too long: may not be more than 1048576 bytes"},
		"a full Secret":        {fmt.Sprintf("kind: Secret\nstringData: {k: %s}\ndata: {b: AAEC}\n", full), ""},
		"a Secret too full":    {fmt.Sprintf("kind: Secret\nstringData: {k: %s, l: x}\ndata: {b: AAEC}\n", full), "/m/a.yaml:5:1: error: data: Too long: may not be more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			problem := ""
			for _, p := range parse("apiVersion: v1\nmetadata: {name: a}\n" + test.text).Problems {
				problem += p.String()
			}
			if problem != test.problem {
				t.Errorf("%q, want %q", problem, test.problem)
			}
		})
	}
}

// Where an object stands says nothing of what it is: beside pods, before or after
// them, in a list.
func TestObjectsBesidePods(t *testing.T) {
	const secret = `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}}`
	r := parse(secret + "\n---\n" + simple("web") + "---\napiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(secret, "Secret", "ConfigMap") + "\n- " + secret + "\n")
	want := []string{
		"1: Secret default/web good", "3: Pod default/web-node1 good", "11: ConfigMap default/web good",
		"12:63: warning: metadata.name: duplicate name: the Secret on line 1 has it, so this one on line 12 is ignored",
	}
	if diff := cmp.Diff(want, report(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if name := r.Documents[1].Name(); name != (pod.ObjectKey{Kind: manifests.PodKind, Namespace: "default", Name: "web-node1"}) {
		t.Errorf("the pod is called %s", name)
	}
}
