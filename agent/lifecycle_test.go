package agent_test

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/events"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// shell returns a container of busybox that runs a script.
func shell(name, script string, more ...string) string {
	return "{" + strings.Join(append([]string{"name: " + name, `image: "busybox:stable"`, `command: ["sh", "-c", "` + script + `"]`}, more...), ", ") + "}"
}

// C037: an agent that was killed takes over what runs, and counts on.
func TestKilledAgentTakesOver(t *testing.T) {
	w := newWorld(t)
	w.write("survive.yaml", manifest("{name: survive}", sleeping("app"), shell("crash", "exit 3")))
	child := w.startProcess()
	s := w.await("crash was restarted twice", waits("survive", "crash", "CrashLoopBackOff"), func(s server.State) bool {
		return status(s, "survive", "crash").RestartCount >= 2
	})
	before, uid := w.ids(), find(s, "survive").Pod.UID
	child.kill()
	w.start()
	s = w.await("the agent took over", waits("survive", "crash", "CrashLoopBackOff"), runs("survive", "app", 0))
	w.same(before, "survive-node/POD/0", "survive-node/app/0")
	if got := find(s, "survive").Pod.UID; got != uid {
		t.Errorf("uid %s, was %s", got, uid)
	}
	crash := status(s, "survive", "crash")
	if last := crash.LastTerminationState.Terminated; crash.RestartCount < 2 || last == nil || last.ExitCode != 3 {
		t.Errorf("restart count %d, last state %+v, want at least 2, and exit code 3", crash.RestartCount, last)
	}
}

