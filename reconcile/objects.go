package reconcile

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"time"

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

// suppliersFile says who supplies the objects that several origins do: those
// themselves cannot tell who was first.
const suppliersFile = "suppliers.json"

type supplier struct {
	Kind      pod.ObjectKind `json:"kind"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Origin    pod.Origin     `json:"origin"`
}

func (s *state) loadSuppliers() {
	s.loadFile(suppliersFile, func(data []byte) error {
		var list []supplier
		err := json.Unmarshal(data, &list)
		s.suppliers = make(map[pod.ObjectKey]pod.Origin)
		for _, o := range list {
			s.suppliers[pod.ObjectKey{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}] = o.Origin
		}
		return err
	})
}

// keepSuppliers writes down who they are, where that changed.
func (s *state) keepSuppliers(conflicts []pod.Conflict) {
	now := make(map[pod.ObjectKey]pod.Origin)
	for _, c := range conflicts {
		if c.Object != (pod.ObjectKey{}) {
			now[c.Object] = c.Winner
		}
	}
	if s.cfg.LookOnly || maps.Equal(now, s.suppliers) {
		return
	}
	s.suppliers = now // replaced as a whole
	if !s.keeping {
		s.writeSuppliers()
	}
}

func (s *state) writeSuppliers() {
	s.keeping = true
	ctx, now := s.ctx, s.suppliers
	s.spawn(func() {
		list := make([]supplier, 0, len(now))
		for _, key := range slices.SortedFunc(maps.Keys(now), pod.ObjectKey.Compare) {
			list = append(list, supplier{key.Kind, key.Namespace, key.Name, now[key]})
		}
		data, err := json.Marshal(list)
		if err == nil {
			err = s.deps.Store.WriteFile(suppliersFile, data)
		}
		if err != nil {
			s.deps.Log.Warn("after a restart of the agent another origin may supply what several do", "file", suppliersFile, "err", err, "retry", sweepAgain)
			select {
			case <-time.After(sweepAgain):
			case <-ctx.Done():
			}
		}
		s.report(ctx, func(s *state) {
			if s.keeping = false; err != nil || !maps.Equal(now, s.suppliers) {
				s.writeSuppliers()
			}
		})
	})
}

// resolveObjects takes over what pods may refer to, and makes those due for whom
// something changes. An object stays with the origin that supplies it. Until every
// source was looked at once the one of before counts, not who answers first.
func (s *state) resolveObjects() []pod.Conflict {
	held := s.suppliers
	if s.lookedAt {
		held = pod.Origins(s.objects)
	}
	now, conflicts := s.set.ResolveObjects(held)
	if s.lookedAt = s.lookedAt || s.set.LookedAt(); s.lookedAt {
		s.keepSuppliers(conflicts)
	}
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
