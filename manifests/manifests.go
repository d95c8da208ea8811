package manifests

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/podkeeper/podkeeper/manifests/decode"
	"github.com/podkeeper/podkeeper/pod"
)

// MaxBytes is the size that an origin may have; Parse refuses more. A reader
// needs to read one byte more than that to let it see so.
const MaxBytes = decode.MaxBytes

// maxProblems bounds what is reported of one origin. A file with more is no
// manifest.
const maxProblems = 1000

// Options says how to read manifests.
type Options struct {
	// Strict makes errors of unknown fields and duplicate keys.
	Strict bool
	// NodeName is where the pods run. Its lower-case form is the suffix of their
	// names; without it they get none.
	NodeName string
	// ClusterDNS: pods whose dnsPolicy asks for the cluster's resolver get it.
	ClusterDNS bool
}

// Document is one object of an origin; the items of a list are documents of
// their own.
type Document struct {
	// Key is that of the pod, with the node's suffix; zero where it is unreadable
	// or the object is no pod. A broken document can have one.
	Key pod.Key
	// ObjectKey is the same of an object beside pods.
	ObjectKey pod.ObjectKey
	// Kind is as written.
	Kind string
	// Line is where the object begins, from 1.
	Line int
	// JSON is the object as written, before identity and defaults, in canonical
	// JSON with apiVersion and kind. Parse reads it back to the same. Nil where the
	// document is broken. That of a Secret is secret.
	JSON []byte
	// Pod is the pod, or Object the object beside pods, that the document holds.
	// Both are nil where it is broken.
	Pod    *pod.Pod
	Object *pod.Object
}

// Broken reports whether nothing of the document is of use but its name.
func (d Document) Broken() bool { return d.Pod == nil && d.Object == nil }

// Name returns what the document is about, a pod as one of the kind Pod; zero
// where that is unreadable.
func (d Document) Name() pod.ObjectKey {
	if d.Key != (pod.Key{}) {
		return pod.ObjectKey{Kind: PodKind, Namespace: d.Key.Namespace, Name: d.Key.Name}
	}
	return d.ObjectKey
}

// PodKind is that of pods among the names of documents.
const PodKind pod.ObjectKind = "Pod"

// Result is all that an origin says, and what is wrong with it.
type Result struct {
	// Documents are in the order of the text, each name once.
	Documents []Document
	// Problems are in order of position.
	Problems []pod.Problem
}

// Parse reads the bytes of one origin: YAML or JSON, any number of documents,
// lists unpacked. An origin of zero bytes is an error; one of comments or of an
// empty list is good and holds nothing.
func Parse(data []byte, origin pod.Origin, opts Options) Result {
	p := parser{origin: origin, opts: opts, seen: map[pod.ObjectKey]int{}}
	for _, d := range decode.Documents(data) {
		for _, e := range d.Errors {
			p.problem(pod.Error, e.Position, "", "", e.Message)
		}
		if d.Root != nil {
			p.object(d.Root, len(d.Errors) > 0)
		}
	}
	slices.SortStableFunc(p.result.Problems, func(a, b pod.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	if more := len(p.result.Problems) - maxProblems; more > 0 {
		// An error among those left out must not be lost: it holds back removals.
		last := pod.Problem{Severity: pod.Error, File: origin.Name, Message: fmt.Sprintf("has %d more problems", more)}
		p.result.Problems = append(slices.Clip(p.result.Problems[:maxProblems]), last)
	}
	return p.result
}

// parser collects the result of one origin.
type parser struct {
	origin pod.Origin
	opts   Options
	result Result
	seen   map[pod.ObjectKey]int // the line of each name
}

func (p *parser) problem(severity pod.Severity, at decode.Position, object, field, message string) {
	p.result.Problems = append(p.result.Problems, pod.Problem{
		Severity: severity,
		File:     p.origin.Name,
		Line:     at.Line,
		Column:   at.Column,
		Field:    field,
		Object:   object,
		Message:  message,
	})
}

// lax is the severity of what Kubernetes itself would drop without a word.
func (p *parser) lax() pod.Severity {
	if p.opts.Strict {
		return pod.Error
	}
	return pod.Warning
}

// findings reports what a tree has that its type has not; object is what they
// are in. It returns the paths that hold nothing usable, and whether the object
// is broken.
func (p *parser) findings(findings []decode.Finding, object string) (misfits []string, broken bool) {
	for _, f := range findings {
		severity := p.lax()
		if f.Flaw == decode.Mismatch {
			severity = pod.Error
			misfits = append(misfits, f.Path)
		}
		broken = broken || severity == pod.Error
		p.problem(severity, f.Position, object, f.Path, f.Message)
	}
	return misfits, broken
}
