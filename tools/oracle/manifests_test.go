package oracle_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/decode"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	utiljson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Each object of the project's manifests is decoded by both sides, with the same
// result, and then judged by both.
func TestManifestsAreJudgedAsUpstreamJudgesThem(t *testing.T) {
	count := 0
	for _, root := range []string{"../../testdata/manifests", "../../manifests/examples"} {
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".json" {
				return err
			}
			for i, text := range documents(t, path) {
				made := maker(text)
				if made == nil {
					continue
				}
				count++
				name := fmt.Sprintf("%s/%d", filepath.Base(path), i)
				t.Run(name, func(t *testing.T) { manifest(t, name, text, made) })
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count < 30 {
		t.Errorf("%d objects in all manifests", count)
	}
}

func documents(t *testing.T, path string) [][]byte {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(whole)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			return list // a file that upstream cannot even split
		}
		list = append(list, text)
	}
}

// maker returns what makes an empty object of the kind of a text; nil where
// that kind is not judged.
func maker(text []byte) func() metav1.Object {
	var kind metav1.TypeMeta
	if yaml.Unmarshal(text, &kind) != nil || kind.APIVersion != "v1" {
		return nil
	}
	return map[string]func() metav1.Object{
		"Pod":                   func() metav1.Object { return new(v1.Pod) },
		"ConfigMap":             func() metav1.Object { return new(v1.ConfigMap) },
		"Secret":                func() metav1.Object { return new(v1.Secret) },
		"PersistentVolumeClaim": func() metav1.Object { return new(v1.PersistentVolumeClaim) },
	}[kind.Kind]
}

// decodedElsewise are the documents that we read otherwise than upstream, and why.
var decodedElsewise = map[string]string{
	"anchors.yaml/0":        "a key of a mapping beats one that is merged into it wherever it stands, as YAML has it; upstream lets the later win",
	"trailing-comma.json/0": "what begins as JSON is JSON; upstream reads what is not as YAML, and so takes a file that was cut off for whole",
}

func manifest(t *testing.T, name string, text []byte, made func() metav1.Object) {
	theirs, ours := made(), made()
	theirError, ourError := decodedByUpstream(text, theirs), decodedHere(text, ours)
	same := (theirError == nil) == (ourError == nil) && (theirError != nil || asJSON(t, theirs) == asJSON(t, ours))
	why, meant := decodedElsewise[name]
	switch {
	case meant && same:
		t.Errorf("is decoded as upstream decodes it; it is listed as: %s", why)
	case meant || same && theirError != nil:
		return
	case (theirError == nil) != (ourError == nil):
		t.Fatalf("decoded by upstream: %v\ndecoded by us: %v", theirError, ourError)
	case !same:
		t.Fatalf("decoded object (-theirs +ours):\n%s", cmp.Diff(asJSON(t, theirs), asJSON(t, ours)))
	}
	if ours.GetNamespace() == "" {
		ours.SetNamespace(metav1.NamespaceDefault)
	}
	if p, isPod := ours.(*v1.Pod); isPod {
		compare(t, p, name)
	} else {
		compareObject(t, ours, name)
	}
}

// decodedByUpstream does what the decoders of the API server and the kubelet do,
// whose type is not to be had by itself.
func decodedByUpstream(text []byte, into any) error {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	return utiljson.UnmarshalCaseSensitivePreserveInts(asJSON, into)
}

func decodedHere(text []byte, into any) error {
	docs := decode.Documents(text)
	if len(docs) != 1 {
		return fmt.Errorf("%d documents in one", len(docs))
	}
	for _, wrong := range docs[0].Errors {
		return errors.New(wrong.Message)
	}
	_, findings := decode.Fill(docs[0].Root, into)
	for _, finding := range findings {
		if finding.Flaw == decode.Mismatch {
			return fmt.Errorf("%s: %s", finding.Path, finding.Message)
		}
	}
	return nil
}

func asJSON(t *testing.T, object any) string {
	t.Helper()
	text, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
