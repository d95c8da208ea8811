package reconcile_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/reconcile/probe"
)

// told has the events that a loop hands on.
type told struct {
	mu   sync.Mutex
	list []pod.Event
}

func (l *told) take(e pod.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
}

// lines returns one line for each event since the last call, by pods: of two pods
// either can be first (law 7).
func (l *told) lines() (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortStableFunc(l.list, func(a, b pod.Event) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
	for _, e := range l.list {
		lines = append(lines, strings.Join([]string{string(e.Type), e.Reason, e.Pod.Name + "/" + e.Container, e.Message}, " "))
	}
	l.list = nil
	return lines
}

// What happens to a pod is told in the words of the kubelet.
func TestEvents(t *testing.T) {
	inRig(t, func(r *rig) {
		expect := func(what string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, r.told.lines()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		r.want(manifest("a", "", "{name: c, image: remote:1}"))
		r.after(time.Second)
		expect("its image is pulled and it starts",
			"Normal NodeReady / Node node status is now: NodeReady",
			`Normal Pulling a-node/ Pulling image "remote:1"`,
			`Normal Pulled a-node/ Successfully pulled image "remote:1" in 0s`,
			"Normal Created a-node/c Created container: c",
			"Normal Started a-node/c Started container c",
		)
		r.after(time.Hour)
		expect("it runs")
		r.want(manifest("a", "", "{name: c, image: present:1}"))
		r.after(time.Minute)
		expect("it is edited",
			"Normal Killing a-node/c Container c definition changed, will be restarted",
			`Normal Pulled a-node/c Container image "present:1" already present on machine`,
			"Normal Created a-node/c Created container: c",
			"Normal Started a-node/c Started container c",
		)
		r.want()
		r.after(time.Minute)
		expect("it is removed", "Normal Killing a-node/c Stopping container c")
		r.want(manifest("b", "", "{name: c, image: absent:1, imagePullPolicy: Never}"))
		r.after(15 * time.Second)
		expect("it may not pull", `Warning ErrImageNeverPull b-node/c The image is not present and its pull policy is Never`)
		r.want(manifest("d", "", "{name: c, image: present:1, args: [exit=1]}"))
		r.after(15 * time.Second)
		backOff := "Warning BackOff d-node/c Back-off restarting failed container c in pod d-node_default(" + string(the(t, r.after(0), "d").Object.UID) + ")"
		const present = `Normal Pulled d-node/c Container image "present:1" already present on machine`
		expect("it crashes",
			present,
			"Normal Created d-node/c Created container: c",
			"Normal Started d-node/c Started container c",
			present,
			"Normal Created d-node/c Created container: c",
			"Normal Started d-node/c Started container c",
			backOff,
			present,
			"Normal Created d-node/c Created container: c",
			"Normal Started d-node/c Started container c",
			backOff,
		)
	})
}

// A container that its probe ends is told as unhealthy, then as killed for it.
func TestEventsOfProbes(t *testing.T) {
	inRig(t, func(r *rig) {
		r.check.Store(func(probe.Check) probe.Result {
			return probe.Result{Outcome: probe.Failure, Reason: "connection refused"}
		})
		r.want(manifest("a", "", "{name: c, image: present:1, livenessProbe: {failureThreshold: 2, periodSeconds: 5, exec: {command: [x]}}}"))
		r.after(20 * time.Second)
		var got []string
		for _, line := range r.told.lines() {
			if !strings.Contains(line, " Created ") && !strings.Contains(line, " Pulled ") && !strings.Contains(line, " NodeReady ") {
				got = append(got, line)
			}
		}
		want := []string{
			"Normal Started a-node/c Started container c",
			"Warning Unhealthy a-node/c Liveness probe failed: connection refused",
			"Warning Unhealthy a-node/c Liveness probe failed: connection refused",
			"Normal Killing a-node/c Container c failed liveness probe, will be restarted",
		}
		if len(got) < len(want) {
			t.Fatalf("got %q", got)
		}
		if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
			t.Error(diff)
		}
	})
}

// What the node is short of is told once, however its numbers change.
func TestEventOfPressureIsToldOnce(t *testing.T) {
	inRig(t, func(r *rig) {
		y := memoryShort()
		r.loop.Press(r.t.Context(), y)
		r.want(manifest("a", "", web))
		for _, left := range []string{"80Mi", "70Mi", "60Mi"} {
			r.after(10 * time.Second)
			y.Memory.Message = left + " of memory are left"
			r.loop.Press(r.t.Context(), y)
		}
		got := the(t, r.after(time.Second), "a").Plan.Blocked.Message
		lines := slices.DeleteFunc(r.told.lines(), func(line string) bool { return strings.Contains(line, " NodeReady ") })
		if len(lines) != 1 || got != "60Mi of memory are left" {
			t.Errorf("it waits: %q; events: %q", got, lines)
		}
	})
}

// An engine that goes away takes the node's readiness along, whoever asks or not.
func TestEventsOfTheNode(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want()
		r.after(time.Hour)
		r.engine.Down(true)
		r.after(time.Hour)
		r.engine.Up()
		r.after(time.Minute)
		want := []string{
			"Normal NodeReady / Node node status is now: NodeReady",
			"Normal NodeNotReady / Node node status is now: NodeNotReady",
			"Normal NodeReady / Node node status is now: NodeReady",
		}
		if diff := cmp.Diff(want, r.told.lines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A condition of the node has since when it is so, on the clock of the wall, however often
// it is asked for and its numbers change.
func TestSinceWhenConditionsAreSo(t *testing.T) {
	inRig(t, func(r *rig) {
		r.want()
		began := r.after(time.Second).Since
		r.after(time.Hour)
		well := reconcile.Pressure{Looked: true}
		r.loop.Press(r.t.Context(), well)
		first := r.after(time.Minute).Since
		if first.Memory.Sub(began.Memory) < time.Hour || first.Memory != first.Disk || first.Ready != began.Ready {
			t.Errorf("after the first look %+v, before it %+v", first, began)
		}
		short := memoryShort()
		r.loop.Press(r.t.Context(), short)
		met := r.after(time.Minute).Since
		if got := met.Memory.Sub(first.Memory); got != time.Minute || met.Disk != first.Disk || met.PIDs != first.PIDs || met.Ready != first.Ready {
			t.Errorf("memory is short since %s after the first look: %+v", got, met)
		}
		short.Memory.Message = "1Mi of memory is left"
		r.loop.Press(r.t.Context(), short)
		if got := r.after(time.Minute).Since; got != met {
			t.Errorf("other numbers of one shortage: %+v, want %+v", got, met)
		}
		r.engine.Down(true)
		away := r.after(time.Hour).Since
		if got := away.Ready.Sub(met.Memory); got < 2*time.Minute || got > 3*time.Minute || away.Memory != met.Memory {
			t.Errorf("away since %s after memory got short: %+v", got, away)
		}
	})
}

// An error in a manifest is told when it comes, not with each look at the file.
func TestEventsOfManifests(t *testing.T) {
	inRig(t, func(r *rig) {
		line := 0
		set := func(messages ...string) pod.Set {
			origin := pod.OriginStatus{}
			for _, m := range messages {
				line++ // what stands before it may grow
				origin.Problems = append(origin.Problems, pod.Problem{Severity: pod.Error, File: "/m/a.yaml", Line: line, Message: m})
			}
			origin.Problems = append(origin.Problems, pod.Problem{Severity: pod.Warning, File: "/m/a.yaml", Message: "deprecated"})
			return pod.Set{Sources: []pod.Source{{Spoken: true, Origins: []pod.OriginStatus{origin}}}}
		}
		for _, s := range []pod.Set{set("no name"), set("no name"), set("no name", "no image"), set("no image"), set("no name")} {
			r.sets <- s
			r.after(time.Second)
		}
		got := slices.DeleteFunc(r.told.lines(), func(line string) bool { return strings.Contains(line, " NodeReady ") })
		want := []string{
			"Warning FailedValidation / Error validating manifest: /m/a.yaml:1: error: no name",
			"Warning FailedValidation / Error validating manifest: /m/a.yaml:4: error: no image",
			"Warning FailedValidation / Error validating manifest: /m/a.yaml:6: error: no name",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
