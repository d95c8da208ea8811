package events_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server/events"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func unhealthy(container, message string) pod.Event {
	return pod.Event{
		Type: pod.EventWarning, Reason: "Unhealthy", Pod: pod.Key{Namespace: "n", Name: "web"}, UID: "u",
		Container: container, Message: message,
	}
}

func list(t *testing.T, l *events.Log, now time.Time) []v1.Event {
	t.Helper()
	all, _, err := l.List(t.Context(), 0, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What is said again is counted, and goes to the end.
func TestRecordCountsRepeats(t *testing.T) {
	l := events.New(events.Config{Node: "node"})
	l.Record(unhealthy("a", "503"), begin)
	l.Record(unhealthy("b", "503"), begin.Add(time.Second))
	l.Record(unhealthy("a", "503"), begin.Add(time.Minute))
	all := list(t, l, begin.Add(time.Minute))
	if len(all) != 2 {
		t.Fatalf("%d events, want 2", len(all))
	}
	b, a := all[0], all[1]
	if b.InvolvedObject.FieldPath != "spec.containers{b}" || b.Count != 1 {
		t.Errorf("first is %+v, want b's, once", b)
	}
	if a.Count != 2 || !a.FirstTimestamp.Time.Equal(begin) || !a.LastTimestamp.Time.Equal(begin.Add(time.Minute)) {
		t.Errorf("a's is %+v, want count 2 from %s on for a minute", a, begin)
	}
	if a.Name == b.Name || a.Namespace != "n" || a.InvolvedObject.Kind != "Pod" || a.InvolvedObject.Name != "web" || a.InvolvedObject.UID != "u" {
		t.Errorf("about the wrong object: %+v and %+v", a, b)
	}
}

// An event of no pod is the node's.
func TestRecordOfTheNode(t *testing.T) {
	l := events.New(events.Config{Node: "node"})
	l.Record(pod.Event{Type: pod.EventWarning, Reason: pod.SystemOOM, Message: "victim"}, begin)
	e := list(t, l, begin)[0]
	if e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name != "node" || e.Namespace != "default" || e.Source.Host != "node" || e.Type != "Warning" {
		t.Errorf("got %+v", e)
	}
}

// Messages that differ each time do not push everything else out.
func TestRecordCombinesSimilar(t *testing.T) {
	l := events.New(events.Config{Node: "node"})
	for i := range 15 {
		l.Record(unhealthy("a", fmt.Sprint("failed at ", i)), begin.Add(time.Duration(i)*time.Second))
	}
	all := list(t, l, begin)
	if len(all) != 11 {
		t.Fatalf("%d events, want 11", len(all))
	}
	if last := all[10]; last.Count != 5 || last.Message != "(combined from similar events): failed at 14" {
		t.Errorf("the combined one: %d times %q", last.Count, last.Message)
	}
	l.Record(unhealthy("a", "later"), begin.Add(20*time.Minute))
	all = list(t, l, begin)
	if last := all[len(all)-1]; last.Count != 1 || last.Message != "later" {
		t.Errorf("after a quiet time: %d times %q, want a new event", last.Count, last.Message)
	}
}

// A client that has seen everything waits for the next event.
func TestListWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := events.New(events.Config{Node: "node"})
		l.Record(unhealthy("a", "one"), time.Now())
		all, revision, err := l.List(t.Context(), 0, time.Now)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		go func() {
			time.Sleep(time.Minute)
			l.Record(unhealthy("a", "two"), time.Now())
		}()
		asked := time.Now()
		all, _, err = l.List(t.Context(), revision, time.Now)
		if err != nil || len(all) != 1 || all[0].Message != "two" || time.Since(asked) != time.Minute {
			t.Errorf("got %v, %v after %s", all, err, time.Since(asked))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := l.List(ctx, revision+1, time.Now); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the error of the context", err)
		}
	})
}

// Whatever happens, there are never more than may be kept, none is older than
// that, and none is there twice.
func TestRecordIsBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := events.New(events.Config{Node: "node", TTL: time.Minute, Max: 5})
		now := begin
		for range rapid.IntRange(1, 60).Draw(rt, "n") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "s")) * time.Second)
			l.Record(unhealthy(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "container"), rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(rt, "message")), now)
		}
		all := list(t, l, now)
		if len(all) == 0 || len(all) > 5 {
			rt.Fatalf("%d events", len(all))
		}
		seen := make(map[string]bool)
		for i, e := range all {
			what := e.InvolvedObject.FieldPath + e.Message
			if now.Sub(e.LastTimestamp.Time) >= time.Minute || seen[what] || i > 0 && e.LastTimestamp.Before(&all[i-1].LastTimestamp) {
				rt.Fatalf("event %d of %v", i, all)
			}
			seen[what] = true
		}
	})
}
