package sources

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// document is one pod, or object beside pods, that an origin supplies, and the
// text it was made from.
type document struct {
	json   []byte
	pod    *pod.Pod
	object *pod.Object
}

// documentOf returns what a good document supplies. A line that is not 0 is put in
// place of its own.
func documentOf(d manifests.Document, line int) document {
	doc := document{json: d.JSON, pod: d.Pod, object: d.Object}
	switch {
	case line == 0:
	case d.Pod != nil:
		p := *d.Pod
		p.Line, doc.pod = line, &p
	default:
		o := *d.Object
		o.Line, doc.object = line, &o
	}
	return doc
}

// name is what the document is about; see manifests.Document.
func (d document) name() pod.ObjectKey {
	if d.pod != nil {
		return pod.ObjectKey{Kind: manifests.PodKind, Namespace: d.pod.Key().Namespace, Name: d.pod.Key().Name}
	}
	return d.object.Key
}

func (d document) line() int {
	if d.pod != nil {
		return d.pod.Line
	}
	return d.object.Line
}

// hold applies law 1 to one origin: what it supplied, and what it says now, give
// what it supplies. Without an error what it says is all. With one, the good
// documents apply and every other earlier name stays; stale says that one did.
func hold(before []document, now manifests.Result) (after []document, stale bool) {
	// The first document that has a name decides about it, good or broken:
	// otherwise a typo in it would bring its duplicate to life.
	named := map[pod.ObjectKey]bool{}
	supplied := map[pod.ObjectKey]bool{}
	for _, d := range now.Documents {
		name := d.Name()
		if named[name] {
			continue
		}
		named[name] = name != (pod.ObjectKey{})
		if !d.Broken() {
			after = append(after, documentOf(d, 0))
			supplied[name] = true
		}
	}
	if !failed(now.Problems) {
		return after, false
	}
	for _, d := range before {
		if !supplied[d.name()] {
			after = append(after, d)
			stale = true
		}
	}
	return after, stale
}

// keepSealed refuses, as an API server does, what would change an object that is
// immutable: the document counts as broken, so that the version before stays until
// the origin no longer has the object.
func keepSealed(before []document, now manifests.Result) manifests.Result {
	var sealed []document
	for _, d := range before {
		if d.object != nil && d.object.Immutable {
			sealed = append(sealed, d)
		}
	}
	if len(sealed) == 0 {
		return now
	}
	now.Documents, now.Problems = slices.Clone(now.Documents), slices.Clip(now.Problems)
	for i, d := range now.Documents {
		was := slices.IndexFunc(sealed, func(b document) bool { return d.Object != nil && b.object.Key == d.Object.Key })
		if was < 0 || d.Object.Immutable && d.Object.SameContent(sealed[was].object) {
			continue
		}
		now.Documents[i].Object, now.Documents[i].JSON = nil, nil
		now.Problems = append(now.Problems, pod.Problem{
			Severity: pod.Error, File: d.Object.Origin.Name, Line: d.Line, Field: "immutable", Object: d.Object.Key.String(),
			Message: fmt.Sprintf("%s differs from the immutable version that was on line %d: that one stays until %s no longer has the object",
				d.Object.Key, sealed[was].line(), d.Object.Origin.Name),
		})
	}
	return now
}

func failed(problems []pod.Problem) bool {
	return slices.ContainsFunc(problems, func(p pod.Problem) bool { return p.Severity == pod.Error })
}

// refusal is the result of an origin that could not even be decoded.
func refusal(origin pod.Origin, message string) manifests.Result {
	return manifests.Result{Problems: []pod.Problem{{Severity: pod.Error, File: origin.Name, Message: message}}}
}

// status is what is told of an origin that supplies docs.
func status(origin pod.Origin, docs []document, problems []pod.Problem, stale bool) pod.OriginStatus {
	s := pod.OriginStatus{Origin: origin, Stale: stale, Problems: problems}
	for _, d := range docs {
		if d.pod != nil {
			s.Pods = append(s.Pods, d.pod.Key())
		} else {
			s.Objects = append(s.Objects, d.object.Key)
		}
	}
	return s
}

// logProblems says what is new among the problems of an origin.
func logProblems(log *slog.Logger, before, now []pod.Problem) {
	for _, p := range now {
		switch {
		case p.Severity == pod.Note || slices.Contains(before, p):
		default:
			log.Warn(p.String())
		}
	}
	if failed(before) && !failed(now) {
		log.Info("manifest is good again")
	}
}
