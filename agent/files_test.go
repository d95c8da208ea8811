package agent_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/events"

	"github.com/podkeeper/podkeeper/server"
)

const sleepCommand = "CMD " + sleeper

// C016: a JSON manifest of a control plane, in a file named .manifest.
func TestControlPlaneManifestOfJSON(t *testing.T) {
	w := newWorld(t)
	image := w.image(sleepCommand)
	log, serve, peer := w.path("etcd.log"), freePort(t), freePort(t)
	text := strings.NewReplacer("IMAGE", image, "LOG", log, "SERVE", serve, "PEER", peer).Replace(`
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"etcd-server","namespace":"kube-system"},
 "spec":{"hostNetwork":true,"priorityClassName":"system-node-critical","priority":2000001000,
  "terminationGracePeriodSeconds":2,
  "containers":[{"name":"etcd-container","image":"IMAGE","resources":{"requests":{"cpu":"200m"}},
   "command":["/bin/sh","-c","exec sleep 3600 1>>/var/log/etcd.log 2>&1"],
   "ports":[{"name":"serverport","containerPort":PEER,"hostPort":PEER},{"name":"clientport","containerPort":SERVE,"hostPort":SERVE}],
   "volumeMounts":[{"name":"varlog","mountPath":"/var/log/etcd.log","readOnly":false}]}],
  "volumes":[{"name":"varlog","hostPath":{"path":"LOG","type":"FileOrCreate"}}]}}
`)
	w.write("etcd.manifest", text)
	w.write("webnoext", manifest("{name: webnoext}", sleeping("app")))
	w.write("bad.json", strings.Replace(text, `"type":"FileOrCreate"}}]`, `"type":"FileOrCreate"}}],`, 1))
	w.write("comment.json", "// of the control plane\n"+text)
	w.start()
	w.await("etcd runs and the other files are judged", runningIn("kube-system", "etcd-server"),
		skipped(w.dir+"/webnoext"), problem(w.dir+"/bad.json"), problem(w.dir+"/comment.json"), gone("webnoext"))
	if info, err := os.Stat(log); err != nil || !info.Mode().IsRegular() || info.Size() != 0 {
		t.Errorf("log file: %v %v, want an empty regular one", info, err)
	}
	w.stop()
	before := w.ids()
	w.cfg.Extensions = []string{".manifest", ""}
	w.start()
	w.await("the file without an extension runs too", running("webnoext"))
	w.same(before, "etcd-server-node/etcd-container/0")
}

// C029: a backup beside the manifest is an older copy, never a rival.
func TestBackupCopyBesideAManifest(t *testing.T) {
	w := newWorld(t)
	w.cfg.Extensions = []string{".yaml", ".backup"}
	old, updated := w.image(sleepCommand), w.image(sleepCommand)
	h := w.record()
	w.start()
	w.write("web.yaml", manifest("{name: web}", of("app", old)))
	w.await("web runs", running("web"))
	before := w.ids()
	w.write("web.yaml.backup", manifest("{name: web}", of("app", old)))
	w.await("the copy is a conflict", func(s server.State) bool {
		return len(s.Conflicts) == 1 && s.Conflicts[0].Loser.Name == w.dir+"/web.yaml.backup"
	})
	w.same(before, "web-node/POD/0", "web-node/app/0")
	w.write("web.yaml", manifest("{name: web}", of("app", updated)))
	w.await("the edit runs", runs("web", "app", 1))
	if got := w.imageOf("web-node/app/1"); got != updated {
		t.Errorf("it runs %s, want %s", got, updated)
	}
	before = w.ids()
	w.restart()
	w.await("the agent took over", running("web"))
	w.same(before, "web-node/POD/0", "web-node/app/1")
	if most := h.most(t); most > 1 {
		t.Errorf("%d of one kind ran at a time", most)
	}
	if lines := w.said.lines("level=WARN", w.dir+"/web.yaml ", w.dir+"/web.yaml.backup"); len(lines) != 2 {
		t.Errorf("%d warnings name both files, want one of each start: %q", len(lines), lines)
	}
}

