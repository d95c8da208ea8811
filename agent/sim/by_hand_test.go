package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/fake"
)

// holds is the file that says what is held.
const holds = "held.json"

var errAway = errors.New("the agent is away")

// hand is what was done to a pod by hand.
type hand struct {
	// at is when the whole pod was last stopped, started or restarted; restarted, the
	// last of those, and containers, when those were.
	at, restarted time.Time
	containers    map[string]time.Time
	held          bool
}

// byHand does to a pod what somebody asks for. Whether it is held then is what the
// root dir says: an agent that died may have written that down or not.
func (w *world) byHand(verb string, key pod.Key, container string) error {
	if w.agent == nil {
		return errAway
	}
	synctest.Wait() // what happens at this instant comes before
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reply, loop := make(chan error, 1), w.agent.loop
	w.laws.touch(verb, key, container)
	go func() {
		switch {
		case verb == "stop":
			reply <- loop.Stop(ctx, key)
		case verb == "start":
			reply <- loop.Start(ctx, key)
		case container != "":
			reply <- loop.RestartContainer(ctx, key, container)
		default:
			reply <- loop.Restart(ctx, key)
		}
	}()
	var err error
	select {
	case err = <-reply:
	case <-w.agent.fence:
		cancel()
		<-reply
		w.crash()
		err = errAway
	}
	synctest.Wait()
	data, _ := w.disk.read(holds)
	held := strings.Contains(string(data), `"`+key.String()+`"`)
	if err == nil && (verb == "stop" && !held || verb == "start" && held) {
		w.laws.violate(handLaw, "%s of %s is not written down", verb, key)
	}
	w.laws.touch(verb, key, container)
	w.laws.holds(key, held)
	w.fate.Trace("%s of %s/%s by hand: %t, held %t", verb, key.Name, container, err == nil, held)
	return err
}

// handled is the driver doing something by hand to some pod.
func (d *driver) handled() bool {
	if d.agent == nil {
		return false
	}
	d.truth.mu.Lock()
	keys := slices.SortedFunc(maps.Keys(d.truth.said), pod.Key.Compare)
	d.truth.mu.Unlock()
	if len(keys) == 0 {
		return false
	}
	key := pick(d.r, keys)
	verb, container := pick(d.r, []string{"stop", "stop", "start", "start", "start", "restart", "restart"}), ""
	if verb == "restart" && d.r.IntN(2) == 0 {
		versions, _ := d.truth.now(key)
		if len(versions) == 0 {
			return false
		}
		container = pick(d.r, versions[0].Object.Spec.Containers).Name
	}
	return d.byHand(verb, key, container) == nil
}

func (l *laws) hand(key pod.Key) *hand {
	if l.hands[key] == nil {
		l.hands[key] = &hand{containers: map[string]time.Time{}}
	}
	return l.hands[key]
}

// touch notes that something is, or was just done by hand.
func (l *laws) touch(verb string, key pod.Key, container string) {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	h, now := l.hand(key), time.Now()
	switch {
	case container != "":
		h.containers[container] = now
	default:
		h.at = now
		if verb == "restart" {
			h.restarted = now
		}
	}
	for what := range l.makes { // back-off begins anew
		if strings.HasPrefix(what, key.String()) {
			delete(l.makes, what)
		}
	}
}

func (l *laws) holds(key pod.Key, held bool) {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	l.hand(key).held = held
}

// isHeld reports whether a pod is held by hand.
func (l *laws) isHeld(key pod.Key) bool {
	l.truth.mu.Lock()
	defer l.truth.mu.Unlock()
	return l.hands[key] != nil && l.hands[key].held
}

// handed reports whether somebody asked for the end of a container.
func (l *laws) handed(c *life) bool {
	h := l.hands[c.Key]
	return h != nil && (h.held || !c.made.After(h.at) || !c.made.After(h.containers[c.Identity.Name]))
}

// heldStarts checks that nothing of a held pod starts, but what was under way.
func (l *laws) heldStarts(c *life) {
	if h := l.hands[c.Key]; h != nil && h.held && time.Since(h.at) > time.Minute && !time.Now().Before(l.rough) {
		l.violate(handLaw, "%s starts, and its pod is held by hand for %s", c.Name, time.Since(h.at))
	}
}

// heldPod returns what is wrong with a pod that is held.
func heldPod(want *pod.Pod, have []fake.View) string {
	for _, c := range have {
		switch {
		case c.State == runtime.Running:
			return c.Name + " runs, and is held by hand"
		case c.PodHash != want.Hash:
			return c.Name + " is of another generation"
		}
	}
	return ""
}

// Law 5, where a pod is stopped and started by hand: whatever effect is the agent's
// last, the same containers are made, and what was asked for comes about.
func TestCrashInAStopByHand(t *testing.T) {
	insist := func(s *script, verb, container string) {
		for s.byHand(verb, pod.Key{Namespace: "default", Name: "web-" + nodeName}, container) != nil {
			s.wait(time.Second)
		}
		s.wait(3 * time.Minute)
	}
	// A sandbox and two containers twice, and one restarted.
	crashEverywhere(t, 7, func(s *script) {
		s.put()
		s.wait(3 * time.Minute)
		insist(s, "stop", "")
		insist(s, "start", "")
		insist(s, "restart", "a")
	})
}

// oblivious forgets what is held with the agent.
type oblivious struct{ session }

func (o oblivious) ReadFile(name string) ([]byte, error) {
	if name == holds {
		return nil, missing("open", name)
	}
	return o.session.ReadFile(name)
}
