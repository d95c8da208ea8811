package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/reconcile"
)

// cpusOf returns what each running container may use, as the engine has it, and fails
// where one is not the first attempt.
func cpusOf(t *testing.T, snap reconcile.Snapshot) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, v := range snap.Pods {
		for _, c := range v.Containers {
			if !c.IsSandbox() && c.State == "running" {
				out[v.Object.Name[:1]+"/"+c.Name] = c.Resources.CPUSet
				if c.Resources.CPUQuota > 0 {
					out[v.Object.Name[:1]+"/"+c.Name] += " with a quota"
				}
				if c.Attempt > 0 {
					t.Errorf("container %s of %s was restarted", c.Name, v.Object.Name)
				}
			}
		}
	}
	return out
}

func pinnedText(name, resources string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {terminationGracePeriodSeconds: 2, containers: [{name: a, image: 'present:1', resources: {limits: {%s}}}]}\n", name, resources)
}

// Whole CPUs of a Guaranteed pod are its own, and no quota holds it back on them, as
// with a kubelet since 1.33: the pool of all others shrinks and grows in place, over a
// restart of the agent too, and who finds too few waits.
func TestPinning(t *testing.T) {
	inRig(t, func(r *rig) {
		expect := func(when string, snap reconcile.Snapshot, want map[string]string) {
			t.Helper()
			if diff := cmp.Diff(want, cpusOf(t, snap)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		restart := func(pinning reconcile.Pinning) {
			r.stop()
			r.pinning = pinning
			r.start(reconcile.Policy{})
		}
		static := reconcile.Pinning{Static: true, Online: machine(1, 2), Reserved: set("0")}
		none := reconcile.Pinning{Online: machine(1, 2)}
		shared, first, second := pinnedText("s", ""), pinnedText("p", "cpu: 2, memory: 64Mi"), pinnedText("o", "cpu: 2, memory: 64Mi")

		restart(none)
		r.want(shared)
		expect("without the policy", r.after(time.Minute), map[string]string{"s/a": ""})
		restart(static)
		r.want(shared)
		expect("with nobody to give them to", r.after(time.Minute), map[string]string{"s/a": "0-3"})
		r.want(shared, first)
		expect("one has two", r.after(time.Minute), map[string]string{"s/a": "0,2", "p/a": "1,3"})

		restart(static)
		r.want(shared, second, first)
		snap := r.after(time.Minute)
		expect("after a restart", snap, map[string]string{"s/a": "0,2", "p/a": "1,3"})
		for _, v := range snap.Pods {
			if waits := v.Plan.Blocked.Reason == reconcile.UnexpectedAdmissionError; waits != (v.Object.Name == "o-node") {
				t.Errorf("%s waits: %v", v.Object.Name, v.Plan.Blocked)
			}
		}
		r.want(shared, second)
		expect("the first is gone", r.after(time.Minute), map[string]string{"s/a": "0,2", "o/a": "1,3"})
		r.want(shared, pinnedText("o", "cpu: 1, memory: 64Mi"))
		expect("edited in place", r.after(time.Minute), map[string]string{"s/a": "0,2-3", "o/a": "1"})

		restart(none)
		r.want(shared, pinnedText("o", "cpu: 1, memory: 64Mi"))
		expect("without the policy again", r.after(time.Minute), map[string]string{"s/a": "0-3", "o/a": "0-3 with a quota"})
		restart(static)
		r.want(shared, pinnedText("o", "cpu: 1, memory: 64Mi"))
		expect("and with it", r.after(time.Minute), map[string]string{"s/a": "0-1,3", "o/a": "2"})
		r.want(shared)
		expect("all are gone", r.after(time.Minute), map[string]string{"s/a": "0-3"})
	})
}

// A pod that ran before there were CPUs to give goes on where there are too few.
func TestPinningOfWhatRuns(t *testing.T) {
	inRig(t, func(r *rig) {
		greedy := pinnedText("g", "cpu: 4, memory: 64Mi")
		r.want(greedy)
		r.after(time.Minute)
		r.stop()
		r.pinning = reconcile.Pinning{Static: true, Online: machine(1, 2), Reserved: set("0")}
		r.start(reconcile.Policy{})
		r.want(greedy)
		if diff := cmp.Diff(map[string]string{"g/a": "0-3 with a quota"}, cpusOf(t, r.after(time.Minute))); diff != "" {
			t.Error(diff)
		}
		if n := r.log.count("too few CPUs"); n != 1 {
			t.Errorf("said %d times, want once", n)
		}
	})
}

// With its CPUs a container's quota comes and goes, which is no edit that restarts it.
func TestPinningRestartsNothing(t *testing.T) {
	inRig(t, func(r *rig) {
		text := strings.Replace(pinnedText("p", "cpu: 1, memory: 64Mi"), "resources", "resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}], resources", 1)
		for _, static := range []bool{false, true, false} {
			r.stop()
			r.pinning = reconcile.Pinning{Static: static, Online: machine(1, 2), Reserved: set("0")}
			r.start(reconcile.Policy{})
			r.want(text)
			got := cpusOf(t, r.after(time.Minute))["p/a"]
			if quota := strings.Contains(got, "quota"); quota == static {
				t.Errorf("static %v: it has CPUs %q", static, got)
			}
		}
	})
}

// A version that runs on, because the one that is wanted in its place is refused, keeps
// the CPUs that are its own.
func TestPinningOfWhatRunsOn(t *testing.T) {
	inRig(t, func(r *rig) {
		r.stop()
		r.pinning = reconcile.Pinning{Static: true, Online: machine(1, 2), Reserved: set("0")}
		r.start(reconcile.Policy{})
		r.want(pinnedText("p", "cpu: 2, memory: 64Mi"))
		r.after(time.Minute)
		refused := strings.Replace(pinnedText("p", "cpu: 2, memory: 64Mi"), "containers:", "hostname: other, nodeSelector: {no: such}, containers:", 1)
		r.want(refused)
		snap := r.after(time.Minute)
		if got := snap.Pods[0].Plan.Blocked.Reason; got != reconcile.NodeAffinity {
			t.Errorf("it waits for %q", got)
		}
		if diff := cmp.Diff(map[string]string{"p/a": "1,3"}, cpusOf(t, snap)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
