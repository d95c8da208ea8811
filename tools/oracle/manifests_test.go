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

// Each Pod of the project's manifests is decoded by both sides, with the same
// result, and then judged by both.
func TestManifestsAreJudgedAsUpstreamJudgesThem(t *testing.T) {
	count := 0
	for _, root := range []string{"../../testdata/manifests", "../../manifests/examples"} {
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".json" {
				return err
			}
			for i, text := range documents(t, path) {
				if !isPod(text) {
					continue
				}
				count++
				name := fmt.Sprintf("%s/%d", filepath.Base(path), i)
				t.Run(name, func(t *testing.T) { manifest(t, name, text) })
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count < 10 {
		t.Errorf("%d pods in all manifests", count)
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

func isPod(text []byte) bool {
	var kind metav1.TypeMeta
	return yaml.Unmarshal(text, &kind) == nil && kind.Kind == "Pod" && kind.APIVersion == "v1"
}

// decodedElsewise are the documents that we read otherwise than upstream, and why.
var decodedElsewise = map[string]string{
	"anchors.yaml/0":        "a key of a mapping beats one that is merged into it wherever it stands, as YAML has it; upstream lets the later win",
	"trailing-comma.json/0": "what begins as JSON is JSON; upstream reads what is not as YAML, and so takes a file that was cut off for whole",
}

func manifest(t *testing.T, name string, text []byte) {
	theirs, theirError := decodedByUpstream(text)
	ours, ourError := decodedHere(text)
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
	if ours.Namespace == "" {
		ours.Namespace = metav1.NamespaceDefault
	}
	compare(t, ours, name)
}

// decodedByUpstream does what the decoders of the API server and the kubelet do,
// whose type is not to be had by itself.
func decodedByUpstream(text []byte) (*v1.Pod, error) {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	var p v1.Pod
	return &p, utiljson.UnmarshalCaseSensitivePreserveInts(asJSON, &p)
}

func decodedHere(text []byte) (*v1.Pod, error) {
	docs := decode.Documents(text)
	if len(docs) != 1 {
		return nil, fmt.Errorf("%d documents in one", len(docs))
	}
	for _, wrong := range docs[0].Errors {
		return nil, errors.New(wrong.Message)
	}
	var p v1.Pod
	_, findings := decode.Fill(docs[0].Root, &p)
	for _, finding := range findings {
		if finding.Flaw == decode.Mismatch {
			return nil, fmt.Errorf("%s: %s", finding.Path, finding.Message)
		}
	}
	return &p, nil
}

func asJSON(t *testing.T, p *v1.Pod) string {
	t.Helper()
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
