package reconcile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/podkeeper/podkeeper/pod"
)

// This file is the loop's side of holds by hand; plan_hold.go says what they do.

// HoldsFile has which pods are held by hand, and since when (law 5). Losing it costs
// that they run again.
const HoldsFile = "held.json"

const holdsVersion = 1

// holdChange is a change of what is held: Since zero lets the pod go.
type holdChange struct {
	key   pod.Key
	since time.Time
	reply chan<- error // has room for one
}

type heldPod struct {
	Pod   pod.Key   `json:"pod"`
	Since time.Time `json:"since"`
}

type heldFile struct {
	Version int       `json:"version"`
	Pods    []heldPod `json:"pods"`
}

func (s *state) loadHolds() {
	s.held = make(map[pod.Key]time.Time)
	s.loadFile(HoldsFile, func(data []byte) error {
		var f heldFile
		if err := json.Unmarshal(data, &f); err != nil {
			return err
		}
		if f.Version != holdsVersion {
			return fmt.Errorf("version %d, want %d", f.Version, holdsVersion)
		}
		for _, p := range f.Pods {
			s.held[p.Pod] = p.Since
		}
		return nil
	})
}

// changeHold has the change written down, after those before it, and then takes it over: a
// pod that was said to be held is so after a crash, too.
func (s *state) changeHold(h holdChange) {
	s.holds = append(s.holds, h)
	if len(s.holds) == 1 {
		s.writeHold()
	}
}

func (s *state) writeHold() {
	h, ctx := s.holds[0], s.ctx
	next := maps.Clone(s.held)
	if h.since.IsZero() {
		delete(next, h.key)
	} else {
		next[h.key] = h.since
	}
	s.spawn(func() {
		f := heldFile{Version: holdsVersion, Pods: []heldPod{}}
		for _, key := range slices.SortedFunc(maps.Keys(next), pod.Key.Compare) {
			f.Pods = append(f.Pods, heldPod{key, next[key]})
		}
		data, err := json.Marshal(f)
		if err == nil {
			err = s.deps.Store.WriteFile(HoldsFile, data)
		}
		s.report(ctx, func(s *state) {
			if err == nil {
				s.held = next
				s.sayHold(h)
			}
			h.reply <- err
			if s.holds = s.holds[1:]; len(s.holds) > 0 {
				s.writeHold()
			}
		})
	})
}

// sayHold makes a pod due whose hold is another now, and tells of it.
func (s *state) sayHold(h holdChange) {
	reason, message := PodStopped, "Stopping the pod by hand, until it is started by hand"
	if h.since.IsZero() {
		reason, message = StartedByHand, "Starting the pod by hand"
	}
	s.deps.Log.Info("pod is held by hand, or let go", "pod", h.key, "reason", reason)
	if e := s.pods[h.key]; e != nil {
		clear(e.failures)
		s.deps.tell(handEvent(e, reason, "", message))
	}
	s.revision++
	s.mark(h.key)
}
