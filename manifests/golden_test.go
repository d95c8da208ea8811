package manifests_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestManifests reads every file of testdata/manifests, as it is and under
// Strict, and compares what comes of it with the golden file beside it. Good ones
// have no error, bad ones have one or a warning: what is wrong or not done is named
// (law 8).
func TestManifests(t *testing.T) {
	paths, err := filepath.Glob("../testdata/manifests/*/*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, path := range paths {
		if filepath.Ext(path) == ".golden" {
			continue
		}
		name := strings.TrimPrefix(path, "../testdata/manifests/")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			origin := pod.Origin{Source: pod.SourceID{Kind: pod.FileSource, Name: "manifests"}, Name: filepath.Base(path)}
			result := manifests.Parse(data, origin, manifests.Options{NodeName: "node1"})
			got := golden(result)
			strict := golden(manifests.Parse(data, origin, manifests.Options{NodeName: "node1", Strict: true}))
			if !bytes.Equal(strict, got) {
				got = append(append(got, "\n--strict\n"...), strict...)
			}
			if bytes.Contains(got, []byte("4711")) {
				t.Error("C104: a value is quoted")
			}
			if failed := (pod.OriginStatus{Problems: result.Problems}).Failed(); failed && strings.HasPrefix(name, "good/") {
				t.Error("a good manifest has errors")
			} else if strings.HasPrefix(name, "bad/") && !bytes.Contains(got, []byte(": error: ")) && !bytes.Contains(got, []byte(": warning: ")) {
				t.Error("a bad manifest has no problem")
			}
			compareGolden(t, path+".golden", got)
		})
	}
}

func golden(r manifests.Result) []byte {
	var b bytes.Buffer
	for _, d := range r.Documents {
		fmt.Fprintln(&b, line(d))
	}
	for _, p := range r.Problems {
		fmt.Fprintln(&b, p)
	}
	return b.Bytes()
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got (go test -update rewrites it):\n%s", diff)
	}
}
