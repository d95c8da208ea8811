package reconcile

import "github.com/podkeeper/podkeeper/pod"

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
