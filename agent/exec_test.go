package agent_test

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/tools/remotecommand"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/server/stream/streamtest"
)

// Probes, hooks and the kubelet API run their commands without the engine where the
// agent is told so, and none outlives an agent that is killed.
func TestNsenter(t *testing.T) {
	w := newWorld(t)
	w.cfg.Docker.ExecHandler = agent.NsenterExec
	cfg := w.secure()
	dir := w.path("told")
	mount := "volumeMounts: [{name: s, mountPath: /s}]"
	w.write("web.yaml", manifest("{name: web}",
		sleeping("app", mount, hooked("postStart", execHook("touch /s/hook; while [ ! -e /s/go ]; do sleep 0.1; done")),
			`readinessProbe: {exec: {command: ["sh", "-c", "touch /s/probe; test -e /s/well"]}, periodSeconds: 1}`))+
		"  volumes: [{name: s, hostPath: {path: "+dir+", type: DirectoryOrCreate}}]\n")
	w.start()
	w.poll("the hook runs", func() bool { return exists(dir + "/hook") })
	w.engineRunsNothing()
	writeFile(t, dir+"/go", "")
	w.await("its probe fails", ready("web", "app", false), complains("web", "app", "Readiness probe failed"))
	writeFile(t, dir+"/well", "")
	w.await("it is ready", ready("web", "app", true))
	query := url.Values{"command": {"sh", "-c", "cat; sleep 4711"}, "input": {"1"}, "output": {"1"}, "error": {"1"}}
	for how, e := range streamtest.Executors(t, cfg, "/exec/default/web/app", query) {
		out := newSink()
		ended := make(chan error, 1)
		go func() {
			ended <- e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("hello\n"), Stdout: out, Stderr: out})
		}()
		<-out.written
		if !bytes.Equal(out.first, []byte("hello\n")) {
			t.Errorf("by %s: it said %q", how, out.first)
		}
		w.poll("it sleeps", func() bool { return processRuns("sleep 4711") })
		w.engineRunsNothing()
		w.stop()
		<-ended // in one way or another: SPDY does not tell
		if processRuns("sleep 4711") {
			t.Errorf("by %s: the command goes on without an agent", how)
		}
		w.start()
		w.await("it is ready", ready("web", "app", true))
	}
	w.stop()
	agent := w.startProcess()
	w.await("it is ready", ready("web", "app", true))
	w.write("slow.yaml", manifest("{name: slow}", sleeping("app", hooked("postStart", execHook("sleep 4712 & sleep 4713; true")))))
	w.poll("the hook runs", func() bool { return processRuns("sleep 4712") && processRuns("sleep 4713") })
	agent.kill()
	w.poll("the hook ended with its agent", func() bool { return !processRuns("sleep 4712") && !processRuns("sleep 4713") })
}

// engineRunsNothing: it has no command in any container of the world.
func (w *world) engineRunsNothing() {
	w.t.Helper()
	for _, id := range w.ids() {
		if in := w.inspect(id); len(in.ExecIDs) > 0 {
			w.t.Errorf("the engine runs commands in %s", in.Name)
		}
	}
}

// sink keeps the first thing that is written to it.
type sink struct {
	first   []byte
	written chan struct{}
}

func newSink() *sink { return &sink{written: make(chan struct{})} }

func (s *sink) Write(p []byte) (int, error) {
	if s.first == nil {
		s.first = bytes.Clone(p)
		close(s.written)
	}
	return len(p), nil
}
