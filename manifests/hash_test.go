package manifests_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/manifests/fields"
	"github.com/podkeeper/podkeeper/pod"
	v1 "k8s.io/api/core/v1"
)

// below reports whether a field is one of a list or below one.
func below(path string, list []string) bool {
	return slices.ContainsFunc(list, func(f string) bool {
		rest, ok := strings.CutPrefix(path, f)
		return ok && (rest == "" || strings.ContainsAny(rest[:1], ".[{"))
	})
}

// TestHashListsAreTheClasses holds the lists of the hashes to the table of
// fields: each leaf of class pod or container is hashed as such, and no other.
func TestHashListsAreTheClasses(t *testing.T) {
	for _, leaf := range fields.Leaves() {
		class := fields.Of(leaf).Class
		if inContainer, ok := strings.CutPrefix(leaf, "spec.containers[]."); ok {
			if got, want := below(inContainer, manifests.ContainerFields()), class == fields.Container; got != want {
				t.Errorf("%s is of class %s, in a container's hash: %t", leaf, class, got)
			}
			// Ports with a hostPort are hashed apart.
			if class == fields.Pod && !strings.HasPrefix(inContainer, "ports[].host") {
				t.Errorf("%s is of class pod and in no hash", leaf)
			}
			continue
		}
		if strings.HasPrefix(leaf, "spec.initContainers[]") || strings.HasPrefix(leaf, "spec.ephemeralContainers[]") {
			if want := fields.Of("spec.containers[]" + leaf[strings.Index(leaf, "[]")+2:]).Class; want != class && want != "" {
				t.Errorf("%s is of class %s, in other containers it is %s", leaf, class, want)
			}
			continue
		}
		if got, want := below(leaf, manifests.PodFields()), class == fields.Pod; got != want {
			t.Errorf("%s is of class %s, in the pod's hash: %t", leaf, class, got)
		}
	}
}

const hashed = `apiVersion: v1
kind: Pod
metadata: {name: hashed, labels: {a: b}}
spec:
  <<: {hostPID: true, hostname: h}
  volumes: [{name: b, emptyDir: {medium: Memory, sizeLimit: 1Mi}}, {name: a, hostPath: {path: /x}}]
  containers:
  - name: app
    image: busybox
    command: [sh, -c, ""]
    env: [{name: A, value: "1"}, {name: B}]
    ports: [{containerPort: 80, hostPort: 8080}, {containerPort: 81}]
    volumeMounts: [{name: a, mountPath: /a, readOnly: true}, {name: b, mountPath: /b}]
    <<: {tty: true, resources: {limits: {cpu: 1000m}}}
  - {name: other, image: "nginx:1"}
`

// TestHashVersion fails when the lists or the encoding of the hashes change
// without a new version: every running container would be restarted for it, or
// compared in vain. A version's file is written once and never rewritten.
func TestHashVersion(t *testing.T) {
	p := one(t, hashed, pod.FileSource)
	var b bytes.Buffer
	fmt.Fprintf(&b, "pod %s\n", p.Hash)
	for _, name := range slices.Sorted(maps.Keys(p.Containers)) {
		fmt.Fprintf(&b, "container %s %s\n", name, p.Containers[name])
	}
	for _, f := range manifests.PodFields() {
		fmt.Fprintf(&b, "pod field %s\n", f)
	}
	for _, f := range manifests.ContainerFields() {
		fmt.Fprintf(&b, "container field %s\n", f)
	}
	fmt.Fprintf(&b, "uid %s\n", manifests.MintUID("/var/lib/podkeeper", "node1", p.Key(), p.Hash))
	path := fmt.Sprintf("testdata/hash/version-%d.golden", manifests.HashVersion)
	if _, err := os.Stat(path); *update && os.IsNotExist(err) {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the hashes changed; raise HashVersion: -want +got:\n%s", diff)
	}
}

// edit is one change of a manifest and what it must do.
type edit struct {
	from, to string
	want     manifests.Changes
}

