package agent_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/reconcile"
)

// A condition has when it came to be so and when it was looked at last, whoever asks when.
func TestNodeConditions(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	show := func(snap reconcile.Snapshot, assessed time.Time) (lines []string) {
		for _, c := range agent.NodeConditions(snap, assessed) {
			lines = append(lines, string(c.Type)+" "+string(c.Status)+" "+c.Reason+" since "+c.LastTransitionTime.Format("04:05")+" seen "+c.LastHeartbeatTime.Format("04:05"))
		}
		return lines
	}
	start := reconcile.Since{Ready: began, Memory: began, Disk: began, PIDs: began}
	for name, c := range map[string]struct {
		snap     reconcile.Snapshot
		assessed time.Time
		want     []string
	}{
		"nothing was looked at yet": {
			reconcile.Snapshot{Since: start, Looked: began}, time.Unix(0, 0),
			[]string{
				"MemoryPressure Unknown NotLookedYet since 00:00 seen 00:00", "DiskPressure Unknown NotLookedYet since 00:00 seen 00:00",
				"PIDPressure Unknown NotLookedYet since 00:00 seen 00:00", "Ready False KubeletNotReady since 00:00 seen 00:00",
			},
		},
		"memory got short while all else is well": {
			reconcile.Snapshot{
				Online: true, Looked: at(300), Pressure: reconcile.Pressure{Looked: true, Memory: reconcile.Shortage{Message: "10Mi"}},
				Since: reconcile.Since{Ready: at(1), Memory: at(400), Disk: at(2), PIDs: at(2)},
			}, at(410),
			[]string{
				"MemoryPressure True KubeletHasInsufficientMemory since 06:40 seen 06:50", "DiskPressure False KubeletHasNoDiskPressure since 00:02 seen 06:50",
				"PIDPressure False KubeletHasSufficientPID since 00:02 seen 06:50", "Ready True KubeletReady since 00:01 seen 05:00",
			},
		},
		"an engine that went away was seen to": {
			reconcile.Snapshot{Looked: at(300), Since: reconcile.Since{Ready: at(333), Memory: began, Disk: began, PIDs: began}}, time.Unix(0, 0),
			[]string{
				"MemoryPressure Unknown NotLookedYet since 00:00 seen 00:00", "DiskPressure Unknown NotLookedYet since 00:00 seen 00:00",
				"PIDPressure Unknown NotLookedYet since 00:00 seen 00:00", "Ready False KubeletNotReady since 05:33 seen 05:33",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, show(c.snap, c.assessed)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if kind := agent.NodeConditions(reconcile.Snapshot{Online: true, Shutdown: true}, began)[3]; kind.Type != v1.NodeReady || kind.Status != v1.ConditionFalse {
		t.Errorf("a node that goes down is %+v", kind)
	}
}
