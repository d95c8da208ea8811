package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/server"
)

func configMap(name, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: " + data + "\n"
}

func secret(name, data string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: " + data + "\n"
}

// C024: variables from everywhere, as the process sees them.
func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	w.cfg.NodeIPs = []string{"192.0.2.1", "2001:db8::1"}
	w.write("config.yaml", configMap("cm", `{LEVEL: "one", my.key: "dot", ONLY1: "x"}`)+"---\n"+secret("s", `{LEVEL: "two"}`))
	w.write("env.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: env, labels: {app: web}, annotations: {example.com/note: "a note"}}
spec:
  restartPolicy: Never
  containers:
  - name: app
    image: busybox:stable
    command: ["sh", "-c", "env; echo IP=$(hostname -i)"]
    args: ["$(LEVEL)"]
    resources: {limits: {cpu: 250m, memory: 64Mi}, requests: {cpu: 100m}}
    envFrom:
    - {configMapRef: {name: cm}}
    - {secretRef: {name: s}}
    - {prefix: CFG_, configMapRef: {name: cm}}
    - {configMapRef: {name: none, optional: true}}
    env:
    - {name: ONLY1, value: "override"}
    - {name: SUM, value: "$(LEVEL)-$(CFG_LEVEL)"}
    - {name: KEY, valueFrom: {configMapKeyRef: {name: cm, key: my.key}}}
    - {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: LEVEL}}}
    - {name: NONE, valueFrom: {secretKeyRef: {name: s, key: none, optional: true}}}
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
    - {name: LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
    - {name: NOTE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['example.com/note']"}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
    - {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
    - {name: HOST_IPS, valueFrom: {fieldRef: {fieldPath: status.hostIPs}}}
    - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: POD_IPS, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}
    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
    - {name: CPU_REQUEST, valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: 1m}}}
    - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
`)
	w.start()
	s := w.await("it ended", phase("env", v1.PodSucceeded))
	app := w.inspect(w.containers()["env-node/app/0"].ID)
	got := map[string]string{}
	for line := range strings.Lines(w.output(app.ID)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	if got["IP"] == "" {
		t.Error("the pod has no address")
	}
	for name, want := range map[string]string{
		"LEVEL": "two", "my.key": "dot", "CFG_my.key": "dot", "CFG_LEVEL": "one", "ONLY1": "override", "CFG_ONLY1": "x", "SUM": "two-one", "KEY": "dot", "SECRET": "two",
		"NAME": "env-node", "NAMESPACE": "default", "UID": string(find(s, "env").Pod.UID), "LABEL": "web", "NOTE": "a note",
		"NODE": "node", "HOST_IP": "192.0.2.1", "HOST_IPS": "192.0.2.1,2001:db8::1",
		"POD_IP": got["IP"], "POD_IPS": got["IP"], "CPU": "250", "CPU_REQUEST": "100", "MEMORY": "64",
	} {
		if got[name] != want && !(strings.Contains(name, ".") && got[name] == "") { // a shell hides what it cannot name
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
		if name != "IP" && !slices.Contains(app.Config.Env, name+"="+want) {
			t.Errorf("the container was not given %s=%s", name, want)
		}
	}
	if _, ok := got["NONE"]; ok {
		t.Error("a variable without a source is set")
	}
	diff(t, "args", []string(app.Config.Cmd), []string{"two"})
}

// A container whose variables lack something waits, and says for what; its
// neighbours run, and it goes on by itself.
func TestContainerThatWaitsForItsConfig(t *testing.T) {
	w := newWorld(t)
	w.write("half.yaml", manifest("{name: half}", sleeping("ok"),
		sleeping("a", "envFrom: [{configMapRef: {name: later}}]"),
		sleeping("b", "env: [{name: K, valueFrom: {secretKeyRef: {name: keys, key: k}}}]")))
	w.start()
	w.await("two containers wait", runs("half", "ok", 0),
		waiting("half", "a", "CreateContainerConfigError", `configmap "later" not found`),
		waiting("half", "b", "CreateContainerConfigError", `secret "keys" not found`))
	before := w.ids()
	w.write("keys.yaml", secret("keys", `{other: x}`))
	w.await("a key is missing", waiting("half", "b", "CreateContainerConfigError", `couldn't find key k in Secret default/keys`))
	w.write("keys.yaml", secret("keys", `{k: S3CR3T-4711}`))
	w.await("one goes on", runs("half", "b", 0), waiting("half", "a", "CreateContainerConfigError", `configmap "later" not found`))
	w.write("later.yaml", configMap("later", `{L: v}`))
	w.await("all run", running("half"))
	w.same(before, "half-node/POD/0", "half-node/ok/0")
	// C104: nobody repeats a secret.
	if lines := w.said.lines("S3CR3T"); len(lines) > 0 {
		t.Errorf("the log says %q", lines)
	}
	text, err := json.Marshal(w.await("all run", running("half")))
	if err != nil || bytes.Contains(text, []byte("S3CR3T")) {
		t.Errorf("the state tells the secret, %v", err)
	}
}

