package manifests

import (
	"fmt"
	"strings"

	"github.com/podkeeper/podkeeper/manifests/decode"
	"github.com/podkeeper/podkeeper/pod"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A kind that can stand in a manifest.
type kind struct {
	apiVersion string
	// read takes in an object of the kind; nil where this version cannot.
	read func(p *parser, root *decode.Node, broken bool)
}

// kindOf returns what is known of a kind.
func kindOf(name string) (kind, bool) {
	switch name {
	case "Pod":
		return kind{"v1", (*parser).pod}, true
	case "List", "PodList":
		return kind{"v1", (*parser).list}, true
	case "ConfigMap":
		return kind{"v1", (*parser).configMap}, true
	case "Secret":
		return kind{"v1", (*parser).secret}, true
	case "PersistentVolumeClaim":
		return kind{"v1", (*parser).claim}, true
	case "Service":
		return kind{apiVersion: "v1"}, true
	case "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet":
		return kind{apiVersion: "apps/v1"}, true
	case "Job", "CronJob":
		return kind{apiVersion: "batch/v1"}, true
	}
	return kind{}, false
}

// object takes in one object of any kind. broken says that its text is already
// known to be wrong, so that no more than its name is of use.
func (p *parser) object(root *decode.Node, broken bool) {
	if root.Kind != decode.Object {
		p.problem(pod.Error, decode.Position{Line: root.Line, Column: root.Column}, "", "",
			fmt.Sprintf("must be a mapping with apiVersion, kind and metadata, not %s", root.Kind))
		return
	}
	name, named := text(root.Member("kind"))
	version, versioned := text(root.Member("apiVersion"))
	k, known := kindOf(name)
	if field, message := header(k, known, name, named, version, versioned); message != "" {
		p.problem(pod.Error, root.Find(field), "", field, message)
		broken = true
	}
	if known && k.read == nil {
		if !broken {
			p.problem(pod.Error, root.Find("kind"), "", "kind", fmt.Sprintf("kind %s is not supported yet by this version", name))
		}
		p.add(Document{Kind: name, Line: root.Line})
		return
	}
	if !known {
		// A typo in the kind of a pod must not hide which pod it is.
		p.add(Document{Key: p.key(root), Kind: name, Line: root.Line})
		return
	}
	k.read(p, root, broken)
}

func text(n *decode.Node) (value string, ok bool) {
	if n == nil || n.Kind != decode.String || n.Text == "" {
		return "", false
	}
	return n.Text, true
}

// header says what is wrong with apiVersion and kind, and which of them.
func header(k kind, known bool, name string, named bool, version string, versioned bool) (field, message string) {
	switch {
	case !named && !versioned:
		return "kind", "apiVersion and kind are missing: this is no Kubernetes object"
	case !named:
		return "kind", fmt.Sprintf("kind is missing (apiVersion is %s)", quote(version))
	case !versioned:
		return "apiVersion", fmt.Sprintf("apiVersion is missing (kind is %s)", quote(name))
	case known && version != k.apiVersion:
		return "apiVersion", fmt.Sprintf("no kind %s is registered for apiVersion %s; a %s has apiVersion %s", quote(name), quote(version), name, k.apiVersion)
	case !known:
		return "kind", fmt.Sprintf("no kind %s is registered for apiVersion %s%s", quote(name), quote(version), meant(name))
	}
	return "", ""
}

// quote shows a short text; who knows what got into a kind by a wrong indent.
func quote(s string) string {
	if len(s) > 63 {
		return "of a long text"
	}
	return fmt.Sprintf("%q", s)
}

func meant(name string) string {
	for _, candidate := range []string{"Pod", "PodList", "List", "ConfigMap", "Secret", "PersistentVolumeClaim"} {
		if strings.EqualFold(name, candidate) {
			return fmt.Sprintf("; did you mean %s?", candidate)
		}
	}
	return ""
}

// list takes in the items of a list.
func (p *parser) list(root *decode.Node, broken bool) {
	name, _ := text(root.Member("kind"))
	var header struct {
		metav1.TypeMeta
		metav1.ListMeta `json:"metadata"`
	}
	_, findings := decode.Fill(root.Without("items"), &header)
	p.findings(findings, "")
	items := root.Member("items")
	if items == nil || items.Kind == decode.Null {
		return
	}
	if items.Kind != decode.Array {
		p.problem(pod.Error, root.Find("items"), "", "items", fmt.Sprintf("must be a list, not %s", items.Kind))
		return
	}
	for _, item := range items.Items {
		if name == "PodList" {
			item = item.With("apiVersion", "v1").With("kind", "Pod")
			if k, ok := text(item.Member("kind")); ok && k != "Pod" {
				p.problem(pod.Error, item.Find("kind"), "", "kind", fmt.Sprintf("a PodList holds Pods, not a %s", quote(k)))
				continue
			}
		}
		p.object(item, broken)
	}
}
