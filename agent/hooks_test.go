package agent_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// hooked returns the field of a container with that hook.
func hooked(when, handler string) string { return "lifecycle: {" + when + ": {" + handler + "}}" }

func execHook(script string) string { return `exec: {command: ["sh", "-c", "` + script + `"]}` }

// httpHook returns a hook that asks a server of the test, and how often it did.
func httpHook(t *testing.T, status int) (handler string, calls *atomic.Int32) {
	t.Helper()
	calls = new(atomic.Int32)
	asked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hook" && strings.HasPrefix(r.UserAgent(), "kube-lifecycle/") {
			calls.Add(1)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(asked.Close)
	host, port, _ := strings.Cut(strings.TrimPrefix(asked.URL, "http://"), ":")
	return fmt.Sprintf("httpGet: {host: %s, port: %s, path: /hook}", host, port), calls
}

// A postStart hook is run once, when its container runs; until it is over the
// container does not count as running, and the next one waits.
func TestPostStart(t *testing.T) {
	w := newWorld(t)
	dir := w.path("hooks")
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	get, calls := httpHook(t, http.StatusInternalServerError) // that it answers is enough
	w.write("post.yaml", manifest("{name: post}",
		sleeping("first", mount, hooked("postStart", execHook("echo begin >> /s/log; while [ ! -e /s/go ]; do sleep 0.1; done; echo end >> /s/log"))),
		shell("second", "echo second >> /s/log; sleep 3600", mount, hooked("postStart", get)),
		sleeping("third", hooked("postStart", "sleep: {seconds: 1}")))+
		"  volumes: [{name: s, hostPath: {path: "+dir+", type: DirectoryOrCreate}}]\n")
	w.start()
	w.poll("the hook runs", func() bool { return lines(t, dir+"/log") == 1 })
	s := w.await("it waits for the hook", waits("post", "first", "ContainerCreating"), waits("post", "second", "ContainerCreating"))
	if p := find(s, "post").Pod; p.Status.Phase != v1.PodPending {
		t.Errorf("it is %s, want Pending", p.Status.Phase)
	}
	writeFile(t, dir+"/go", "")
	w.await("it runs", running("post"))
	before := w.ids()
	w.restart()
	w.await("it runs", running("post"))
	w.same(before, "post-node/first/0", "post-node/second/0", "post-node/third/0")
	if data, _ := os.ReadFile(dir + "/log"); string(data) != "begin\nend\nsecond\n" {
		t.Errorf("they did %q", data)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the server was asked %d times, want once", n)
	}
}

// C104: a container whose postStart hook fails ends for it and is tried again,
// and what the hook printed is not shown.
func TestPostStartThatFails(t *testing.T) {
	w := newWorld(t)
	h := w.record()
	w.write("post.yaml", manifest("{name: post}",
		sleeping("app", "env: [{name: PW, value: S3CR3T-4711}]", hooked("postStart", execHook("echo token=$PW; exit 1")))))
	w.write("once.yaml", manifest("{name: once}", sleeping("app", hooked("postStart", execHook("exit 1"))), sleeping("other"))+"  restartPolicy: Never\n")
	w.start()
	s := w.await("it was tried again", waits("post", "app", "CrashLoopBackOff"))
	last := status(s, "post", "app").LastTerminationState.Terminated
	if last == nil || last.Message != "PostStartHook failed" {
		t.Errorf("last state %+v, want PostStartHook failed", last)
	}
	if len(w.said.lines("container stopped", "FailedPostStartHook", "pod=default/post-node")) == 0 {
		t.Error("the log does not say why it was stopped")
	}
	if found := w.said.lines("S3CR3T-4711"); len(found) > 0 || strings.Contains(summary(s), "S3CR3T-4711") {
		t.Errorf("what the hook printed is shown: %q", found)
	}
	w.await("the other one runs", func(s server.State) bool {
		app, other := status(s, "once", "app"), status(s, "once", "other")
		return app != nil && app.State.Terminated != nil && other.State.Running != nil
	})
	if n := h.count("create", "once", "app"); n != 1 {
		t.Errorf("a container of policy Never was made %d times", n)
	}
}

// A hook that hangs keeps nobody from removing the pod.
func TestPostStartThatHangs(t *testing.T) {
	w := newWorld(t)
	dir := w.path("hooks")
	w.write("post.yaml", manifest("{name: post}", sleeping("app", "volumeMounts: [{name: s, mountPath: /s}]", hooked("postStart", execHook("echo x >> /s/n; sleep 3600"))))+
		"  volumes: [{name: s, hostPath: {path: "+dir+", type: DirectoryOrCreate}}]\n")
	w.start()
	w.poll("the hook runs", func() bool { return lines(t, dir+"/n") == 1 })
	w.remove("post.yaml")
	began := time.Now()
	w.await("it is gone", gone("post"))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// A preStop hook runs before the stop signal, in the grace period, for an edit as
// for a removal. One that fails is noted.
func TestPreStop(t *testing.T) {
	w := newWorld(t)
	dir := w.path("hooks")
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	app := "trap 'echo term >> /s/log; exit 0' TERM; while :; do sleep 0.1; done"
	get, calls := httpHook(t, http.StatusOK)
	text := func(hook, more string) string {
		return strings.Replace(manifest("{name: pre}", shell("app", app, mount, hooked("preStop", execHook(hook))),
			sleeping("http", hooked("preStop", get)), sleeping("pause", hooked("preStop", "sleep: {seconds: 1}"), more)),
			"Seconds: 2", "Seconds: 10", 1) + "  volumes: [{name: s, hostPath: {path: " + dir + ", type: DirectoryOrCreate}}]\n"
	}
	w.write("pre.yaml", text("echo hook >> /s/log; sleep 1; exit 1", "env: []"))
	w.start()
	w.await("it runs", running("pre"))
	w.write("pre.yaml", strings.Replace(text("echo other >> /s/log", "env: []"), "while :;", "while true;", 1))
	w.await("it was edited", runs("pre", "app", 1))
	if data, _ := os.ReadFile(dir + "/log"); string(data) != "hook\nterm\n" {
		t.Errorf("the edit did %q, want hook, term", data)
	}
	if len(w.said.lines("preStop hook failed", "FailedPreStopHook", "container=app")) != 1 {
		t.Error("the log does not say that the hook failed")
	}
	w.remove("pre.yaml")
	w.await("it is gone", gone("pre"))
	if data, _ := os.ReadFile(dir + "/log"); string(data) != "hook\nterm\nother\nterm\n" {
		t.Errorf("edit and removal did %q", data)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the server was asked %d times, want once", n)
	}
}

// C049: a hook gets no more time than the grace period has.
func TestNoGracePeriodForAHook(t *testing.T) {
	w := newWorld(t)
	text := manifest("{name: nograce}", shell("app", "trap '' TERM; sleep 3600", hooked("preStop", execHook("sleep 30"))))
	w.write("nograce.yaml", strings.Replace(text, "Seconds: 2", "Seconds: 0", 1))
	w.start()
	w.await("it runs", running("nograce"))
	w.remove("nograce.yaml")
	began := time.Now()
	w.await("it is gone", gone("nograce"))
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}