// C076: a missing object of a volume holds the whole pod back, and leaves nothing.
func TestPodThatWaitsForAVolume(t *testing.T) {
	w := newWorld(t)
	text := manifest("{name: half}", sleeping("ok"), sleeping("needs", "volumeMounts: [{name: c, mountPath: /c}]")) +
		"  volumes: [{name: c, configMap: {name: later}}]\n"
	w.write("half.yaml", text)
	w.start()
	wants := func() {
		s := w.await("it waits", blocked("half", "FailedMount"))
		p := find(s, "half")
		if want := `MountVolume.SetUp failed for volume "c" : configmap "later" not found`; p.Blocked.Message != want || p.Pod.Status.Phase != v1.PodPending {
			t.Errorf("it is %s: %s, want %s", p.Pod.Status.Phase, p.Blocked.Message, want)
		}
		if left := w.containers(); len(left) > 0 {
			t.Errorf("it has %d containers", len(left))
		}
	}
	wants()
	w.remove("half.yaml")
	w.await("it is gone", gone("half"))
	if entries, _ := os.ReadDir(filepath.Join(w.cfg.RootDir, "pods")); len(entries) > 0 {
		t.Errorf("folders are left: %v", entries)
	}
	w.write("half.yaml", text)
	wants()
	w.write("later.yaml", configMap("later", `{k: v}`))
	w.await("it runs", running("half"))
	w.remove("later.yaml")
	w.kill(w.ids()["half-node/needs/0"])
	w.await("it goes on without", runs("half", "needs", 1))
}

func (w *world) volume(uid types.UID, kind, name string) string {
	return filepath.Join(w.cfg.RootDir, "pods", string(uid), "volumes", "kubernetes.io~"+kind, name)
}

