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

// TestCheck holds law 8: what is set and not acted on is named, with its reason.
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
  priorityClassName: system-node-critical
  nodeSelector: {a: b}
  os: {name: windows}
  overhead: {cpu: 1}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
  resources: {limits: {cpu: 1, memory: 1Mi}, requests: {cpu: 1}}
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
  affinity:
    nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}
    podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}, {topologyKey: b}]}
  tolerations: [{operator: Exists}]
  priority: 0
  priorityClassName: mine
  volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}]
  resources: {limits: {hugepages-1Gi: 1Gi}}
  containers: [{terminationMessagePath: /x, resources: {limits: {ephemeral-storage: 1Gi, hugepages-2Mi: 2Mi}}}]
status: {phase: Running, hostIP: 1.2.3.4}
`, []string{
			"accepted metadata.annotations[kubernetes.io/config.hash] has no effect here: it is the agent's to set",
			"accepted metadata.ownerReferences has no effect here: it is an API server's to set",
			"accepted metadata.resourceVersion has no effect here: it is an API server's to set",
			"accepted spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution has no effect here: there is no scheduler, and one node",
			"accepted spec.affinity.podAffinity has no effect here: there is no scheduler, and one node",
			"accepted spec.schedulerName has no effect here: there is no scheduler, and one node",
			"accepted spec.tolerations has no effect here: the node has no taints",
			"accepted status has no effect here: it is found out, not given",
		}},
		"what has no effect and may be missed is a warning": {`
spec: {serviceAccountName: robot, automountServiceAccountToken: true, priorityClassName: mine}
`, []string{
			"accepted spec.automountServiceAccountToken has no effect here: no token is mounted, since there is no API server that gives one (warning)",
			"accepted spec.priorityClassName has no effect here: priority classes are an API server's to keep, so without spec.priority it is 0 (warning)",
			"accepted spec.serviceAccountName has no effect here: no token is mounted, since there is no API server that gives one (warning)",
		}},
		"a service account whose token nobody wants is no warning": {`
spec: {serviceAccountName: robot, serviceAccount: robot, automountServiceAccountToken: false}
`, []string{
			"accepted spec.serviceAccount has no effect here: no token is mounted, since there is no API server that gives one",
			"accepted spec.serviceAccountName has no effect here: no token is mounted, since there is no API server that gives one",
		}},
		"groups of the image that a runAsGroup takes away are named": {`
spec:
  securityContext: {supplementalGroupsPolicy: Merge}
  initContainers: [{name: a, image: b, securityContext: {runAsGroup: 1}}]
`, []string{
			"accepted spec.securityContext.supplementalGroupsPolicy has no effect here on a container with a runAsGroup: the engine then adds none of the groups that the image has the user in",
		}},
		"nobody asks for groups of the image": {`
spec: {securityContext: {supplementalGroupsPolicy: Strict, runAsGroup: 1}}
`, nil},
		"what asks for something that is not done is refused": {`
spec:
  readinessGates: [{conditionType: a}, {conditionType: b}]
  volumes: [{name: a, gitRepo: {repository: x}}, {name: b, csi: {}}]
  ephemeralContainers: [{name: a, image: b}]
  containers:
  - volumeDevices: [{name: a, devicePath: b}]
    resources: {limits: {nvidia.com/gpu: 1, example.com/a: 2}, claims: [{name: a}]}
`, []string{
			"refused spec.containers[0].resources.claims ResourceClaims are allocated by a scheduler, and there is none; a device can be had by a hostPath below /dev",
			"refused spec.containers[0].resources.limits[example.com/a] there are no device plugins; a device can be had by a hostPath below /dev",
			"refused spec.containers[0].resources.limits[nvidia.com/gpu] there are no device plugins; a device can be had by a hostPath below /dev",
			"refused spec.containers[0].volumeDevices claims are folders here; a block device can be had by a hostPath of type BlockDevice",
			"refused spec.ephemeralContainers they are for debugging a pod that runs, and no manifest can have them",
			"refused spec.readinessGates nobody here sets such a condition, so the pod would never be ready",
			"refused spec.volumes[0].gitRepo Kubernetes itself does it no more; clone in an init container, into an emptyDir",
			"refused spec.volumes[1].csi CSI drivers are found through an API server; mount it on the machine, and take a hostPath",
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
				text := fmt.Sprintf("%s %s %s", f.Verdict, f.Path, f.Reason)
				if f.Warn {
					text += " (warning)"
				}
				got = append(got, text)
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