// C031: a name may be used once in a namespace.
func TestTwinsInAFile(t *testing.T) {
	w := newWorld(t)
	one, two, three := w.image(sleepCommand), w.image(sleepCommand), w.image(sleepCommand)
	red := manifest("{name: twin, namespace: red}", of("app", one))
	first := manifest("{name: twin}", of("app", two))
	second := manifest("{name: twin, namespace: default}", of("app", three))
	w.write("twins.yaml", red+"---\n"+first+"---\n"+second)
	w.start()
	s := w.await("both namespaces run", running("twin"), runningIn("red", "twin"))
	if len(s.Pods) != 2 {
		t.Errorf("%d pods, want 2", len(s.Pods))
	}
	images := func() (images []string) {
		for _, c := range w.list() {
			if c.Labels["io.kubernetes.container.name"] == "app" && c.State == "running" {
				images = append(images, c.Labels["io.kubernetes.pod.namespace"]+" "+c.Image)
			}
		}
		return sorted(images)
	}
	diff(t, "images", images(), []string{"default " + two, "red " + one})
	if o, _ := originOf(s, w.dir+"/twins.yaml"); !mentions(o, "duplicate pod name") {
		t.Errorf("no problem says duplicate pod name: %v", o.Problems)
	}
	w.write("twins.yaml", red+"---\n"+second)
	w.await("the other definition runs", runs("twin", "app", 1))
	diff(t, "images", images(), []string{"default " + three, "red " + one})
}

// C033: a pod that is renamed in its file is another pod.
func TestRenamingAPodInItsFile(t *testing.T) {
	w := newWorld(t)
	port := freePort(t)
	text := func(metadata, says string) string {
		return manifest(metadata, `{name: app, image: "busybox:stable", command: ["sh", "-c", "trap 'exit 0' TERM; while :; do nc -l -p 80 -e echo `+says+`; done & wait"], ports: [{containerPort: 80, hostPort: `+port+`}]}`)
	}
	w.start()
	w.write("pod.yaml", text("{name: oldname}", "old"))
	w.await("it runs", running("oldname"))
	w.poll("it answers", func() bool { return answer(port) == "old" })
	w.write("pod.yaml", text("{name: newname}", "new"))
	s := w.await("it was renamed", running("newname"), gone("oldname"))
	w.onlyPod(s, "default/newname-node")
	w.poll("the new one answers", func() bool { return answer(port) == "new" })
	w.write("pod.yaml", text("{name: newname, namespace: blue}", "blue"))
	s = w.await("it moved", runningIn("blue", "newname"), gone("newname"))
	w.onlyPod(s, "blue/newname-node")
	w.poll("the new one answers", func() bool { return answer(port) == "blue" })
}

// onlyPod checks that there is nothing but one pod with one container.
func (w *world) onlyPod(s server.State, key string) {
	w.t.Helper()
	if len(s.Pods) != 1 || s.Pods[0].Pod.Namespace+"/"+s.Pods[0].Pod.Name != key {
		w.t.Errorf("pods are %s, want %s alone", summary(s), key)
	}
	if got := w.containers(); len(got) != 2 {
		w.t.Errorf("%d containers, want a sandbox and a container", len(got))
	}
	if entries, _ := os.ReadDir(w.cfg.RootDir + "/pods"); len(entries) != 1 {
		w.t.Errorf("%d folders of pods, want 1", len(entries))
	}
}

// C038: two manifests with one uid.
func TestUIDThatIsInUse(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.write("z-one.yaml", manifest(`{name: one, uid: "1234"}`, sleeping("app")))
	w.await("one runs", running("one"))
	before := w.ids()
	w.write("a-two.yaml", manifest(`{name: two, uid: "1234"}`, sleeping("app")))
	s := w.await("two is refused", func(s server.State) bool { return len(s.Conflicts) == 1 })
	c := s.Conflicts[0]
	if c.UID != "1234" || c.Loser.Name != w.dir+"/a-two.yaml" || c.Winner.Name != w.dir+"/z-one.yaml" {
		t.Errorf("conflict is %+v, want one that names uid and both files", c)
	}
	w.write("marker.yaml", manifest(`{name: marker}`, sleeping("app")))
	w.await("the marker runs", running("marker"))
	w.same(before, "one-node/POD/0", "one-node/app/0")
	if _, ok := w.containers()["two-node/POD/0"]; ok {
		t.Error("two has a sandbox")
	}
	w.remove("a-two.yaml")
	w.await("the conflict is over", func(s server.State) bool { return len(s.Conflicts) == 0 })
	w.same(before, "one-node/POD/0", "one-node/app/0")
}