// C066: an edit reaches the file in the container, which does not restart.
func TestEditOfAConfigMap(t *testing.T) {
	w := newWorld(t)
	w.write("live.yaml", manifest("{name: live, labels: {tier: one}}",
		shell("app", "trap 'exit 0' TERM; while :; do cat /dir/app.conf /dir/more /pod/labels /etc/app.conf 2>/dev/null; echo; sleep 0.1; done",
			"env: [{name: CONF, valueFrom: {configMapKeyRef: {name: live, key: app.conf}}}]",
			"volumeMounts: [{name: c, mountPath: /dir}, {name: p, mountPath: /pod}, {name: c, mountPath: /etc/app.conf, subPath: app.conf}]"))+`
  volumes:
  - {name: c, configMap: {name: live}}
  - {name: p, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
`)
	w.write("config.yaml", configMap("live", `{app.conf: "v1-"}`))
	w.start()
	w.await("it runs", running("live"))
	before := w.ids()
	app := before["live-node/app/0"]
	reads := func(want string) {
		t.Helper()
		w.poll("it reads "+want, func() bool { return strings.Contains(w.output(app), want) })
	}
	reads("v1-tier=\"one\"v1-\n")
	w.write("config.yaml", configMap("live", `{app.conf: "v2-", more: "and-"}`))
	reads("v2-and-tier=\"one\"v1-\n") // a mount of a subPath stays as it was
	w.write("live.yaml", strings.Replace(readFile(t, filepath.Join(w.dir, "live.yaml")), "tier: one", "tier: two", 1))
	reads("v2-and-tier=\"two\"v1-\n")

	w.stop() // an edit that comes while nobody looks is seen afterwards
	w.write("config.yaml", configMap("live", `{app.conf: "v3-"}`))
	w.start()
	reads("v3-tier=\"two\"v1-\n")
	w.await("it runs", running("live"))
	w.same(before, "live-node/POD/0", "live-node/app/0")
	if env := w.inspect(app).Config.Env; !slices.Contains(env, "CONF=v1-") {
		t.Errorf("its environment is %q", env)
	}

	w.kill(app)
	w.await("it runs again", runs("live", "app", 1))
	app = w.ids()["live-node/app/1"]
	reads("v3-tier=\"two\"v3-\n")
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// C074, C104: a Secret's values are on no disk, and have the modes asked for.
func TestSecretFiles(t *testing.T) {
	w := newWorld(t)
	w.write("sec.yaml", `
apiVersion: v1
kind: Secret
metadata: {name: sec}
data: {a: YmFy, b: AAEC}
stringData: {a: "S3CR3T-4711", c: "YmFy"}
---
apiVersion: v1
kind: Pod
metadata: {name: sec}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: app
    image: busybox:stable
    command: ["sh", "-c", "cat /s/a; echo; od -An -tx1 /s/b; cat /s/c; echo; stat -L -c '%a %u' /s/a /s/b /all/login/name /all/me; cat /all/login/name; grep -c ' /s tmpfs ' /proc/mounts; grep -c ' /all tmpfs ' /proc/mounts; trap 'exit 0' TERM; sleep 3600 & wait"]
    volumeMounts: [{name: s, mountPath: /s, readOnly: true}, {name: all, mountPath: /all}]
  volumes:
  - {name: s, secret: {secretName: sec, defaultMode: 0400, defaultUser: 1000, items: [{key: a, path: a}, {key: b, path: b, mode: 0440, user: 1001}, {key: c, path: c}]}}
  - name: all
    projected:
      defaultMode: 0444
      sources:
      - {secret: {name: sec, items: [{key: c, path: login/name, mode: 0400}]}}
      - {secret: {name: none, optional: true}}
      - {downwardAPI: {items: [{path: me, fieldRef: {fieldPath: metadata.name}}]}}
`)
	w.start()
	s := w.await("it runs", running("sec"))
	app := w.ids()["sec-node/app/0"]
	const want = "S3CR3T-4711\n 00 01 02\nYmFy\n400 1000\n440 1001\n400 0\n444 0\nYmFy1\n1\n"
	w.poll("it has looked", func() bool { return strings.Count(w.output(app), "\n") == strings.Count(want, "\n") })
	diff(t, "what it sees", w.output(app), want)
	uid := find(s, "sec").Pod.UID
	if path := w.volume(uid, "secret", "s"); !exists(filepath.Join(path, "a")) {
		t.Errorf("%s is not there", path)
	}
	for key, c := range w.containers() {
		for label, value := range c.Labels {
			if strings.Contains(value, "S3CR3T") {
				t.Errorf("label %s of %s has it", label, key)
			}
		}
	}
	if lines := w.said.lines("S3CR3T"); len(lines) > 0 {
		t.Errorf("the log says %q", lines)
	}
	w.remove("sec.yaml")
	w.await("it is gone", gone("sec"))
	if exists(filepath.Join(w.cfg.RootDir, "pods", string(uid))) {
		t.Error("its folder is left")
	}
}

// waiting: the container waits for that reason, and says just that.
func waiting(name, container, reason, message string) condition {
	return func(s server.State) bool {
		c := status(s, name, container)
		return c != nil && c.State.Waiting != nil && c.State.Waiting.Reason == reason && c.State.Waiting.Message == message
	}
}

// An init container writes the variables of the next.
func TestVariablesFromAFile(t *testing.T) {
	w := newWorld(t)
	const variable = "{name: %s, valueFrom: {fileKeyRef: {volumeName: v, path: %s, key: %s, optional: %t}}}"
	env := func(list ...string) string { return "env: [" + strings.Join(list, ", ") + "]" }
	w.write("files.yaml", manifest("{name: files}",
		sleeping("app", env(fmt.Sprintf(variable, "A", "env", "A", false), fmt.Sprintf(variable, "O", "env", "none", true), fmt.Sprintf(variable, "M", "none", "A", true), "{name: AA, value: '$(A)-$(O)'}")),
		sleeping("waits", env(fmt.Sprintf(variable, "B", "sub/later", "B", false)), "volumeMounts: [{name: v, mountPath: /w}]"),
		sleeping("escapes", env(fmt.Sprintf(variable, "C", "link", "C", false))))+`
  initContainers:
  - {name: init, image: "busybox:stable", command: ["sh", "-c", "printf \"# made by init\\nA='one\\n two'\\n\" >/v/env; ln -s /etc/hostname /v/link; mkdir /v/sub"], volumeMounts: [{name: v, mountPath: /v}]}
  volumes: [{name: v, emptyDir: {}}]
`)
	w.start()
	s := w.await("what can, runs", runs("files", "app", 0),
		waiting("files", "waits", "CreateContainerConfigError", `file "sub/later" of volume "v": not found`),
		waits("files", "escapes", "CreateContainerConfigError"))
	got := w.inspect(w.ids()["files-node/app/0"]).Config.Env
	for _, want := range []string{"A=one\n two", "AA=one\n two-$(O)"} {
		if !slices.Contains(got, want) {
			t.Errorf("environment %q lacks %q", got, want)
		}
	}
	writeFile(t, filepath.Join(w.volume(find(s, "files").Pod.UID, "empty-dir", "v"), "sub/later"), "B='two'\n")
	w.await("it goes on", runs("files", "waits", 0))
	if env := w.inspect(w.ids()["files-node/waits/0"]).Config.Env; !slices.Contains(env, "B=two") {
		t.Errorf("environment %q", env)
	}
}

// A subPathExpr is evaluated with the container's variables, each of which has to
// be there.
func TestSubPathExpr(t *testing.T) {
	w := newWorld(t)
	const pod = "env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: UP, value: '../..'}]"
	mount := func(expr string) string {
		return "volumeMounts: [{name: v, mountPath: /w, subPathExpr: " + expr + "}]"
	}
	w.write("expr.yaml", manifest("{name: expr}",
		shell("app", "echo here >/w/file; trap 'exit 0' TERM; sleep 3600 & wait", pod, mount("$(POD)/logs")),
		sleeping("none", pod, mount("$(NONE)/logs")),
		sleeping("up", pod, mount("$(UP)/logs")))+"  volumes: [{name: v, emptyDir: {}}]\n")
	w.start()
	s := w.await("one runs", runs("expr", "app", 0),
		waits("expr", "none", "CreateContainerConfigError"), waits("expr", "up", "CreateContainerConfigError"))
	path := filepath.Join(w.volume(find(s, "expr").Pod.UID, "empty-dir", "v"), "expr-node/logs/file")
	w.poll("it wrote", func() bool { return exists(path) && readFile(t, path) == "here\n" })
	if message := status(s, "expr", "none").State.Waiting.Message; !strings.Contains(message, `missing value for "NONE"`) {
		t.Errorf("the one without a value says %q", message)
	}
}
