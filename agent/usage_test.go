package agent_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/docker"
)

// view is a pod of the world as the agent's loop sees it.
func (w *world) view(name string) reconcile.View {
	w.t.Helper()
	v := reconcile.View{Object: find(w.await("its state", runs(name, "app", 0)), name).Pod}
	engine, err := docker.New(docker.Config{RootDir: w.cfg.RootDir}, w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	defer engine.Close()
	list, err := engine.List(w.t.Context())
	for _, s := range list {
		var c runtime.Container
		if c, err = engine.Inspect(w.t.Context(), s.ID); c.UID == v.Object.UID {
			v.Containers = append(v.Containers, c)
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func TestWhatAPodUses(t *testing.T) {
	w := newWorld(t)
	const script = "dd if=/dev/zero of=/layer bs=1M count=5 2>/dev/null; dd if=/dev/zero of=/disk/a bs=1M count=3 2>/dev/null; dd if=/dev/zero of=/memory/a bs=1M count=2 2>/dev/null; " +
		"mkdir -p /disk/linked; ln /disk/a /disk/linked/a; head -c 200000 /dev/zero | tr '\\\\0' x; trap 'exit 0' TERM; touch /disk/up; sleep 3600 & wait"
	w.write("eater.yaml", manifest("{name: eater}",
		shell("app", script, "volumeMounts: [{name: disk, mountPath: /disk}, {name: memory, mountPath: /memory}]"),
		sleeping("beside"))+"  volumes: [{name: disk, emptyDir: {sizeLimit: 1Gi}}, {name: memory, emptyDir: {medium: Memory, sizeLimit: 8Mi}}]\n")
	w.start()
	v := w.view("eater")
	up := w.cfg.RootDir + "/pods/" + string(v.Object.UID) + "/volumes/kubernetes.io~empty-dir/disk/up"
	w.poll("it has written", func() bool { return exists(up) })
	var complaints bytes.Buffer
	begin := time.Now()
	p, holds := agent.PodUses(t.Context(), w.cfg.RootDir, v, slog.New(slog.NewTextHandler(&complaints, nil)))
	between := func(what string, got *int64, least, most int64) {
		t.Helper()
		if got == nil {
			t.Errorf("%s: not known", what)
		} else if *got < least || *got > most {
			t.Errorf("%s: %d, want %d to %d", what, *got, least, most)
		}
	}
	use := func(what string, got *stats.Usage, least, most int64) {
		t.Helper()
		if got == nil {
			t.Errorf("%s: not known", what)
			return
		}
		if got.Time.Before(begin) {
			t.Errorf("%s: of %v, before anybody looked", what, got.Time)
		}
		between(what, &got.Bytes, least, most)
	}
	const mib = 1 << 20
	between("memory of the pod", p.WorkingSet, 100<<10, 64*mib)
	between("processes of the pod", p.Processes, 5, 7) // two shells that wait for a sleep, and the sandbox
	if p.CPU == nil || *p.CPU <= 0 || *p.CPU > time.Since(begin)+time.Minute {
		t.Errorf("CPU of the pod: %v", p.CPU)
	}
	if p.Network == nil || p.Network.RxErrors != 0 {
		t.Errorf("network of the pod: %+v", p.Network)
	}
	app, beside := p.Containers["app"], p.Containers["beside"]
	between("processes of app", app.Processes, 2, 2)
	between("memory of beside", beside.WorkingSet, 10<<10, 16*mib)
	app, beside = holds.Containers["app"], holds.Containers["beside"]
	use("writable layer of app", app.RootFS, 5*mib, 5*mib+mib/2)
	use("writable layer of beside", beside.RootFS, 0, mib/4)
	use("logs of app", app.Logs, 200_000, 2*mib)
	disk, memory := holds.Volumes["disk"], holds.Volumes["memory"]
	use("a volume on disk, a file with two names in it", &disk, 3*mib, 3*mib+mib/4)
	use("a volume in memory", &memory, 2*mib, 2*mib+mib/4)
	if complaints.Len() > 0 {
		t.Errorf("it complains:\n%s", &complaints)
	}
}