func edits() map[string]edit {
	app := func(paths ...string) map[string][]string { return map[string][]string{"app": paths} }
	return map[string]edit{
		"nothing":                     {"", "", manifests.Changes{}},
		"an empty list for none":      {"hostPID: true", "hostPID: true, securityContext: {}, imagePullSecrets: [], nodeSelector: {}", manifests.Changes{}},
		"false for nothing":           {"hostPID: true", "hostPID: true, shareProcessNamespace: false, hostUsers: true", manifests.Changes{}},
		"the order of volumes":        {"volumes: [{name: b, emptyDir: {medium: Memory, sizeLimit: 1Mi}}, {name: a, hostPath: {path: /x}}]", "volumes: [{name: a, hostPath: {path: /x}}, {name: b, emptyDir: {medium: Memory, sizeLimit: 1024Ki}}]", manifests.Changes{}},
		"the order of mounts":         {"[{name: a, mountPath: /a, readOnly: true}, {name: b, mountPath: /b}]", "[{name: b, mountPath: /b}, {name: a, mountPath: /a, readOnly: true}]", manifests.Changes{}},
		"a quantity in other words":   {"cpu: 1000m", "cpu: 1", manifests.Changes{}},
		"a default written out":       {"tty: true", "tty: true, terminationMessagePath: /dev/termination-log", manifests.Changes{}},
		"a toleration":                {"hostPID: true", "hostPID: true, tolerations: [{operator: Exists}]", manifests.Changes{}},
		"the hostname":                {"hostname: h", "hostname: i", manifests.Changes{Pod: []string{"spec.hostname"}}},
		"a host namespace":            {"hostPID: true, ", "", manifests.Changes{Pod: []string{"spec.hostPID"}}},
		"a volume":                    {"path: /x", "path: /y", manifests.Changes{Pod: []string{"spec.volumes[a].hostPath.path"}}},
		"a host port":                 {"hostPort: 8080", "hostPort: 8081", manifests.Changes{Pod: []string{"hostPorts[8080/TCP]", "hostPorts[8081/TCP]"}}},
		"the port behind a host port": {"containerPort: 80,", "containerPort: 90,", manifests.Changes{Pod: []string{"hostPorts[8080/TCP]"}, Live: []string{"spec.containers[0].ports"}}},
		"a port without a host port":  {"containerPort: 81", "containerPort: 82", manifests.Changes{Live: []string{"spec.containers[0].ports"}}},
		"the QoS class":               {"limits: {cpu: 1000m}", "", manifests.Changes{Pod: []string{"qosClass"}, InPlace: app("spec.containers[0].resources.limits[cpu]", "spec.containers[0].resources.requests[cpu]")}},
		"an image":                    {"image: busybox", "image: busybox:1", manifests.Changes{Containers: app("spec.containers[0].image"), Live: []string{"spec.containers[0].imagePullPolicy"}}},
		"an argument":                 {`[sh, -c, ""]`, `[sh, -c, "", ""]`, manifests.Changes{Containers: app("spec.containers[0].command")}},
		"an env value":                {`value: "1"`, `value: "2"`, manifests.Changes{Containers: app("spec.containers[0].env")}},
		"a mount":                     {"readOnly: true", "readOnly: false", manifests.Changes{Containers: app("spec.containers[0].volumeMounts[/a].readOnly")}},
		"the terminal":                {"tty: true", "tty: false", manifests.Changes{Containers: app("spec.containers[0].tty")}},
		"resources":                   {"cpu: 1000m", "cpu: 2", manifests.Changes{InPlace: app("spec.containers[0].resources.limits[cpu]", "spec.containers[0].resources.requests[cpu]")}},
		"resources with a restart": {"resources: {limits: {cpu: 1000m", "resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}], resources: {limits: {cpu: 2", manifests.Changes{
			Containers: app("spec.containers[0].resources.limits[cpu]", "spec.containers[0].resources.requests[cpu]"),
			Live:       []string{"spec.containers[0].resizePolicy"},
		}},
		"a label":             {"labels: {a: b}", "labels: {a: c}", manifests.Changes{Live: []string{"metadata.labels[a]"}}},
		"an annotation":       {"labels: {a: b}", "labels: {a: b}, annotations: {a.b/c: d}", manifests.Changes{Live: []string{"metadata.annotations[a.b/c]"}}},
		"the restart policy":  {"hostPID: true", "hostPID: true, restartPolicy: Never", manifests.Changes{Live: []string{"spec.restartPolicy"}}},
		"the grace period":    {"hostPID: true", "hostPID: true, terminationGracePeriodSeconds: 1", manifests.Changes{Live: []string{"spec.terminationGracePeriodSeconds"}}},
		"the pull policy":     {"tty: true", "tty: true, imagePullPolicy: Never", manifests.Changes{Live: []string{"spec.containers[0].imagePullPolicy"}}},
		"a container more":    {"  - {name: other", "  - {name: third, image: busybox}\n  - {name: other", manifests.Changes{}},
		"a container less":    {"  - {name: other, image: \"nginx:1\"}\n", "", manifests.Changes{}},
		"the other container": {"nginx:1", "nginx:2", manifests.Changes{Containers: map[string][]string{"other": {"spec.containers[1].image"}}}},
	}
}

