package reconcile_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/cgroup"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
)

// groups are pods' cgroups, which cannot be written to while broken.
type groups struct{ broken atomic.Bool }

var errReadOnly = errors.New("cgroup: read-only file system")

func (g *groups) do() error {
	if g.broken.Load() {
		return errReadOnly
	}
	return nil
}

func (g *groups) EnsurePod(_ context.Context, p cgroup.Pod) (string, error) {
	return "/kubepods/pod" + string(p.UID), g.do()
}
func (g *groups) SetPod(context.Context, string, cgroup.Pod, bool) error { return g.do() }
func (g *groups) RemovePod(context.Context, types.UID) error             { return g.do() }

func onePod(name string) string {
	return manifest(name, "", "{name: a, image: present:1, command: [run]}")
}

// Cgroups that cannot be written to, or are gone, keep no pod from running that runs,
// nor its containers from being restarted. A new one says why it waits.
func TestBrokenCgroups(t *testing.T) {
	inRig(t, func(r *rig) {
		r.stop()
		g := new(groups)
		r.cgroups = g
		r.start(reconcile.Policy{})
		r.want(onePod("old"))
		if got := phases(r.after(time.Minute)); got["old"] != v1.PodRunning {
			t.Fatalf("got %v", got)
		}
		r.stop()
		g.broken.Store(true)
		r.start(reconcile.Policy{})
		r.want(onePod("old"), onePod("new"))
		r.after(time.Minute)
		for _, c := range r.engine.Containers() {
			if c.Identity.Name == "a" {
				r.engine.Kill(c.ID)
			}
		}
		snap := r.after(time.Minute)
		for _, v := range snap.Pods {
			status := v.Object.Status
			switch v.Plan.Key.Name {
			case "old-node":
				if status.Phase != v1.PodRunning || len(status.ContainerStatuses) != 1 || status.ContainerStatuses[0].RestartCount != 1 || status.ContainerStatuses[0].State.Running == nil {
					t.Errorf("old: %+v, want it restarted", status)
				}
			case "new-node":
				if v.Plan.Blocked.Reason != reconcile.FailedCreatePodSandBox || !strings.Contains(v.Plan.Blocked.Message, errReadOnly.Error()) {
					t.Errorf("new waits for %v", v.Plan.Blocked)
				}
			}
		}
		for _, c := range r.engine.Containers() {
			if c.Key.Name == "new-node" {
				t.Errorf("%s was made", c.Name)
			}
		}
		if n := r.log.count("update-cgroup failed"); n == 0 {
			t.Error("nothing says what cannot be done")
		}
		g.broken.Store(false)
		if got := phases(r.after(6 * time.Minute)); got["new"] != v1.PodRunning {
			t.Errorf("got %v once they are whole", got)
		}
	})
}

// An engine that will not do is refused at the start; what comes to be so later is said.
func TestRefusedEngine(t *testing.T) {
	inRig(t, func(r *rig) {
		r.stop()
		r.cgroups = new(groups)
		refusal := errors.New("the wrong driver")
		r.accept = func(_ context.Context, f runtime.Features) error {
			if f.CgroupDriver == runtime.Systemd {
				return refusal
			}
			return nil
		}
		r.start(reconcile.Policy{})
		r.want(onePod("web"))
		if got := phases(r.after(time.Minute)); got["web"] != v1.PodRunning {
			t.Fatalf("got %v", got)
		}
		r.engine.SetFeatures(runtime.Features{CgroupDriver: runtime.Systemd})
		r.engine.BreakConnections()
		if r.after(time.Minute); r.log.count("the wrong driver") != 1 {
			t.Errorf("said %d times, want once", r.log.count("the wrong driver"))
		}
		r.stop()
		ended := make(chan error, 1)
		loop := reconcile.New(reconcile.Config{Node: r.node}, reconcile.Deps{
			Runtime: r.engine.Client("/root"), Store: r.files, Volumes: r.volumes, Logs: noLogs{&r.linked}, Log: slog.New(slog.DiscardHandler), Cgroups: r.cgroups, Accept: r.accept,
		})
		go func() { ended <- loop.Run(r.t.Context(), r.sets) }()
		if err := <-ended; !errors.Is(err, refusal) {
			t.Errorf("ended with %v", err)
		}
		r.stop = func() {}
	})
}
