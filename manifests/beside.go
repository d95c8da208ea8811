package manifests

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podkeeper/podkeeper/manifests/decode"
	"github.com/podkeeper/podkeeper/manifests/defaults"
	"github.com/podkeeper/podkeeper/manifests/objects"
	"github.com/podkeeper/podkeeper/manifests/validate"
	"github.com/podkeeper/podkeeper/pod"
)

func (p *parser) configMap(root *decode.Node, broken bool) {
	c := &v1.ConfigMap{}
	d := p.beside(root, broken, pod.ConfigMap, c, &c.ObjectMeta)
	d.judge(validate.ConfigMap(c))
	d.take(func() *pod.Object { return objects.ConfigMap(c) })
}

func (p *parser) secret(root *decode.Node, broken bool) {
	s := &v1.Secret{}
	d := p.beside(root, broken, pod.Secret, s, &s.ObjectMeta)
	defaults.Secret(s)
	d.judge(validate.Secret(s))
	d.take(func() *pod.Object { return objects.Secret(s) })
}

func (p *parser) claim(root *decode.Node, broken bool) {
	c := &v1.PersistentVolumeClaim{}
	d := p.beside(root, broken, pod.PersistentVolumeClaim, c, &c.ObjectMeta)
	d.statusIsNoInput()
	defaults.PersistentVolumeClaim(c)
	for _, f := range objects.CheckClaim(c) {
		d.found(f.Refused, f.Path, f.Reason)
	}
	d.judge(validate.PersistentVolumeClaim(c))
	d.take(func() *pod.Object { return objects.Claim(c) })
}

// besides is an object beside pods while it is taken in.
type besides struct {
	*parser
	root    *decode.Node
	name    string // for people
	doc     Document
	misfits []string
	unnamed bool // and that was said
	broken  bool
}

// beside fills in object, of which meta are the metadata, gives it its namespace,
// and names those of its metadata that have no effect.
func (p *parser) beside(root *decode.Node, broken bool, kind pod.ObjectKind, object any, meta *metav1.ObjectMeta) *besides {
	d := &besides{parser: p, root: root, name: describe(string(kind), root)}
	text, findings := decode.Fill(root, object)
	misfits, misfit := p.findings(findings, d.name)
	d.misfits, d.broken = misfits, broken || misfit
	d.doc = Document{Kind: string(kind), Line: root.Line, JSON: text}
	if namespace, name, ok := written(root); ok {
		d.doc.ObjectKey = pod.ObjectKey{Kind: kind, Namespace: namespace, Name: name}
	}
	for _, m := range metadataMembers(root) {
		path := "metadata." + m.Key
		unknown := slices.ContainsFunc(findings, func(f decode.Finding) bool { return f.Path == path })
		if !unknown && m.Value.Kind != decode.Null && !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, m.Key) {
			d.found(false, path, "has no effect here: it is an API server's to set")
		}
	}
	if meta.Namespace == "" {
		meta.Namespace = v1.NamespaceDefault
	}
	if d.unnamed = meta.Name == ""; d.unnamed && !covered("metadata.name", d.misfits) {
		d.found(true, "metadata.name", fmt.Sprintf("Required value: a %s of a manifest has a name", kind))
	}
	return d
}

func metadataMembers(root *decode.Node) []decode.Member {
	if meta := root.Member("metadata"); meta != nil {
		return meta.Members
	}
	return nil
}

// found reports a field that is refused or has no effect.
func (d *besides) found(refused bool, path, reason string) {
	severity := pod.Note
	if refused {
		severity, d.broken = pod.Error, true
	}
	d.problem(severity, d.root.Find(path), d.name, path, reason)
}

func (d *besides) statusIsNoInput() {
	if status := d.root.Member("status"); status != nil && len(status.Members) > 0 {
		d.found(false, "status", "has no effect here: it is found out, not given")
	}
}

// judge reports what validation objects to.
func (d *besides) judge(errs field.ErrorList) {
	for _, e := range errs {
		if covered(e.Field, d.misfits) || e.Field == "metadata.name" && d.unnamed {
			continue
		}
		d.found(true, d.writtenAs(e.Field), message(e))
	}
}

// writtenAs returns the path of a field as the manifest has it: what is wrong with a
// key of data may come from stringData.
func (d *besides) writtenAs(path string) string {
	if path == validate.WholeObject {
		return ""
	}
	key, ok := strings.CutPrefix(path, "data[")
	if !ok || d.root.Member("stringData").Member(strings.TrimSuffix(key, "]")) == nil {
		return path
	}
	return "stringData[" + key
}

// take takes the object into the result; build makes it, where it is good.
func (d *besides) take(build func() *pod.Object) {
	if d.broken {
		d.doc.JSON = nil
	} else {
		object := build()
		object.Origin, object.Line = d.parser.origin, d.root.Line
		d.doc.Object = object
	}
	if first, again := d.add(d.doc); again {
		d.problem(pod.Warning, d.root.Find("metadata.name"), d.name, "metadata.name",
			fmt.Sprintf("duplicate name: the %s on line %d has it, so this one on line %d is ignored", d.doc.Kind, first, d.root.Line))
	}
}