func edited(t *testing.T, e edit) *pod.Pod {
	t.Helper()
	if !strings.Contains(hashed, e.from) {
		t.Fatalf("the manifest has no %q", e.from)
	}
	return one(t, strings.Replace(hashed, e.from, e.to, 1), pod.FileSource)
}

// TestChanged holds section 3 of the design: what an edit restarts.
func TestChanged(t *testing.T) {
	before := one(t, hashed, pod.FileSource)
	for name, e := range edits() {
		t.Run(name, func(t *testing.T) {
			after := edited(t, e)
			copies := []*v1.Pod{before.Object.DeepCopy(), after.Object.DeepCopy()}
			got := manifests.Changed(before.Object, after.Object)
			if diff := cmp.Diff(e.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(copies, []*v1.Pod{before.Object, after.Object}); diff != "" {
				t.Errorf("Changed changed its arguments:\n%s", diff)
			}
			if got.Empty() != (len(e.want.Pod)+len(e.want.Containers)+len(e.want.InPlace)+len(e.want.Live) == 0) {
				t.Errorf("Empty() = %t", got.Empty())
			}
			// A hash only saves the comparison: it must say the same.
			if (before.Hash != after.Hash) != (len(got.Pod) > 0) {
				t.Errorf("pod hashes %s and %s, changes %v", before.Hash, after.Hash, got.Pod)
			}
			for container, hash := range after.Containers {
				old, both := before.Containers[container]
				restarts := slices.ContainsFunc(got.Containers[container], func(path string) bool { return !strings.Contains(path, ".resources.") })
				if both && (old != hash) != restarts {
					t.Errorf("container hashes %s and %s, changes %v", old, hash, got.Containers[container])
				}
			}
		})
	}
}

// TestANewDefaultRestartsNothing: the old version of a pod may come from an agent
// that knew fewer defaults.
func TestANewDefaultRestartsNothing(t *testing.T) {
	p := one(t, hashed, pod.FileSource).Object
	old := p.DeepCopy()
	old.Spec.DNSPolicy = ""
	old.Spec.Containers[0].TerminationMessagePath = ""
	old.Spec.Containers[0].Resources.Requests = nil
	if got := manifests.Changed(old, p); !got.Empty() {
		t.Errorf("got %+v", got)
	}
}

// TestHashOfBooleans: to say what holds anyway changes nothing.
func TestHashOfBooleans(t *testing.T) {
	hash := func(escalate *bool) pod.Hash {
		c := v1.Container{Name: "a", SecurityContext: &v1.SecurityContext{AllowPrivilegeEscalation: escalate, Privileged: new(bool)}}
		return manifests.ContainerHashes(&v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{c}}})["a"]
	}
	yes, no := true, false
	if hash(&yes) != hash(nil) || hash(&no) == hash(nil) {
		t.Errorf("allowPrivilegeEscalation: absent %s, true %s, false %s", hash(nil), hash(&yes), hash(&no))
	}
	bare := manifests.ContainerHashes(&v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}}}})["a"]
	if hash(nil) != bare {
		t.Error("privileged: false is not the same as none")
	}
}

// podkeeper.io/update: replace makes every edit one of the pod.
func TestUpdateReplace(t *testing.T) {
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {podkeeper.io/update: %s}, labels: {x: l%s}}\nspec: {containers: [{name: c, image: i}]}\n"
	for update, replaced := range map[string]bool{"replace": true, "inplace": false} {
		old := one(t, fmt.Sprintf(text, update, "1"), pod.FileSource)
		edited := one(t, fmt.Sprintf(text, update, "2"), pod.FileSource)
		if got := old.Hash != edited.Hash; got != replaced {
			t.Errorf("%s: another generation: %t, want %t", update, got, replaced)
		}
		if got := len(manifests.Changed(old.Object, edited.Object).Pod) > 0; got != replaced {
			t.Errorf("%s: the pod changed: %t, want %t", update, got, replaced)
		}
		same := one(t, fmt.Sprintf(text, update, "1"), pod.FileSource)
		if old.Hash != same.Hash {
			t.Errorf("%s: the same text is another generation", update)
		}
	}
}
