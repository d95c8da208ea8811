package agent_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/pod"
)

// What the node gets short of, and has enough of again, is told once each, with the numbers
// of when it began.
func TestSayPressure(t *testing.T) {
	over := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	report := func(short map[pod.Cause]string) gc.Report {
		r := gc.Report{Conditions: make(map[pod.Cause]gc.Condition)}
		for _, c := range []pod.Cause{pod.MemoryPressure, pod.DiskPressure, pod.PIDPressure} {
			r.Conditions[c] = gc.Condition{Message: short[c]}
			if short[c] == "" {
				r.Conditions[c] = gc.Condition{Over: over}
			}
		}
		return r
	}
	well := report(nil)
	memory := func(left string) gc.Report {
		return report(map[pod.Cause]string{pod.MemoryPressure: "memory.available is " + left + ", the threshold is 100Mi"})
	}
	got := agent.Pressed(t.Context(), "n",
		well, well, memory("50Mi"), memory("40Mi"), memory("60Mi"), well, well,
		report(map[pod.Cause]string{pod.DiskPressure: "nodefs.available is 1Mi, the threshold is 10Mi", pod.PIDPressure: "pid.available is 7, the threshold is 9"}), well,
		memory("30Mi"),
	)
	want := []string{
		"Normal NodeHasInsufficientMemory: Node n status is now: NodeHasInsufficientMemory: memory.available is 50Mi, the threshold is 100Mi",
		"Normal NodeHasSufficientMemory: Node n status is now: NodeHasSufficientMemory",
		"Normal NodeHasDiskPressure: Node n status is now: NodeHasDiskPressure: nodefs.available is 1Mi, the threshold is 10Mi",
		"Normal NodeHasInsufficientPID: Node n status is now: NodeHasInsufficientPID: pid.available is 7, the threshold is 9",
		"Normal NodeHasNoDiskPressure: Node n status is now: NodeHasNoDiskPressure",
		"Normal NodeHasSufficientPID: Node n status is now: NodeHasSufficientPID",
		"Normal NodeHasInsufficientMemory: Node n status is now: NodeHasInsufficientMemory: memory.available is 30Mi, the threshold is 100Mi",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
