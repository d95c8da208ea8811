package sources

import (
	"log/slog"
	"slices"

	"github.com/podkeeper/podkeeper/manifests"
	"github.com/podkeeper/podkeeper/pod"
)

// document is one pod that an origin supplies, and the text it was made from.
type document struct {
	json []byte
	pod  *pod.Pod
}

// hold applies law 1 to one origin: what it supplied, and what it says now, give
// what it supplies. Without an error what it says is all. With one, the good
// documents apply and every other earlier key stays; stale says that one did.
func hold(before []document, now manifests.Result) (after []document, stale bool) {
	// The first document that names a key decides about it, good or broken:
	// otherwise a typo in it would bring its duplicate to life.
	named := map[pod.Key]bool{}
	supplied := map[pod.Key]bool{}
	for _, d := range now.Documents {
		key := d.Key
		if d.Pod != nil {
			key = d.Pod.Key()
		}
		if named[key] {
			continue
		}
		named[key] = key != (pod.Key{})
		if d.Pod != nil {
			after = append(after, document{json: d.JSON, pod: d.Pod})
			supplied[key] = true
		}
	}
	if !failed(now.Problems) {
		return after, false
	}
	for _, d := range before {
		if !supplied[d.pod.Key()] {
			after = append(after, d)
			stale = true
		}
	}
	return after, stale
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
		s.Pods = append(s.Pods, d.pod.Key())
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
