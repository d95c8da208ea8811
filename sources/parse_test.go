package sources_test

import (
	"encoding/json"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// parse reads a tiny language in place of manifests, which makes each test say
// just what it is about: a line "web app:1" is a pod and its image, "secret key=1" a
// Secret of that name and one value, "bad web" a broken document of a pod whose key
// can be read, "bad secret key" the same of a Secret, "bad" one whose key cannot.
// "sealed key=1" is an immutable Secret. A line that
// begins with # is a comment; a JSON string is the line that it holds; a JSON
// object is a PodList of such strings.
func parse(data []byte, origin pod.Origin) manifests.Result {
	text := string(data)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return broken(origin, 1, "cut off")
		}
	}
	if strings.HasPrefix(text, "{") {
		var list struct{ Items []string }
		if err := json.Unmarshal(data, &list); err != nil {
			return broken(origin, 1, "cut off")
		}
		text = strings.Join(list.Items, "\n")
	}
	if len(data) == 0 {
		return broken(origin, 0, "empty file")
	}
	var res manifests.Result
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		doc := manifests.Document{Kind: "Pod", Line: i + 1}
		doc.JSON, _ = json.Marshal(line)
		switch {
		case words[0] == "bad":
			if len(words) > 2 {
				doc.ObjectKey = pod.ObjectKey{Kind: pod.Secret, Namespace: "default", Name: words[2]}
			} else if len(words) > 1 {
				doc.Key = pod.Key{Namespace: "default", Name: words[1]}
			}
			res.Problems = append(res.Problems, broken(origin, i+1, "bad document").Problems...)
		case len(words) == 2 && (words[0] == "secret" || words[0] == "sealed"):
			name, value, _ := strings.Cut(words[1], "=")
			doc.ObjectKey = pod.ObjectKey{Kind: pod.Secret, Namespace: "default", Name: name}
			doc.Object = &pod.Object{
				Key: doc.ObjectKey, Origin: origin, Line: i + 1, Immutable: words[0] == "sealed",
				Data: map[string]pod.Value{"k": pod.SecretValue(value)},
			}
		case len(words) != 2 || !strings.Contains(words[1], ":"):
			res.Problems = append(res.Problems, broken(origin, i+1, "cut off").Problems...)
		default:
			doc.Pod = &pod.Pod{
				Object: &v1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: words[0]},
					Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: words[1]}}},
				},
				Origin: origin,
				Line:   i + 1,
			}
			doc.Key = doc.Pod.Key()
		}
		res.Documents = append(res.Documents, doc)
	}
	return res
}

func broken(origin pod.Origin, line int, message string) manifests.Result {
	return manifests.Result{Problems: []pod.Problem{{Severity: pod.Error, File: origin.Name, Line: line, Message: message}}}
}
