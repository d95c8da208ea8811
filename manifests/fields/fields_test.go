package fields_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/fields"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the generated files")

// TestEveryLeafHasOneVerdictAndOneClass holds law 8 and section 3 of the design:
// a field that Kubernetes adds fails here until the table says what becomes of it.
func TestEveryLeafHasOneVerdictAndOneClass(t *testing.T) {
	for _, leaf := range fields.Leaves() {
		r := fields.Of(leaf)
		if r.Verdict == "" || r.Class == "" {
			t.Errorf("%s: verdict %q, class %q", leaf, r.Verdict, r.Class)
		}
		if r.Verdict != fields.Acted && r.Reason == "" {
			t.Errorf("%s is %s without a reason", leaf, r.Verdict)
		}
	}
}

// TestNoRuleIsDead: each rule decides on something, and none stands twice.
func TestNoRuleIsDead(t *testing.T) {
	leaves := fields.Leaves()
	table := fields.Table()
	for i, r := range table {
		if i > 0 && r.Path == table[i-1].Path {
			t.Errorf("%s stands twice", r.Path)
		}
		if !slices.ContainsFunc(leaves, func(leaf string) bool {
			rest, ok := strings.CutPrefix(leaf, r.Path)
			return ok && (rest == "" || strings.ContainsAny(rest[:1], ".[{"))
		}) {
			t.Errorf("%s is no field of a pod", r.Path)
		}
	}
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		spec string
		want []string
	}{
		"what is acted on says nothing": {`
metadata: {name: a, labels: {a: b}, annotations: {c: d}, uid: x}
spec:
  hostNetwork: true
  restartPolicy: Never
  dnsPolicy: Default
  volumes: [{name: a, emptyDir: {}}, {name: b, hostPath: {path: /x, type: File}}, {name: c, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]
  containers: [{name: a, image: b, env: [{name: a, value: b}], ports: [{hostPort: 1}], resources: {limits: {cpu: 1, memory: 1Mi}}, volumeMounts: [{name: a, mountPath: /a, readOnly: true}]}]
`, nil},
		"what asks for nothing says nothing": {`
spec:
  securityContext: {}
  hostUsers: true
  shareProcessNamespace: false
  automountServiceAccountToken: false
  serviceAccountName: default
  dnsConfig: {}
  imagePullSecrets: []
  os: {name: linux}
  containers: [{securityContext: {privileged: false, allowPrivilegeEscalation: true}, volumeMounts: [{mountPropagation: None}], resources: {claims: []}, envFrom: []}]
`, nil},
		"what has no effect is named once, with its reason": {`
metadata: {resourceVersion: "1", ownerReferences: [{name: a}, {name: b}], annotations: {kubernetes.io/config.hash: x}}
spec:
  schedulerName: mine
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}, {key: b}]}]}}}
  tolerations: [{operator: Exists}]
  priority: 0
  dnsPolicy: ClusterFirst
  volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}]
  containers: [{terminationMessagePath: /x, resources: {requests: {ephemeral-storage: 1Gi}}}]
status: {phase: Running, hostIP: 1.2.3.4}
`, []string{
			"accepted metadata.annotations[kubernetes.io/config.hash] has no effect here: it is the agent's to set",
			"accepted metadata.ownerReferences has no effect here: it is an API server's to set",
			"accepted metadata.resourceVersion has no effect here: it is an API server's to set",
			"accepted spec.affinity has no effect here: there is no scheduler, and one node",
			"accepted spec.containers[0].resources.requests[ephemeral-storage] has no effect here: the use of disk is not limited by this version",
			"accepted spec.containers[0].terminationMessagePath has no effect here: termination messages are not read by this version",
			"accepted spec.dnsPolicy has no effect here: there is no cluster DNS, so it is that of the node, as with Default",
			"accepted spec.priority has no effect here: nothing is evicted by this version",
			"accepted spec.schedulerName has no effect here: there is no scheduler, and one node",
			"accepted spec.tolerations has no effect here: the node has no taints",
			"accepted spec.volumes[0].emptyDir.sizeLimit has no effect here: only that of medium Memory is enforced by this version",
			"accepted status has no effect here: it is found out, not given",
		}},
		"what asks for something that is not done is refused": {`
spec:
  dnsPolicy: None
  hostUsers: false
  securityContext: {runAsUser: 0, fsGroup: 5}
  volumes: [{name: a, secret: {}}, {name: b, emptyDir: {medium: HugePages}}]
  initContainers: [{name: a, image: b}]
  containers:
  - securityContext: {privileged: true, allowPrivilegeEscalation: false, capabilities: {add: [A, B]}}
    env: [{name: a, valueFrom: {fieldRef: {fieldPath: x}}}]
    envFrom: [{}]
    volumeMounts: [{subPath: a}]
    lifecycle: {preStop: {sleep: {seconds: 1}}}
    livenessProbe: {exec: {command: [a, b]}, periodSeconds: 3}
    resources: {limits: {nvidia.com/gpu: 1}}
`, []string{
			"refused spec.containers[0].envFrom not supported by this version",
			"refused spec.containers[0].env[0].valueFrom not supported by this version",
			"refused spec.containers[0].lifecycle.preStop not supported by this version",
			"refused spec.containers[0].livenessProbe not supported by this version",
			"refused spec.containers[0].resources.limits[nvidia.com/gpu] only cpu and memory are supported by this version",
			"refused spec.containers[0].securityContext.allowPrivilegeEscalation not supported by this version",
			"refused spec.containers[0].securityContext.capabilities not supported by this version",
			"refused spec.containers[0].securityContext.privileged not supported by this version",
			"refused spec.containers[0].volumeMounts[0].subPath not supported by this version",
			"refused spec.dnsPolicy not supported by this version",
			"refused spec.hostUsers not supported by this version",
			"refused spec.initContainers not supported by this version",
			"refused spec.securityContext.fsGroup not supported by this version",
			"refused spec.securityContext.runAsUser not supported by this version",
			"refused spec.volumes[0].secret not supported by this version",
			"refused spec.volumes[1].emptyDir.medium not supported by this version",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var pod v1.Pod
			if err := yaml.UnmarshalStrict([]byte(tt.spec), &pod); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range fields.Check(&pod) {
				got = append(got, fmt.Sprintf("%s %s %s", f.Verdict, f.Path, f.Reason))
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestDoc holds docs/fields.md to the table.
func TestDoc(t *testing.T) {
	const path = "../../docs/fields.md"
	want := fields.Doc()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/fields.md is out of date; run go generate ./manifests/fields: -want +got:\n%s", diff)
	}
}
