package reconcile

import (
	"crypto/rand"

	"github.com/podkeeper/podkeeper/pod"
)

// digestKeyFile holds the DigestKey of the root dir.
const digestKeyFile = "digest.key"

// loadDigestKey takes the root dir's key. One that is lost costs the knowledge of
// what containers were made with: changes from then on count.
func (s *state) loadDigestKey() {
	s.loadFile(digestKeyFile, func(data []byte) error {
		s.digestKey = data
		return nil
	})
}

// needDigestKey makes the root dir's key, if there is none yet and the pod needs it.
func (s *state) needDigestKey(e *entry) {
	needs := e.desired != nil && restartsOnChange(e.desired.Object)
	for _, rec := range e.records {
		needs = needs || rec.Pod != nil && restartsOnChange(rec.Pod.Object)
	}
	if !needs || len(s.digestKey) > 0 {
		return
	}
	key := make(DigestKey, 32)
	_, _ = rand.Read(key) // it never fails
	s.digestKey = key
	s.spawn(func() {
		if err := s.deps.Store.WriteFile(digestKeyFile, key); err != nil {
			s.deps.Log.Warn("after a restart of the agent nobody will know what containers were made with", "file", digestKeyFile, "err", err)
		}
	})
}

// resolveObjects takes over what pods may refer to, and makes those due for whom
// something changes.
func (s *state) resolveObjects() []pod.Conflict {
	now, conflicts := s.set.ResolveObjects(s.objects)
	changed := make(map[pod.ObjectKey]bool)
	for key, object := range now {
		if was := s.objects[key]; was == nil || !was.SameContent(object) {
			changed[key] = true
		}
	}
	for key := range s.objects {
		if now[key] == nil {
			changed[key] = true
		}
	}
	s.objects = now
	s.forgetPulls(changed)
	if len(changed) == 0 {
		return conflicts
	}
	for key, e := range s.pods {
		if refersTo(e.desired, changed) || refersTo(e.plan.Pod, changed) {
			clear(e.failures) // they may be of what was missing
			s.mark(key)
		}
	}
	return conflicts
}
