package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/reconcile"
)

// critical is needing of a pod that takes the room of others.
func critical(name, cpu string) string { return needing(name, cpu) + "  priority: 2000000000\n" }

// preempted returns the events that tell of a preemption since the last look.
func (r *rig) preempted() (events []string) {
	for _, line := range r.told.lines() {
		if strings.Contains(line, "Preempting") {
			events = append(events, line)
		}
	}
	return events
}

// end kills the container of a pod.
func (r *rig) end(name string) {
	for _, c := range r.engine.Containers() {
		if c.Identity.Key.Name == name+"-node" && c.Identity.Name == "c" {
			r.engine.Kill(c.ID)
		}
	}
}

// A critical job that has come to its end needs no room any more, whatever it is that
// has it looked at again (law 5).
func TestFinishedJobPreemptsNobody(t *testing.T) {
	job, other := critical("job", "3")+"  restartPolicy: Never\n", needing("other", "3")+"  restartPolicy: OnFailure\n"
	for name, again := range map[string]func(*rig){
		"another agent":              func(r *rig) { r.stop(); r.start(reconcile.Policy{}); r.want(job, other) },
		"its manifest is read again": func(r *rig) { r.want(job, other); r.after(6 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
				r.want(job)
				r.after(time.Second)
				r.end("job")
				r.after(time.Second)
				r.want(job, other)
				want := map[string]string{"job": "Failed", "other": "Running"}
				expect(t, "the job has ended", r.after(time.Minute), want)
				again(r)
				snap := r.after(time.Minute)
				if got := the(t, snap, "other").Object.Status; got.Phase != "Running" {
					t.Errorf("the other pod is %s %s", got.Phase, got.Reason)
				}
				if got := r.preempted(); got != nil {
					t.Errorf("events: %q", got)
				}
				if n := r.log.count("pod waits"); n > 0 {
					t.Errorf("%d lines say that a pod waits", n)
				}
			})
		})
	}
}

// Nor does it keep what it had from those that lost nothing but their containers while
// no agent was there.
func TestFinishedJobKeepsNoRoom(t *testing.T) {
	withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
		job, old, fresh := needing("job", "3")+"  restartPolicy: Never\n", needing("old", "3"), needing("fresh", "3")
		r.want(job)
		r.after(time.Second)
		r.end("job")
		r.after(time.Second)
		r.want(job, old)
		r.after(time.Second)
		r.stop()
		for _, c := range r.engine.Containers() {
			r.engine.Destroy(c.ID)
		}
		r.start(reconcile.Policy{})
		r.want(job, old, fresh)
		expect(t, "after a restart", r.after(time.Minute), map[string]string{"fresh": "Pending OutOfcpu", "job": "Failed", "old": "Running"})
	})
}
