package reconcile_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/reconcile/probe"
)

// failing returns what every check finds whose host is one of these; others do well.
func failing(hosts ...string) func(probe.Check) probe.Result {
	return func(c probe.Check) probe.Result {
		for _, host := range hosts {
			if c.Handler.TCPSocket.Host == host {
				return probe.Result{Outcome: probe.Failure, Reason: "connection refused"}
			}
		}
		return probe.Result{Outcome: probe.Success}
	}
}

func restarts(snap reconcile.Snapshot) (counts []int32) {
	for _, v := range snap.Pods {
		for _, c := range v.Object.Status.ContainerStatuses {
			counts = append(counts, c.RestartCount)
		}
	}
	return counts
}

// C099.
func TestLivenessRestartsOnlyThatContainer(t *testing.T) {
	inRig(t, func(r *rig) {
		r.check.Store(failing("sick"))
		r.want(manifest("a", "", "{name: c, image: present:1, livenessProbe: {tcpSocket: {port: 1, host: sick}, periodSeconds: 1}}, "+
			"{name: d, image: present:1, livenessProbe: {tcpSocket: {port: 1, host: well}, periodSeconds: 1}}"))
		snap := r.after(4500 * time.Millisecond)
		got := restarts(snap)
		if got[0] != 1 || got[1] != 0 {
			t.Errorf("after three failures: %d and %d restarts, want 1 and 0", got[0], got[1])
		}
		if last := snap.Pods[0].Object.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil {
			t.Error("nothing is known of its end")
		}
		r.check.Store(failing())
		if got := restarts(r.after(10 * time.Minute)); got[0] > 3 {
			t.Errorf("%d restarts after it was well", got[0])
		}
	})
}

// A container that a failed probe has stopped, or that ends in its grace period,
// is not asked meanwhile whether it lives: a command that is started in one that is
// being stopped hangs the engine.
func TestWhatIsBeingStoppedIsNotAskedWhetherItLives(t *testing.T) {
	inRig(t, func(r *rig) {
		var asked atomic.Int64
		r.check.Store(func(c probe.Check) probe.Result {
			asked.Add(1)
			return probe.Result{Outcome: probe.Success}
		})
		stubborn := "{name: c, image: present:1, command: [IGNORE], livenessProbe: {tcpSocket: {port: 1}, periodSeconds: 1}"
		r.want(manifest("a", "", strings.Replace(stubborn, "IGNORE", "run, ignore-term", 1)+"}"))
		r.after(5 * time.Second)
		before := asked.Load()
		r.want(manifest("a", "", strings.Replace(stubborn, "IGNORE", "run, ignore-term", 1)+", workingDir: /x}"))
		r.after(25 * time.Second)
		if n := asked.Load(); n != before {
			t.Errorf("it was asked %d times while it was being stopped", n-before)
		}
		r.after(30 * time.Second)
		if asked.Load() == before {
			t.Error("the next one is not asked")
		}
	})
}

// A container counts as running when its postStart hook is over, and not before.
func TestProbesWaitForThePostStartHook(t *testing.T) {
	inRig(t, func(r *rig) {
		var first atomic.Int64
		start := time.Now()
		r.check.Store(func(probe.Check) probe.Result {
			first.CompareAndSwap(0, int64(time.Since(start)))
			return probe.Result{Outcome: probe.Success}
		})
		r.want(manifest("a", "", "{name: c, image: present:1, lifecycle: {postStart: {sleep: {seconds: 5}}}, readinessProbe: {tcpSocket: {port: 1}}}"))
		r.after(time.Minute)
		if got := time.Duration(first.Load()); got != 5*time.Second {
			t.Errorf("it was probed first after %s, want 5 s", got)
		}
	})
}

// Failures alone, without a change of outcome, are no work for the planner.
func TestFailuresThatChangeNothingPlanNothing(t *testing.T) {
	inRig(t, func(r *rig) {
		r.check.Store(failing("sick"))
		r.want(manifest("a", "", "{name: c, image: present:1, readinessProbe: {tcpSocket: {port: 1, host: sick}, periodSeconds: 1}}"))
		before := r.after(time.Minute)
		c := before.Pods[0].Object.Status.ContainerStatuses[0]
		if c.Ready || !*c.Started || c.RestartCount != 0 {
			t.Errorf("status: %+v", c)
		}
		after := r.after(time.Minute)
		if before.Revision != after.Revision {
			t.Errorf("%d revisions in a minute of failures", after.Revision-before.Revision)
		}
		complaints := after.Pods[0].Complaints
		if len(complaints) != 1 || complaints[0].Message != "Readiness probe failed: connection refused" || complaints[0].Count < 120 {
			t.Errorf("complaints: %+v", complaints)
		}
		if n := r.log.count("probe does not succeed"); n != 1 {
			t.Errorf("it is said %d times", n)
		}
		r.check.Store(failing())
		snap := r.after(2 * time.Second)
		if !snap.Pods[0].Object.Status.ContainerStatuses[0].Ready || len(snap.Pods[0].Complaints) != 0 {
			t.Errorf("when it is well: %+v, %+v", snap.Pods[0].Object.Status.ContainerStatuses[0], snap.Pods[0].Complaints)
		}
	})
}

// A wall clock that jumps makes no probe early or late.
func TestProbesKeepToTheirOwnClock(t *testing.T) {
	for name, jump := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour back": -time.Hour, "not at all": 0} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				var first atomic.Int64
				start := time.Now()
				r.check.Store(func(probe.Check) probe.Result {
					first.CompareAndSwap(0, int64(time.Since(start)))
					return probe.Result{Outcome: probe.Success}
				})
				r.want(manifest("a", "", "{name: c, image: present:1, readinessProbe: {tcpSocket: {port: 1}, initialDelaySeconds: 60, periodSeconds: 1}}"))
				r.after(10 * time.Second)
				r.ahead.Store(int64(jump))
				r.after(5 * time.Minute)
				if got := time.Duration(first.Load()); got != time.Minute {
					t.Errorf("it was probed first after %s, want 1 m", got)
				}
			})
		})
	}
}

// Without probes nothing is handed over, and a pod that loses its probes is not
// probed any more.
func TestProbesComeAndGoWithTheManifest(t *testing.T) {
	inRig(t, func(r *rig) {
		var asked atomic.Int64
		r.check.Store(func(c probe.Check) probe.Result {
			asked.Add(1)
			return failing("sick")(c)
		})
		r.want(manifest("a", "", "{name: c, image: present:1}"))
		r.after(time.Minute)
		if asked.Load() != 0 {
			t.Error("a pod without probes was probed")
		}
		r.want(manifest("a", "", "{name: c, image: present:1, readinessProbe: {tcpSocket: {port: 1, host: sick}}}"))
		if c := r.after(time.Minute).Pods[0].Object.Status.ContainerStatuses[0]; c.Ready || c.RestartCount != 0 {
			t.Errorf("with a probe: %+v", c)
		}
		r.want(manifest("a", "", "{name: c, image: present:1}"))
		if c := r.after(time.Second).Pods[0].Object.Status.ContainerStatuses[0]; !c.Ready || c.RestartCount != 0 {
			t.Errorf("without it: %+v", c)
		}
		asked.Store(0)
		r.after(time.Minute)
		if n := asked.Load(); n != 0 {
			t.Errorf("it was probed %d times more", n)
		}
	})
}