// C040: a document that goes takes its pod with it, a file that is emptied none.
func TestDocumentsThatGo(t *testing.T) {
	w := newWorld(t)
	keep, drop := manifest("{name: keep}", sleeping("app")), manifest("{name: drop}", sleeping("app"))
	both := keep + "---\n" + drop
	w.start()
	w.write("pods.yaml", both)
	w.await("both run", running("keep"), running("drop"))
	before := w.ids()
	w.write("pods.yaml", keep)
	w.await("drop is gone", gone("drop"))
	w.write("pods.yaml", both)
	w.await("both run", running("drop"))
	w.write("pods.yaml", keep+"---\n# "+strings.ReplaceAll(drop, "\n", "\n# ")+"\n")
	w.await("drop is gone", gone("drop"))
	if err := os.Truncate(w.dir+"/pods.yaml", 0); err != nil {
		t.Fatal(err)
	}
	w.await("the empty file is a problem", problem(w.dir+"/pods.yaml"), running("keep"))
	w.same(before, "keep-node/POD/0", "keep-node/app/0")
	w.write("pods.yaml", "# nothing for now\n")
	w.await("keep is gone", gone("keep"))
}

// C041: a file that goes takes its pod with it; a folder that goes is silence
// (law 1).
func TestFolderThatGoes(t *testing.T) {
	w := newWorld(t)
	bye := w.path("bye")
	mkdir(t, bye)
	text := manifest("{name: gone}", `{name: app, image: "busybox:stable", volumeMounts: [{name: h, mountPath: /h}], command: ["sh", "-c", "trap 'echo bye > /h/said; exit 0' TERM; touch /h/up; sleep 3600 & wait"]}`) +
		"  volumes: [{name: h, hostPath: {path: " + bye + "}}, {name: e, emptyDir: {}}]\n"
	w.start()
	w.write("gone.yaml", text)
	w.await("it runs", running("gone"))
	w.poll("its trap is set", func() bool { return exists(bye + "/up") })
	w.remove("gone.yaml")
	w.await("it is gone", gone("gone"))
	if !exists(bye + "/said") {
		t.Error("it did not get SIGTERM")
	}
	if left := w.containers(); len(left) != 0 {
		t.Errorf("%d containers are left", len(left))
	}
	if entries, _ := os.ReadDir(w.cfg.RootDir + "/pods"); len(entries) != 0 {
		t.Errorf("folders are left: %v", entries)
	}

	w.write("gone.yaml", text)
	w.await("it runs again", running("gone"))
	before := w.ids()
	rename(t, w.dir, w.dir+".away")
	s := w.await("the folder is missing", func(s server.State) bool { return !s.Sources[0].Present })
	if s.Sources[0].Problem == "" || find(s, "gone") == nil {
		t.Errorf("problem %q, pods %s", s.Sources[0].Problem, summary(s))
	}
	w.stop()
	w.forgetSources()
	w.start()
	s = w.await("the agent starts without the folder", func(s server.State) bool { return s.Ready && !s.Sources[0].Present }, running("gone"))
	if find(s, "gone").Kept == "" {
		t.Error("nothing says why it is kept")
	}
	rename(t, w.dir+".away", w.dir)
	w.await("the folder is back", func(s server.State) bool { return s.Sources[0].Present })
	if lines := w.said.lines("level=WARN", w.dir+" does not exist"); len(lines) != 2 {
		t.Errorf("%d warnings that the folder is missing, want one of each start: %q", len(lines), lines)
	}
	w.same(before, "gone-node/POD/0", "gone-node/app/0")
	w.remove("gone.yaml")
	w.await("it is gone", gone("gone"))
}

