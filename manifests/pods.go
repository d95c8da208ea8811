package manifests

import (
	"fmt"
	"strings"

	"github.com/podkeeper/podkeeper/manifests/decode"
	"github.com/podkeeper/podkeeper/manifests/defaults"
	"github.com/podkeeper/podkeeper/manifests/fields"
	"github.com/podkeeper/podkeeper/manifests/validate"
	"github.com/podkeeper/podkeeper/pod"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// pod takes in one pod.
func (p *parser) pod(root *decode.Node, broken bool) {
	object := &v1.Pod{}
	name := describe("Pod", root)
	text, findings := decode.Fill(root, object)
	misfits, misfit := p.findings(findings, name)
	broken = broken || misfit

	doc := Document{Key: p.key(root), Kind: "Pod", Line: root.Line, JSON: text}
	for _, f := range fields.Check(object) {
		severity := pod.Note
		switch {
		case f.Verdict == fields.Refused:
			severity, broken = pod.Error, true
		case f.Warn:
			severity = pod.Warning
		}
		p.problem(severity, root.Find(f.Path), name, f.Path, f.Reason)
	}
	if !p.opts.ClusterDNS && wantsClusterDNS(object) {
		const path = "spec.dnsPolicy"
		p.problem(pod.Note, root.Find(path), name, path, "has no effect here: no --cluster-dns is given, so it is that of the node, as with Default")
	}
	for _, e := range p.admit(object) {
		if covered(e.Field, misfits) {
			continue
		}
		broken = true
		p.problem(pod.Error, root.Find(e.Field), name, e.Field, message(e))
	}
	if broken {
		doc.JSON = nil
	} else {
		finish(object, p.origin.Source.Kind, p.opts.NodeName)
		doc.Pod = &pod.Pod{
			Object:     object,
			Origin:     p.origin,
			Line:       root.Line,
			Hash:       PodHash(object),
			Containers: ContainerHashes(object),
		}
	}
	if first, again := p.add(doc); again {
		p.problem(pod.Warning, root.Find("metadata.name"), name, "metadata.name",
			fmt.Sprintf("duplicate pod name: the pod on line %d has it, so this one on line %d is ignored", first, root.Line))
	}
}

// add takes a document into the result, unless the one on line first has its name.
func (p *parser) add(doc Document) (first int, again bool) {
	if name := doc.Name(); name != (pod.ObjectKey{}) {
		if first, again = p.seen[name]; again {
			return first, true
		}
		p.seen[name] = doc.Line
	}
	p.result.Documents = append(p.result.Documents, doc)
	return 0, false
}

// wantsClusterDNS reports whether a manifest itself, before any default, asks for
// the cluster's resolver.
func wantsClusterDNS(object *v1.Pod) bool {
	return object.Spec.DNSPolicy == v1.DNSClusterFirst || object.Spec.DNSPolicy == v1.DNSClusterFirstWithHostNet
}

// admit gives an object its identity and defaults, and returns what is wrong
// with it.
func (p *parser) admit(object *v1.Pod) field.ErrorList {
	var errs field.ErrorList
	if uid := string(object.UID); uid != "" && !validUID(uid) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "uid"), uid,
			"must begin with a letter or digit, hold only letters, digits and -, and be no longer than 63 characters"))
	}
	identify(object, p.origin.Source.Kind, p.opts.NodeName)
	defaults.Pod(object)
	for _, e := range validate.Pod(object) {
		if object.Name != "" || e.Field != "metadata.name" {
			errs = append(errs, e)
		}
	}
	if object.Name == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "name"), "a pod of a manifest has a name"))
	}
	return errs
}

// covered reports whether a field is wrong because of a value that did not fit
// and so was left out.
func covered(path string, misfits []string) bool {
	for _, m := range misfits {
		if within(path, m) || within(m, path) {
			return true
		}
	}
	return false
}

func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || parent == "" || rest[0] == '.' || rest[0] == '[')
}

// message words an error of validation, without values that may be secret or
// would fill the screen.
func message(e *field.Error) string {
	text := e.Type.String()
	switch e.Type {
	case field.ErrorTypeRequired, field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeInternal:
	default:
		if value, ok := scalar(e.BadValue); ok && !secret(e.Field) {
			text += ": " + value
		}
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// secret tells of the fields whose values are never shown.
func secret(path string) bool {
	return strings.Contains(path, ".env[") && !strings.HasSuffix(path, ".name") ||
		strings.Contains(path, ".httpHeaders[") || strings.HasPrefix(path, "metadata.annotations") || strings.HasPrefix(path, "data[")
}

// describe names an object for people, as the manifest does.
func describe(kind string, root *decode.Node) string {
	name, ok := text(root.Member("metadata").Member("name"))
	if !ok {
		return kind
	}
	namespace, ok := text(root.Member("metadata").Member("namespace"))
	if !ok {
		namespace = v1.NamespaceDefault
	}
	return kind + " " + namespace + "/" + name
}
