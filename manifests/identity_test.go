package manifests_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
	v1 "k8s.io/api/core/v1"
)

// one parses a text that holds one good pod.
func one(t *testing.T, text string, source pod.SourceKind) *pod.Pod {
	t.Helper()
	r := manifests.Parse([]byte(text), pod.Origin{Source: pod.SourceID{Kind: source}, Name: "a"}, manifests.Options{NodeName: "Node1"})
	if len(r.Documents) != 1 || r.Documents[0].Pod == nil {
		t.Fatalf("want one good pod: %v", report(r))
	}
	return r.Documents[0].Pod
}

func TestIdentity(t *testing.T) {
	p := one(t, simple("web"), pod.FileSource)
	o := p.Object
	if o.Name != "web-node1" || o.Namespace != "default" || o.Spec.NodeName != "node1" || p.Key().String() != "default/web-node1" {
		t.Errorf("got %s/%s on %s, key %s", o.Namespace, o.Name, o.Spec.NodeName, p.Key())
	}
	if o.UID != "" {
		t.Errorf("a UID came from nowhere: %s", o.UID)
	}
	if len(o.Annotations) != 2 || o.Annotations["kubernetes.io/config.source"] != "file" ||
		!regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(o.Annotations["kubernetes.io/config.hash"]) {
		t.Errorf("annotations: %v", o.Annotations)
	}
	want := []v1.Toleration{{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}}
	if diff := cmp.Diff(want, o.Spec.Tolerations); diff != "" {
		t.Errorf("tolerations of a file's pod: -want +got:\n%s", diff)
	}
	web := one(t, simple("web"), pod.HTTPSource)
	if len(web.Object.Spec.Tolerations) != 0 || web.Object.Annotations["kubernetes.io/config.source"] != "http" {
		t.Errorf("a URL's pod: %v, %v", web.Object.Spec.Tolerations, web.Object.Annotations)
	}
	if web.Hash != p.Hash {
		t.Error("where a pod comes from makes another generation of it")
	}
}

func TestServerFieldsAreDropped(t *testing.T) {
	text := strings.Replace(simple("web"), "name: web", `name: web, uid: abc, resourceVersion: "5", generation: 3, finalizers: [a/b],
  creationTimestamp: 2024-01-01T00:00:00Z, deletionTimestamp: 2024-01-01T00:00:00Z, annotations: {kubernetes.io/config.mirror: x, a: b}`, 1) + "status: {phase: Failed}\n"
	o := one(t, text, pod.FileSource).Object
	if o.ResourceVersion != "" || o.Generation != 0 || o.Finalizers != nil || !o.CreationTimestamp.IsZero() || o.DeletionTimestamp != nil || o.Status.Phase != "" {
		t.Errorf("something of an API server is left: %+v %+v", o.ObjectMeta, o.Status)
	}
	if o.UID != "abc" || o.Annotations["a"] != "b" {
		t.Errorf("something else is lost: %+v", o.ObjectMeta)
	}
	if _, ok := o.Annotations["kubernetes.io/config.mirror"]; ok {
		t.Error("it looks like a mirror pod")
	}
}

// TestSavedDocumentsReadBack: the last good version of a pod is kept as the JSON
// of its document, and a list of them gives the same pods again (law 1).
func TestSavedDocumentsReadBack(t *testing.T) {
	text := "x-a: &a {image: busybox, name: app}\n" + strings.Replace(simple("web"), "name: web", "name: web, uid: abc, labels: {a: b}", 1) +
		"bogus: 1\n---\napiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: two, namespace: other}\n  spec: {containers: [{name: c, image: nginx, ports: [{containerPort: 80, hostPort: 8080}]}]}\n"
	first := parse(text)
	var saved []string
	for _, d := range first.Documents {
		saved = append(saved, string(d.JSON))
	}
	second := parse(`{"apiVersion":"v1","kind":"List","items":[` + strings.Join(saved, ",") + `]}`)
	if len(first.Documents) != 2 || len(second.Documents) != 2 {
		t.Fatalf("want two documents: %v, %v", report(first), report(second))
	}
	for i, d := range second.Documents {
		want := first.Documents[i]
		want.Line, d.Line = 0, 0
		want.Pod.Line, d.Pod.Line = 0, 0
		if diff := cmp.Diff(want, d); diff != "" {
			t.Errorf("-first +read back:\n%s", diff)
		}
	}
	if want := `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"},"name":"web","uid":"abc"},"spec":{"containers":[{"command":["sleep","3600"],"image":"busybox:stable","name":"app"}]}}`; saved[0] != want {
		t.Errorf("saved %s\nwant  %s", saved[0], want)
	}
}