// C045: a typo keeps the last good version, over a restart of the agent too
// (law 1).
func TestTypoInAManifest(t *testing.T) {
	w := newWorld(t)
	updated := w.image(sleepCommand)
	good := manifest("{name: typo}", sleeping("app"))
	w.start()
	w.write("other.yaml", manifest("{name: other}", sleeping("app")))
	w.write("typo.yaml", good)
	w.await("both run", running("typo"), running("other"))
	before := w.ids()
	w.write("typo.yaml", strings.Replace(good, "kind: Pod\n", "kind: Pod\n  bad\n", 1))
	s := w.await("the typo is shown", problem(w.dir+"/typo.yaml"))
	if o, _ := originOf(s, w.dir+"/typo.yaml"); !o.Stale || !mentions(o, "typo.yaml:2") {
		t.Errorf("origin is %+v, want a stale one with the line of the typo", o)
	}
	w.restart()
	w.await("the typo is shown after a restart", problem(w.dir+"/typo.yaml"), running("typo"), running("other"))
	w.same(before, "typo-node/POD/0", "typo-node/app/0", "other-node/POD/0", "other-node/app/0")
	w.stop()
	w.forgetSources()
	w.start()
	s = w.await("it is kept although its last good version is lost", problem(w.dir+"/typo.yaml"), running("typo"), running("other"))
	if find(s, "typo").Kept == "" {
		t.Error("nothing says why it is kept")
	}
	w.same(before, "typo-node/POD/0", "typo-node/app/0", "other-node/POD/0", "other-node/app/0")
	w.write("typo.yaml", manifest("{name: typo}", of("app", updated)))
	w.await("the repair runs", runs("typo", "app", 1), not(problem(w.dir+"/typo.yaml")))
	if got := w.imageOf("typo-node/app/1"); got != updated {
		t.Errorf("it runs %s, want %s", got, updated)
	}
	w.same(before, "typo-node/POD/0", "other-node/POD/0", "other-node/app/0")
}

// forgetSources loses the last good versions.
func (w *world) forgetSources() {
	w.t.Helper()
	if err := os.RemoveAll(w.cfg.RootDir + "/sources"); err != nil {
		w.t.Fatal(err)
	}
}

// C046: links to folders and to files are followed, those to sub-folders not.
func TestLinkedManifests(t *testing.T) {
	w := newWorld(t)
	w.cfg.FileCheck = 500 * time.Millisecond
	one, two := w.image(sleepCommand), w.image(sleepCommand)
	for _, dir := range []string{"rel1", "rel2", "extra"} {
		mkdir(t, w.path(dir))
	}
	writeFile(t, w.path("rel1/web.yaml"), manifest("{name: web}", of("app", one)))
	writeFile(t, w.path("rel2/web.yaml"), manifest("{name: web}", of("app", two)))
	writeFile(t, w.path("extra/x.yaml"), manifest("{name: x}", sleeping("app")))
	if err := os.Remove(w.dir); err != nil {
		t.Fatal(err)
	}
	symlink(t, w.path("rel1"), w.dir)
	w.start()
	w.await("web runs", running("web"))
	symlink(t, w.path("rel2"), w.path("next"))
	rename(t, w.path("next"), w.dir)
	w.await("web is that of the other folder", runs("web", "app", 1))
	if got := w.imageOf("web-node/app/1"); got != two {
		t.Errorf("it runs %s, want %s", got, two)
	}
	symlink(t, w.path("extra"), w.dir+"/dir")
	symlink(t, w.path("extra/x.yaml"), w.dir+"/x.yaml")
	s := w.await("the linked file runs", running("x"), skipped(w.dir+"/dir"))
	if len(s.Pods) != 2 {
		t.Errorf("pods are %s, want web and x", summary(s))
	}
	writeFile(t, w.path("extra/x.yaml"), manifest("{name: x, labels: {rev: two}}", sleeping("app")))
	w.await("the edit of the link's target is seen", labelled("x", "two"))
}

// Applying the same bytes again restarts nothing; nor does a new name of the
// file.
func TestSameBytesAgain(t *testing.T) {
	w := newWorld(t)
	text := manifest("{name: web}", sleeping("a"), sleeping("b"))
	w.start()
	w.write("web.yaml", text)
	w.await("web runs", running("web"))
	before, h := w.ids(), w.record()
	w.write("web.yaml", text)
	// The folder is read in the order of names: who knows this one knows the rest.
	w.write("zz.yaml", manifest("{name: marker}", sleeping("app")))
	w.await("the marker runs", running("marker"))
	rename(t, w.dir+"/web.yaml", w.dir+"/renamed.yaml")
	w.await("web comes from the renamed file", suppliedBy("web", w.dir+"/renamed.yaml"), running("web"))
	w.restart()
	w.await("the agent took over", running("web"), running("marker"))
	w.same(before, "web-node/POD/0", "web-node/a/0", "web-node/b/0")
	if n := h.count(events.ActionDie, "web", "a") + h.count(events.ActionCreate, "web", "a"); n != 0 {
		t.Errorf("%d events of a container that nobody changed", n)
	}
}