// C049: a grace period of zero is honoured, and a negative one is like it.
func TestNoGracePeriod(t *testing.T) {
	for name, grace := range map[string]string{"zero": "0", "negative": "-5"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			text := manifest("{name: nograce}", shell("app", "trap '' TERM; sleep 3600"))
			w.write("nograce.yaml", strings.Replace(text, "Seconds: 2", "Seconds: "+grace, 1))
			w.start()
			w.await("it runs", running("nograce"))
			began := time.Now()
			w.remove("nograce.yaml")
			w.await("it is gone", gone("nograce"))
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// C054: an image that cannot be pulled holds one container back, not the pod.
func TestImageThatCannotBePulled(t *testing.T) {
	w := newWorld(t)
	missing := "127.0.0.1:" + freePort(t) + "/does-not-exist:1"
	w.start()
	w.write("nopull.yaml", manifest("{name: nopull}", of("bad", missing, "command: "+sleeper), sleeping("good"))+"  restartPolicy: Never\n")
	s := w.await("bad waits and good runs", waits("nopull", "bad", "ErrImagePull", "ImagePullBackOff"), func(s server.State) bool {
		good := status(s, "nopull", "good")
		return good != nil && good.State.Running != nil
	})
	if got := find(s, "nopull").Pod.Status.Phase; got != v1.PodPending {
		t.Errorf("phase %s, want Pending", got)
	}
	w.imageAs(missing)
	w.await("bad runs too", running("nopull"))
}

// C057: what ran to its end stays so over a restart of the agent.
func TestRunToCompletion(t *testing.T) {
	w := newWorld(t)
	dir := w.path("once")
	volumes := "  volumes: [{name: s, hostPath: {path: " + dir + ", type: DirectoryOrCreate}}]\n"
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	w.write("once.yaml", manifest("{name: once}",
		shell("ok", "echo run >> /s/ok; exit 0", mount),
		shell("flaky", "echo run >> /s/flaky; [ $(wc -l < /s/flaky) -ge 3 ]", mount))+"  restartPolicy: OnFailure\n"+volumes)
	w.write("never.yaml", manifest("{name: never}", shell("app", "echo run >> /s/never; exit 1", mount))+"  restartPolicy: Never\n"+volumes)
	w.start()
	check := func() {
		t.Helper()
		s := w.await("they finished", phase("once", v1.PodSucceeded), phase("never", v1.PodFailed))
		if ok, flaky := status(s, "once", "ok"), status(s, "once", "flaky"); ok.RestartCount != 0 || flaky.RestartCount != 2 {
			t.Errorf("restart counts %d and %d, want 0 and 2", ok.RestartCount, flaky.RestartCount)
		}
		for file, want := range map[string]int{"ok": 1, "flaky": 3, "never": 1} {
			data, err := os.ReadFile(dir + "/" + file)
			if got := strings.Count(string(data), "run"); got != want || err != nil {
				t.Errorf("%s ran %d times (%v), want %d", file, got, err, want)
			}
		}
	}
	check()
	w.restart()
	check()
}

// C063: a port that something else on the machine has makes the pod wait, with
// growing pauses, and leaves no failed sandboxes.
func TestHostPortTakenByAStranger(t *testing.T) {
	w := newWorld(t)
	stranger, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	_, port, _ := net.SplitHostPort(stranger.Addr().String())
	h := w.record()
	w.start()
	w.write("portheld.yaml", manifest("{name: portheld}", sleeping("app", "ports: [{containerPort: 80, hostPort: "+port+"}]")))
	s := w.await("it waits", blocked("portheld", "FailedCreatePodSandBox"))
	p := find(s, "portheld")
	if !strings.Contains(p.Blocked.Message, port) || p.Pod.Status.Phase != v1.PodPending {
		t.Errorf("it is %s: %s; want Pending, and a message that names the port", p.Pod.Status.Phase, p.Blocked.Message)
	}
	w.poll("it was tried three times", func() bool { return h.count(events.ActionCreate, "portheld", "POD") >= 3 })
	var at []time.Time
	for _, m := range h.list {
		if m.Action == events.ActionCreate && concerns(m, "portheld", "POD") {
			at = append(at, time.Unix(0, m.TimeNano))
		}
	}
	if first, second := at[1].Sub(at[0]), at[2].Sub(at[1]); first < 900*time.Millisecond || second < 1900*time.Millisecond {
		t.Errorf("pauses of %s and %s, want 1 s and 2 s at least", first, second)
	}
	stranger.Close()
	w.await("it runs", running("portheld"))
	if got := w.list(); len(got) != 2 {
		t.Errorf("%d containers, want a sandbox and a container", len(got))
	}
}

// A pod that was active for as long as it may be fails, also where the agent was
// away meanwhile, and stays so.
func TestActiveDeadline(t *testing.T) {
	w := newWorld(t)
	w.write("late.yaml", manifest("{name: late}", sleeping("app"), shell("crash", "exit 3"))+"  activeDeadlineSeconds: 8\n")
	w.write("away.yaml", withInit(manifest("{name: away}", sleeping("app")), sleeping("init"))+"  activeDeadlineSeconds: 8\n")
	w.start()
	s := w.await("they are admitted", not(gone("late")), not(gone("away")), func(s server.State) bool {
		c := status(s, "late", "app")
		return c != nil && c.State.Running != nil
	})
	began := find(s, "late").Pod.Status.StartTime.Time
	w.stop()
	w.poll("the deadline is over", func() bool { return time.Since(began) > 9*time.Second })
	for range 2 {
		w.start()
		for _, name := range []string{"late", "away"} {
			s := w.await("it failed", phase(name, v1.PodFailed), settled(name))
			if got := find(s, name).Pod.Status; got.Reason != "DeadlineExceeded" || !got.StartTime.Time.Equal(began) && name == "late" {
				t.Errorf("%s: reason %q, started %s, want DeadlineExceeded, %s", name, got.Reason, got.StartTime, began)
			}
		}
		if running := w.ids(); len(running) > 0 {
			t.Errorf("%v run", running)
		}
		w.stop()
	}
}

func settled(name string) condition {
	return func(s server.State) bool { p := find(s, name); return p != nil && p.Settled() }
}