func TestConfigHashChangesWithEveryEdit(t *testing.T) {
	hash := func(text string) string {
		return one(t, text, pod.FileSource).Object.Annotations[manifests.HashAnnotation]
	}
	base := simple("web")
	for what, edit := range map[string]string{
		"a label":       strings.Replace(base, "name: web", "name: web, labels: {a: b}", 1),
		"an annotation": strings.Replace(base, "name: web", "name: web, annotations: {a: b}", 1),
		"an image":      strings.Replace(base, "stable", "1", 1),
		"a toleration":  strings.Replace(base, "spec: {", "spec: {tolerations: [{operator: Exists}], ", 1),
	} {
		if hash(edit) == hash(base) {
			t.Errorf("%s does not change it", what)
		}
	}
	if hash("# a comment\n"+base) != hash(base) {
		t.Error("a comment changes it")
	}
}

func TestMintUID(t *testing.T) {
	key, hash := pod.Key{Namespace: "default", Name: "web-node1"}, pod.Hash{Version: 1, Digest: "abc"}
	base := manifests.MintUID("/var/lib/podkeeper", "node1", key, hash)
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(string(base)) {
		t.Errorf("%s is no UUID of version 5", base)
	}
	for what, other := range map[string]string{
		"the root dir":  string(manifests.MintUID("/var/lib/other", "node1", key, hash)),
		"the node name": string(manifests.MintUID("/var/lib/podkeeper", "node2", key, hash)),
		"the key":       string(manifests.MintUID("/var/lib/podkeeper", "node1", pod.Key{Namespace: "default", Name: "x"}, hash)),
		"the pod hash":  string(manifests.MintUID("/var/lib/podkeeper", "node1", key, pod.Hash{Version: 1, Digest: "abd"})),
	} {
		if other == string(base) {
			t.Errorf("%s plays no part", what)
		}
	}
	if got := manifests.MintUID("/var/lib/podkeeper", "node1", key, hash); got != base {
		t.Error("it is not the same each time")
	}
}

func TestQOSClass(t *testing.T) {
	for resources, want := range map[string]v1.PodQOSClass{
		"{}":                              v1.PodQOSBestEffort,
		"{requests: {cpu: 0}}":            v1.PodQOSBestEffort,
		"{requests: {cpu: 1}}":            v1.PodQOSBurstable,
		"{limits: {cpu: 1}}":              v1.PodQOSBurstable,
		"{limits: {cpu: 1, memory: 1Gi}}": v1.PodQOSGuaranteed,
		"{limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1000m, memory: 1024Mi}}": v1.PodQOSGuaranteed,
		"{limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}":                  v1.PodQOSBurstable,
	} {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: app, image: a, resources: %s}%s]}\n"
		if got := manifests.QOSClass(one(t, fmt.Sprintf(text, resources, ""), pod.FileSource).Object); got != want {
			t.Errorf("%s: got %s, want %s", resources, got, want)
		}
		whole := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {resources: %s, containers: [{name: app, image: a}, {name: b, image: b}]}\n", resources)
		if got := manifests.QOSClass(one(t, whole, pod.FileSource).Object); got != want {
			t.Errorf("%s for the pod as a whole: got %s, want %s", resources, got, want)
		}
		if want == v1.PodQOSGuaranteed {
			got := manifests.QOSClass(one(t, fmt.Sprintf(text, resources, ", {name: b, image: b}"), pod.FileSource).Object)
			if got != v1.PodQOSBurstable {
				t.Errorf("%s beside a container without: got %s", resources, got)
			}
		}
	}
}

// C117: the two classes that every cluster has stand for their priority.
func TestPriority(t *testing.T) {
	for spec, want := range map[string]int32{
		"": 0, "priority: 7": 7, "priorityClassName: system-node-critical": 2_000_001_000, "priorityClassName: system-cluster-critical": 2_000_000_000,
		"priorityClassName: mine": 0, "{priorityClassName: mine, priority: 9}": 9,
	} {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {<<: %s, containers: [{name: app, image: a}]}\n"
		if !strings.HasPrefix(spec, "{") {
			spec = "{" + spec + "}"
		}
		p := one(t, fmt.Sprintf(text, spec), pod.FileSource).Object
		if got := pod.Priority(p); got != want || want != 0 && *p.Spec.Priority != want {
			t.Errorf("%s: got %d, and %v in the pod; want %d", spec, got, p.Spec.Priority, want)
		}
	}
}
