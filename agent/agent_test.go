package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/image"
	"github.com/google/uuid"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/node/rootdir"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// Law 6: agents with different root dirs share an engine in peace.
func TestTwoAgentsOnOneEngine(t *testing.T) {
	w := newWorld(t)
	other := newWorldOn(t, w.engine)
	for _, each := range []*world{w, other} {
		each.write("web.yaml", twoContainers)
		each.start()
	}
	w.await("one runs", running("web"))
	other.await("the other runs", running("web"))
	before := w.ids()
	other.remove("web.yaml")
	other.await("the other is gone", gone("web"))
	other.write("web.yaml", twoContainers)
	other.await("the other runs again", running("web"))
	other.stop()
	if err := agent.DeleteAll(context.Background(), other.cfg, other.log); err != nil {
		t.Error(err)
	}
	w.restart()
	s := w.await("one runs still", running("web"))
	if len(s.Pods) != 1 {
		t.Errorf("pods are %s, want web alone", summary(s))
	}
	w.same(before, "web-node/POD/0", "web-node/a/0", "web-node/b/0")
}

// Law 6: what somebody made from a commit of ours inherits its labels, and is
// not ours.
func TestContainerMadeFromACommitOfOurs(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.write("web.yaml", manifest("{name: web}", sleeping("app")))
	w.start()
	w.await("web runs", running("web"))
	name := "registry.local/" + uuid.NewString()[:8] + ":1"
	if _, err := w.engine.ContainerCommit(ctx, w.ids()["web-node/app/0"], container.CommitOptions{Reference: name}); err != nil {
		t.Fatal(err)
	}
	foreign, err := w.engine.ContainerCreate(ctx, &container.Config{Image: name}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.engine.ContainerRemove(ctx, foreign.ID, container.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
		if _, err := w.engine.ImageRemove(ctx, name, image.RemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
	if err := w.engine.ContainerStart(ctx, foreign.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	s := w.await("the agent took over", running("web"))
	if len(s.Pods) != 1 || len(find(s, "web").Pod.Status.ContainerStatuses) != 1 {
		t.Errorf("pods are %s, want web alone", summary(s))
	}
	w.remove("web.yaml")
	w.await("web is gone", gone("web"))
	if !w.inspect(foreign.ID).State.Running {
		t.Error("the foreign container was ended")
	}
}

// Law 5: starting and stopping the agent touches no container, and files that
// are lost cost none either.
func TestRestartOfTheAgent(t *testing.T) {
	w := newWorld(t)
	w.write("web.yaml", twoContainers)
	w.start()
	s := w.await("web runs", running("web"))
	before, h := w.ids(), w.record()
	files := filepath.Join(w.cfg.RootDir, "pods", string(find(s, "web").Pod.UID))
	for _, damage := range []func(path string) error{
		func(string) error { return nil },
		func(path string) error { return os.WriteFile(path, []byte(`{"version":1,"pod":{"metad`), 0o600) },
		func(path string) error { return os.WriteFile(path, nil, 0o600) },
		os.Remove,
	} {
		w.stop()
		for _, name := range []string{"pod.json", "state.json"} {
			if err := damage(filepath.Join(files, name)); err != nil {
				t.Error(err)
			}
		}
		w.start()
		w.await("the agent took over", running("web"))
		w.same(before, "web-node/POD/0", "web-node/a/0", "web-node/b/0")
	}
	for _, action := range []events.Action{events.ActionCreate, events.ActionStart, events.ActionKill, events.ActionDie, events.ActionDestroy} {
		if n := h.count(action, "web", "a") + h.count(action, "web", "POD"); n != 0 {
			t.Errorf("%d times %s", n, action)
		}
	}
	w.poll("the files were written anew", func() bool { return exists(files+"/pod.json") && exists(files+"/state.json") })
	w.stop()
	w.remove("web.yaml")
	w.start()
	w.await("web is gone", gone("web"))
}

// DeleteAll leaves no container, mount or folder, and is refused while an agent
// runs.
func TestDeleteAll(t *testing.T) {
	w := newWorld(t)
	w.write("web.yaml", manifest("{name: web}", sleeping("app", "volumeMounts: [{name: m, mountPath: /m}, {name: e, mountPath: /e}]"))+
		"  volumes: [{name: m, emptyDir: {medium: Memory}}, {name: e, emptyDir: {}}]\n")
	w.write("done.yaml", manifest("{name: done}", shell("app", "true"))+"  restartPolicy: Never\n")
	w.start()
	w.await("one runs, one finished", running("web"), phase("done", v1.PodSucceeded))
	if err := server.NewClient(w.cfg.Socket).Stop(t.Context(), pod.Key{Namespace: "default", Name: "done-node"}); err != nil {
		t.Error(err)
	}
	for _, file := range []string{server.MadeCertificate, "pki/mine.pem"} { // as the agent and somebody else made them
		if err := os.MkdirAll(filepath.Join(w.cfg.RootDir, "pki"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.cfg.RootDir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := agent.DeleteAll(t.Context(), w.cfg, w.log); !errors.Is(err, rootdir.ErrLocked) {
		t.Errorf("beside an agent: %v, want ErrLocked", err)
	}
	w.await("nothing happened", running("web"))
	w.stop()
	if !mountedBelow(t, w.cfg.RootDir) {
		t.Error("nothing is mounted below the root dir: this test proves nothing")
	}
	for range 2 { // and again, where nothing is left
		if err := agent.DeleteAll(t.Context(), w.cfg, w.log); err != nil {
			t.Error(err)
		}
	}
	if exists(filepath.Join(w.cfg.RootDir, server.MadeCertificate)) || !exists(filepath.Join(w.cfg.RootDir, "pki/mine.pem")) {
		t.Error("of pki it should take what the agent made, and nothing else")
	}
	if left := w.list(); len(left) != 0 {
		t.Errorf("%d containers are left", len(left))
	}
	if mountedBelow(t, w.cfg.RootDir) {
		t.Error("something is mounted below the root dir")
	}
	if exists(filepath.Join(w.cfg.RootDir, "held.json")) {
		t.Error("it remembers who was stopped by hand")
	}
	for _, dir := range []string{"pods", "sources"} {
		if entries, _ := os.ReadDir(filepath.Join(w.cfg.RootDir, dir)); len(entries) != 0 {
			t.Errorf("%s holds %v", dir, entries)
		}
	}
}

func mountedBelow(t *testing.T, dir string) bool {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(data), " "+dir+"/")
}

// Once starts what it can, says what it cannot, and leaves the pods as they are.
func TestOnce(t *testing.T) {
	w := newWorld(t)
	once := func() (names []string, err error) {
		err = agent.Once(t.Context(), w.cfg, agent.OnceConfig{}, w.log, func(p server.Pod) { names = append(names, p.Pod.Name+" "+string(p.Pod.Status.Phase)) })
		return names, err
	}
	w.write("a.yaml", manifest("{name: a}", sleeping("app")))
	w.write("b.yaml", manifest("{name: b}", shell("app", "true"))+"  restartPolicy: Never\n")
	names, err := once()
	diff(t, "pods", names, []string{"a-node Running", "b-node Succeeded"})
	if err != nil {
		t.Errorf("all is well, and the error is %v", err)
	}
	before := w.ids()
	missing := "127.0.0.1:" + freePort(t) + "/none:1"
	w.write("c.yaml", manifest("{name: c}", of("app", missing)))
	w.write("d.yaml", manifest("{name: d}", sleeping("app")))
	w.write("e.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {}\n")
	names, err = once() // by now b is known to have ended
	diff(t, "pods", names, []string{"a-node Running", "b-node Succeeded", "c-node Pending", "d-node Running"})
	if !errors.Is(err, agent.ErrNotStarted) {
		t.Fatalf("error %v, want ErrNotStarted", err)
	}
	for _, want := range []string{"default/c-node", "ImagePull", "e.yaml"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %s: %v", want, err)
		}
	}
	w.same(before, "a-node/POD/0", "a-node/app/0")
}

// Look says what would be done, and does nothing.
func TestLook(t *testing.T) {
	w := newWorld(t)
	w.write("web.yaml", manifest("{name: web}", sleeping("app")))
	look := func() *server.Pod {
		t.Helper()
		s, err := agent.Look(t.Context(), w.cfg, w.log)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Pods) != 1 {
			t.Fatalf("pods are %s, want web alone", summary(s))
		}
		return &s.Pods[0]
	}
	if p := look(); len(p.Steps) == 0 {
		t.Error("it says that nothing is to be done")
	}
	if lines := w.said.lines("level=WARN", "kept"); len(lines) != 0 {
		t.Errorf("it warns of what it does not do: %q", lines)
	}
	if exists(w.cfg.RootDir) || len(w.list()) != 0 {
		t.Error("it did something")
	}
	w.start()
	w.await("web runs", running("web"))
	before := w.ids()
	if p := look(); len(p.Steps) != 0 || p.Pod.Status.Phase != v1.PodRunning {
		t.Errorf("beside the agent it says %s, %v", p.Pod.Status.Phase, p.Steps)
	}
	w.stop()
	w.write("web.yaml", manifest("{name: web}", sleeping("app", "env: [{name: A, value: b}]")))
	var texts []string
	for _, step := range look().Steps {
		texts = append(texts, step.Text)
	}
	if text := strings.Join(texts, "\n"); !strings.Contains(text, "stop-container app/0") || !strings.Contains(text, "create-container app/1") || strings.Contains(text, "POD") {
		t.Errorf("it says:\n%s", text)
	}
	w.same(before, "web-node/POD/0", "web-node/app/0")
}

// Starting never waits: an agent without an engine answers clients, and runs its
// pods when the engine is there.
func TestAgentThatStartsBeforeTheEngine(t *testing.T) {
	w := newWorld(t)
	machine := strings.TrimPrefix(w.engine.DaemonHost(), "unix://")
	w.cfg.Docker.Host = "unix://" + w.path("engine")
	w.write("web.yaml", manifest("{name: web}", sleeping("app")))
	w.start()
	s := w.await("the agent answers", func(s server.State) bool {
		return len(s.Sources) == 1 && s.Sources[0].Spoken
	})
	if s.Online || s.Ready {
		t.Errorf("online %t, ready %t, without an engine", s.Online, s.Ready)
	}
	symlink(t, machine, w.path("engine"))
	w.await("web runs", running("web"), func(s server.State) bool { return s.Ready && s.Online })
}
