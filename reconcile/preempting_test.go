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

// Nobody is ended for a critical pod that is not admitted all the same.
func TestNobodyYieldsInVain(t *testing.T) {
	low := reconcile.Waiting{Reason: reconcile.OutOfDisk, Message: "100Mi are left"}
	for name, c := range map[string]struct {
		begin, end func(*rig)
		reason     string
	}{
		"a disk that is nearly full": {
			func(r *rig) { r.loop.Press(r.t.Context(), reconcile.Pressure{Looked: true, LowDisk: low}) },
			func(r *rig) { r.loop.Press(r.t.Context(), reconcile.Pressure{Looked: true}) },
			"OutOfDisk",
		},
		"a machine that goes down": {
			func(r *rig) {
				groups := []reconcile.ShutdownGroup{{Priority: 0}, {Priority: 1000}, {Priority: 2000000000}}
				r.loop.Shutdown(r.t.Context(), &reconcile.Shutdown{Groups: groups})
			},
			func(r *rig) { r.loop.Shutdown(r.t.Context(), nil) },
			"NodeShutdown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
				job := needing("job", "3") + "  restartPolicy: Never\n  priority: 1000\n"
				r.want(job)
				r.after(time.Second)
				c.begin(r)
				r.want(job, critical("z", "2"))
				expect(t, "meanwhile", r.after(time.Minute), map[string]string{"job": "Running", "z": "Pending " + c.reason})
				c.end(r)
				expect(t, "after it", r.after(time.Minute), map[string]string{"job": "Failed Preempting", "z": "Running"})
			})
		})
	}
}

// As the kubelet has it, a critical pod takes nobody's room while its ports are others'.
func TestPortsAreNotPreempted(t *testing.T) {
	ported := func(text string) string {
		return strings.Replace(text, "image: present:1,", "image: present:1, ports: [{containerPort: 1, hostPort: 80}],", 1)
	}
	withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
		z, victim, c := ported(needing("z", "500m")), needing("victim", "3"), ported(critical("c", "2"))
		r.want(z, victim)
		r.after(time.Second)
		r.want(z, victim, c)
		expect(t, "the port is in use", r.after(time.Hour), map[string]string{"c": "Pending NodePorts", "victim": "Running", "z": "Running"})
		if got := r.preempted(); got != nil {
			t.Errorf("events: %q", got)
		}
		r.want(victim, c)
		expect(t, "the port is free", r.after(time.Minute), map[string]string{"c": "Running", "victim": "Pending OutOfcpu"})
	})
}

// What was kept for a pod that waits is free as soon as that is gone, or asks for less.
func TestWaiterThatGoesLeavesRoom(t *testing.T) {
	for name, instead := range map[string][]string{"it is removed": nil, "it is edited": {needing("b", "9")}} {
		t.Run(name, func(t *testing.T) {
			withRoom(t, reconcile.Allocatable{CPU: 4000}, func(r *rig) {
				job, young := needing("a", "3")+"  restartPolicy: Never\n", needing("c", "1")
				r.want(job, needing("b", "4"), young)
				if got := the(t, r.after(time.Second), "c").Object.Status; got.Phase != "Pending" || !strings.Contains(got.Message, "kept for pod default/b-node") {
					t.Errorf("the younger one is %s: %s", got.Phase, got.Message)
				}
				r.want(append(instead, job, young)...)
				if got := the(t, r.after(time.Second), "c").Object.Status; got.Phase != "Running" {
					t.Errorf("then it is %s: %s", got.Phase, got.Message)
				}
			})
		})
	}
}
