package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

var file = pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: "/m"}, Name: "/m/a.yaml"}

func parse(text string) manifests.Result {
	return manifests.Parse([]byte(text), file, manifests.Options{NodeName: "Node1"})
}

// report prints a result: a line for each document and for each problem but notes.
func report(r manifests.Result) []string {
	var out []string
	for _, d := range r.Documents {
		out = append(out, line(d))
	}
	for _, p := range r.Problems {
		if p.Severity != pod.Note {
			out = append(out, strings.TrimPrefix(p.String(), "/m/a.yaml:"))
		}
	}
	return out
}

// line tells of a document: where, what, and whether it is of use.
func line(d manifests.Document) string {
	state, key := "broken", d.Key.String()
	if !d.Broken() {
		state = "good"
	}
	if d.ObjectKey != (pod.ObjectKey{}) {
		key = d.ObjectKey.Namespace + "/" + d.ObjectKey.Name
	}
	return fmt.Sprintf("%d: %s %s %s", d.Line, d.Kind, key, state)
}

const spec = "spec: {containers: [{name: app, image: busybox:stable, command: [sleep, \"3600\"]}]}\n"

func simple(name string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\n" + spec
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"a pod": {simple("web"), []string{"1: Pod default/web-node1 good"}},
		"C008: anchors and merges": {`x-common: &common
  image: busybox:stable
  env:
  - {name: TZ, value: "UTC"}
apiVersion: v1
kind: Pod
metadata: {name: anchors}
spec:
  containers:
  - <<: *common
    name: a
    command: ["sleep", "3600"]
  - <<: *common
    name: b
    image: registry.local/app:1
`, []string{"1: Pod default/anchors-node1 good"}},
		"C008: an undefined anchor": {"apiVersion: v1\nkind: Pod\nmetadata: {name: *nope}\n", []string{
			"3:18: error: is not valid YAML: an alias (*) names no anchor (&) that comes before it",
		}},
		"C009: a number in a string field": {`apiVersion: v1
kind: Pod
metadata: {name: envscalar}
spec:
  containers:
  - name: app
    image: busybox:stable
    env:
    - name: PORT
      value: 8080
`, []string{
			"1: Pod default/envscalar-node1 broken",
			"10:14: error: spec.containers[0].env[0].value: must be a string (write it in quotes), not a number",
		}},
		"C014, law 8: misplaced and misspelt fields": {`apiVersion: v1
kind: Pod
metadata:
  name: misplaced
  restartPolicy: Never
spec:
  containers:
  - name: app
    image: busybox:stable
    imagePullPolciy: Never
`, []string{
			"1: Pod default/misplaced-node1 good",
			"5:3: warning: metadata.restartPolicy: unknown field",
			"10:5: warning: spec.containers[0].imagePullPolciy: unknown field; did you mean imagePullPolicy?",
		}},
		"C014: field names are case-sensitive": {`apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: app
    Image: nginx
`, []string{
			"1: Pod default/a-node1 broken",
			"6:5: error: spec.containers[0].image: Required value: must not be empty",
			"7:5: warning: spec.containers[0].Image: unknown field; did you mean image?",
		}},
		"C017: a template": {"apiVersion: v1\nkind: Pod\nmetadata: {name: tmpl}\nspec:\n  containers:\n  - name: app\n    image: {{ image }}\n", []string{
			"1: Pod default/tmpl-node1 broken",
			"7:12: error: spec.containers[0].image: must be a string, not a mapping",
			"7:13: error: a mapping or list cannot be a key; is this a template ({{ … }}) that was never rendered?",
		}},
		"C017: a shell variable is taken literally": {strings.Replace(simple("tmpl"), "busybox:stable", "'${REGISTRY}/app:${TAG}'", 1), []string{"1: Pod default/tmpl-node1 good"}},
		"C021: a page": {"<!DOCTYPE html><html>502</html>\n", []string{"1:1: error: is an HTML or XML page, not a manifest"}},
		"C026: repeated names in env are accepted": {`apiVersion: v1
kind: Pod
metadata: {name: dup}
spec:
  containers:
  - {name: app, image: a, env: [{name: DUP, value: "1"}, {name: DUP, value: "2"}]}
`, []string{"1: Pod default/dup-node1 good"}},
		"C031: the first of a name wins": {
			strings.Replace(simple("twin"), "name: twin", "name: twin, namespace: red", 1) + "---\n" + simple("twin") + "---\n" +
				strings.Replace(simple("twin"), "name: twin", "name: twin, namespace: default", 1),
			[]string{
				"1: Pod red/twin-node1 good",
				"6: Pod default/twin-node1 good",
				"13:18: warning: metadata.name: duplicate pod name: the pod on line 6 has it, so this one on line 11 is ignored",
			},
		},
		"C040: only comments": {"# apiVersion: v1\n", nil},
		"C040: zero bytes":    {"", []string{"1:1: error: is empty"}},
		"C128: an empty list": {`{"apiVersion":"v1","kind":"PodList","items":[]}`, nil},
		"C129: the items of a PodList need no kind, one without a name breaks nothing else": {`apiVersion: v1
kind: PodList
items:
- metadata: {name: p}
  spec: {containers: [{name: c, image: nginx}]}
- metadata: {name: ""}
  spec: {containers: [{name: c, image: nginx}]}
- metadata: {name: p}
  spec: {containers: [{name: c, image: nginx}]}
`, []string{
			"4: Pod default/p-node1 good",
			"6: Pod / broken",
			"6:20: error: metadata.name: Required value: a pod of a manifest has a name",
			"8:20: warning: metadata.name: duplicate pod name: the pod on line 4 has it, so this one on line 8 is ignored",
		}},
		"C129: the items of a List need apiVersion and kind": {"apiVersion: v1\nkind: List\nitems:\n- metadata: {name: p}\n" +
			"- {apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {containers: [{name: c, image: nginx}]}}\n", []string{
			"4:  default/p-node1 broken", "5: Pod default/q-node1 good",
			"4:3: error: kind: apiVersion and kind are missing: this is no Kubernetes object",
		}},
		"a list of something else": {"apiVersion: v1\nkind: List\nitems: {a: b}\n", []string{"3:1: error: items: must be a list, not a mapping"}},
		"kinds that come later": {"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {password: hush}\n---\n" + simple("web"), []string{
			"1: Service / broken", "6: Pod default/web-node1 good",
			"2:7: error: kind: kind Service is not supported yet by this version",
		}},
		"a fixed uid": {strings.Replace(simple("web"), "name: web", "name: web, uid: 6f1c2d3e", 1), []string{"1: Pod default/web-node1 good"}},
		"a uid that is none": {strings.Replace(simple("web"), "name: web", "name: web, uid: ../x", 1), []string{
			"1: Pod default/web-node1 broken",
			"3:28: error: metadata.uid: Invalid value: \"../x\": must begin with a letter or digit, hold only letters, digits and -, and be no longer than 63 characters",
		}},
		"C045: a line that belongs to none": {strings.Replace(simple("typo"), "kind: Pod\n", "kind: Pod\n  bad\n", 1), []string{
			"1: Pod bad default/typo-node1 broken",
			"2:7: error: kind: no kind \"Pod bad\" is registered for apiVersion \"v1\"",
		}},
		"a list at the top": {"- a\n", []string{"1:1: error: must be a mapping with apiVersion, kind and metadata, not a list"}},
		"a refused field":   {strings.Replace(simple("web"), "spec: {", "spec: {readinessGates: [{conditionType: a}], ", 1), []string{"1: Pod default/web-node1 broken", "4:8: error: spec.readinessGates: nobody here sets such a condition, so the pod would never be ready"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, report(parse(tt.text))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestHeaders is the table of C013.
// C087, law 8: who asks for the cluster's resolver by name is told that there is none.
func TestClusterDNSNote(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		there bool
		want  int
	}{
		"asked for, and none is there": {"dnsPolicy: ClusterFirst, ", false, 1},
		"asked for, and there":         {"dnsPolicy: ClusterFirstWithHostNet, ", true, 0},
		"the default says nothing":     {"", false, 0},
	} {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + c.spec + "containers: [{name: c, image: i}]}\n"
		r := manifests.Parse([]byte(text), pod.Origin{Name: "a.yaml"}, manifests.Options{ClusterDNS: c.there})
		if len(r.Problems) != c.want || c.want > 0 && (r.Problems[0].Severity != pod.Note || r.Problems[0].Field != "spec.dnsPolicy") {
			t.Errorf("%s: %v", name, r.Problems)
		}
	}
}

func TestHeaders(t *testing.T) {
	for header, want := range map[string]string{
		"apiVersion: apps/v1\nkind: Pod":           `1:13: error: apiVersion: no kind "Pod" is registered for apiVersion "apps/v1"; a Pod has apiVersion v1`,
		"apiVersion: v1\nkind: pod":                `2:7: error: kind: no kind "pod" is registered for apiVersion "v1"; did you mean Pod?`,
		"apiVersion: v1beta3\nkind: Pod":           `1:13: error: apiVersion: no kind "Pod" is registered for apiVersion "v1beta3"; a Pod has apiVersion v1`,
		"apiVersion: V1\nkind: Pod":                `1:13: error: apiVersion: no kind "Pod" is registered for apiVersion "V1"; a Pod has apiVersion v1`,
		"apiVersion: v1\nkind: Deployment":         `1:13: error: apiVersion: no kind "Deployment" is registered for apiVersion "v1"; a Deployment has apiVersion apps/v1`,
		"kind: Pod":                                `1:1: error: apiVersion: apiVersion is missing (kind is "Pod")`,
		"apiVersion: v1":                           `1:1: error: kind: kind is missing (apiVersion is "v1")`,
		"x: y":                                     `1:1: error: kind: apiVersion and kind are missing: this is no Kubernetes object`,
		"apiVersion: apps/v1\nkind: List":          `1:13: error: apiVersion: no kind "List" is registered for apiVersion "apps/v1"; a List has apiVersion v1`,
		"apiVersion: networking/v1\nkind: Ingress": `2:7: error: kind: no kind "Ingress" is registered for apiVersion "networking/v1"`,
	} {
		r := parse(header + "\nmetadata: {name: hdr}\n" + spec)
		found := false
		for _, p := range r.Problems {
			found = found || p.String() == "/m/a.yaml:"+want
		}
		if !found {
			t.Errorf("%q: want %s, got %v", header, want, r.Problems)
		}
		for _, d := range r.Documents {
			if d.Pod != nil {
				t.Errorf("%q: runs", header)
			}
			if (d.Kind == "Pod" || d.Kind == "pod" || d.Kind == "") && d.Key.Name != "hdr-node1" {
				t.Errorf("%q: its key is lost: %v", header, d.Key)
			}
		}
	}
}
