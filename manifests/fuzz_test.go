package manifests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// FuzzParse feeds it anything. It never panics, says the same each time, places
// every problem inside of the file, and what it saved of a good document reads back
// to the same.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("../testdata/manifests/*/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		if filepath.Ext(path) == ".golden" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: \u2028b\u0085---\n{{"))
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a, resources: {limits: {cpu: 1e3}}}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		opts := manifests.Options{NodeName: "node1"}
		r := manifests.Parse(data, file, opts)
		if diff := cmp.Diff(r, manifests.Parse(data, file, opts)); diff != "" {
			t.Fatalf("it says something else the second time:\n%s", diff)
		}
		lines := lineCount(string(data))
		for _, p := range r.Problems {
			if p.Line < 1 || p.Line > lines || p.Column < 1 {
				t.Fatalf("%s is outside of the %d lines of the file", p, lines)
			}
		}
		failed := (pod.OriginStatus{Problems: r.Problems}).Failed()
		for _, d := range r.Documents {
			if d.Broken() != (d.JSON == nil) || d.Broken() && !failed {
				t.Fatalf("document on line %d: pod %v, object %v, JSON %s, failed %t", d.Line, d.Pod, d.Object, d.JSON, failed)
			}
			if d.Broken() {
				continue
			}
			again := manifests.Parse(d.JSON, file, opts)
			if len(again.Documents) != 1 || again.Documents[0].Broken() {
				t.Fatalf("%s does not read back: %v", d.JSON, again.Problems)
			}
			got, want := again.Documents[0], d
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(pod.Pod{}, "Line"), cmpopts.IgnoreFields(pod.Object{}, "Line"), cmpopts.IgnoreFields(manifests.Document{}, "Line", "JSON")); diff != "" {
				t.Fatalf("%s reads back as another:\n%s", d.JSON, diff)
			}
		}
	})
}

// lineCount counts lines as YAML does.
func lineCount(text string) int {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	n := 1
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		n += strings.Count(text, end)
	}
	return n
}

// BenchmarkParse reads a manifest of some thirty lines.
func BenchmarkParse(b *testing.B) {
	data := []byte(`apiVersion: v1
kind: Pod
metadata:
  name: web
  labels:
    app: web
spec:
  terminationGracePeriodSeconds: 10
  volumes:
  - name: data
    hostPath:
      path: /srv/web
      type: DirectoryOrCreate
  containers:
  - name: web
    image: registry.local/web:1.2
    args: ["--listen", ":8080"]
    env:
    - name: TZ
      value: UTC
    - name: URL
      value: http://$(HOST)/
    ports:
    - containerPort: 8080
      hostPort: 80
    resources:
      limits:
        memory: 64Mi
    volumeMounts:
    - name: data
      mountPath: /data
`)
	for b.Loop() {
		r := manifests.Parse(data, file, manifests.Options{NodeName: "node1"})
		if len(r.Documents) != 1 || r.Documents[0].Pod == nil {
			b.Fatal(report(r))
		}
	}
}
