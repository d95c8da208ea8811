package reconcile_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// Which group a pod belongs to, as the kubelet has it.
func TestShutdownGroup(t *testing.T) {
	d := reconcile.Shutdown{Groups: []reconcile.ShutdownGroup{{Priority: 0}, {Priority: 1000}, {Priority: 2000000000}}}
	for priority, want := range map[int32]int{-5: 0, 0: 0, 999: 0, 1000: 1, 1999999999: 1, 2000000000: 2, 2000001000: 2} {
		p := &v1.Pod{Spec: v1.PodSpec{Priority: &priority}}
		if got := d.Group(p); got != want {
			t.Errorf("priority %d is in group %d, want %d", priority, got, want)
		}
	}
}

// When the machine goes down pods end by priority, within their group's period, and no
// new one comes in. Called off, or after the reboot, all of them run again, those too
// that would not be restarted.
func TestShutdown(t *testing.T) {
	inRig(t, func(r *rig) {
		const endless = "{name: c, image: present:1, command: [ignore-term]}"
		plain := manifest("plain", "", endless) + "  terminationGracePeriodSeconds: 60\n"
		job := manifest("job", "", "{name: c, image: present:1}") + "  restartPolicy: Never\n"
		critical := manifest("critical", "", "{name: c, image: present:1}") + "  priority: 2000000000\n"
		fresh := manifest("fresh", "", "{name: c, image: present:1}")
		up := func() (names []string) {
			for _, c := range r.engine.Containers() {
				if c.State == runtime.Running && c.Identity.Name == "c" {
					names = append(names, strings.TrimSuffix(c.Identity.Key.Name, "-node"))
				}
			}
			return names
		}
		r.want(plain, job, critical)
		r.after(time.Minute)
		d := reconcile.Shutdown{Groups: []reconcile.ShutdownGroup{{Priority: 0, Grace: 20 * time.Second}, {Priority: 2000000000, Grace: 10 * time.Second}}}
		begin := func(turn int) {
			next := d
			next.Turn = turn
			r.loop.Shutdown(r.t.Context(), &next)
		}
		begin(0)
		r.want(plain, job, critical, fresh)
		snap := r.after(21 * time.Second)
		if got := strings.Join(up(), " "); got != "critical" {
			t.Errorf("in the turn of the others %q run", got)
		}
		expect(t, "in the turn of the others", snap, map[string]string{
			"plain": "Failed Terminated", "job": "Failed Terminated", "critical": "Running", "fresh": "Pending NodeShutdown",
		})
		begin(1)
		expect(t, "in the turn of the critical ones", r.after(time.Second), map[string]string{
			"plain": "Failed Terminated", "job": "Failed Terminated", "critical": "Failed Terminated", "fresh": "Pending NodeShutdown",
		})
		if got := up(); got != nil {
			t.Errorf("%q run", got)
		}
		running := map[string]string{"plain": "Running", "job": "Running", "critical": "Running", "fresh": "Running"}
		r.loop.Shutdown(r.t.Context(), nil)
		expect(t, "it was called off", r.after(time.Minute), running)
		begin(1)
		r.after(time.Minute)
		r.stop()
		r.engine.Down(false)
		r.engine.Up()
		r.start(reconcile.Policy{})
		r.want(plain, job, critical, fresh)
		expect(t, "the machine is up again", r.after(time.Minute), running)
	})
}
