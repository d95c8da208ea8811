package agent_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/server"
)

// A pod that asks for it restarts the containers that have variables from an
// object that changed, and no others; also what changed while no agent ran.
func TestRestartOnChange(t *testing.T) {
	w := newWorld(t)
	const uses = "env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: conf, key: level}}}, {name: PIN, valueFrom: {secretKeyRef: {name: login, key: pin}}}]"
	w.write("conf.yaml", configMap("conf", `{level: one}`))
	w.write("login.yaml", secret("login", `{pin: "4711"}`))
	w.write("asks.yaml", manifest("{name: asks, annotations: {podkeeper.io/restart-on-change: 'true'}}", sleeping("app", uses), sleeping("other")))
	w.write("not.yaml", manifest("{name: not}", sleeping("app", uses)))
	w.start()
	w.await("both run", running("asks"), running("not"))
	before := w.ids()
	has := func(attempt, want string) {
		t.Helper()
		env := strings.Join(w.inspect(w.containers()["asks-node/app/"+attempt].ID).Config.Env, " ")
		if !strings.Contains(env, want) {
			t.Errorf("attempt %s has %s, want %s", attempt, env, want)
		}
	}
	has("0", "LEVEL=one PIN=4711")

	w.write("conf.yaml", configMap("conf", `{level: two}`))
	w.await("app runs anew", runs("asks", "app", 1))
	has("1", "LEVEL=two PIN=4711")
	if len(w.said.lines("container stopped", "asks", "DefinitionChanged", "ConfigMap default/conf changed")) == 0 {
		t.Error("the log does not say why")
	}

	w.stop()
	w.write("login.yaml", secret("login", `{pin: "4712"}`))
	w.start()
	w.await("app runs anew", runs("asks", "app", 2))
	has("2", "LEVEL=two PIN=4712")

	w.restart()
	w.await("nothing is to be done", running("asks"), running("not"), runs("asks", "app", 2))
	w.same(before, "asks-node/POD/0", "asks-node/other/0", "not-node/app/0")
}

// The value of a Secret that the next test looks for everywhere.
const canary = "S3CR3T-4711-canary"

// C104: the value of a Secret is in the container that uses it, on file systems in
// memory, and in the cache of the sources. It is in no log, plan, state, label,
// nor in any other file of the agent, whatever happens to the pod.
func TestSecretValuesAreNowhere(t *testing.T) {
	w := newWorld(t)
	w.write("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: leak, annotations: {note: "+canary+"}}\nstringData: {pw: "+canary+"}\nimmutable: true\n")
	w.write("leak.yaml", manifest("{name: leak, annotations: {podkeeper.io/restart-on-change: 'true'}}",
		sleeping("app", "env: [{name: PW, valueFrom: {secretKeyRef: {name: leak, key: pw}}}, {name: URL, value: 'http://u:$(PW)@h'}]",
			"args: ['$(PW)']", "volumeMounts: [{name: s, mountPath: /s}]",
			"readinessProbe: {exec: {command: [sh, -c, 'cat /s/pw; echo $PW; exit 1']}, periodSeconds: 1}"),
		of("crash", "busybox:stable", "envFrom: [{secretRef: {name: leak}}]", "command: [sh, -c, 'echo $pw; exit 3']"),
		sleeping("hook", "envFrom: [{secretRef: {name: leak}}]", "lifecycle: {postStart: {exec: {command: [sh, -c, 'echo token=$pw; exit 1']}}}"),
	)+"  volumes: [{name: s, secret: {secretName: leak}}]\n")
	w.write("waits.yaml", manifest("{name: waits}", sleeping("app", "env: [{name: PW, valueFrom: {secretKeyRef: {name: leak, key: none}}}]")))
	w.start()
	w.await("it runs", runs("leak", "app", 0), waits("leak", "crash", "CrashLoopBackOff"), waits("leak", "hook", "CrashLoopBackOff", "PostStartHookError"), waits("waits", "app", "CreateContainerConfigError"))
	if env := w.inspect(w.ids()["leak-node/app/0"]).Config.Env; !strings.Contains(strings.Join(env, " "), "PW="+canary) {
		t.Fatalf("the container does not have it: %q", env)
	}
	nowhere := func() {
		t.Helper()
		s := w.await("the agent answers", func(server.State) bool { return true })
		w.hides("the state", mustJSON(t, s))
		planned, err := agent.Look(t.Context(), w.cfg, w.log)
		if err != nil {
			t.Error(err)
		}
		w.hides("the plan", mustJSON(t, planned))
		for key, c := range w.containers() {
			w.hides("the labels of "+key, mustJSON(t, c.Labels))
		}
		w.hides("the log", []byte(strings.Join(w.said.lines(), "")))
		for path, data := range w.files(w.cfg.RootDir, w.tmp+"/logs") {
			if inCache := strings.HasPrefix(path, filepath.Join(w.cfg.RootDir, "sources")+"/"); !inCache {
				w.hides(path, data)
			}
		}
	}
	nowhere()

	// What is wrong with a Secret, and with a version that may not be.
	w.write("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: leak}\nstringData: {pw: "+canary+"2}\nimmutable: true\n")
	w.await("the edit is refused", problem(filepath.Join(w.dir, "secret.yaml")))
	nowhere()
	w.write("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: leak}\ndata: {pw: "+canary+"}\nstringData: {x: *"+canary+"}\n")
	w.await("the file is broken", problem(filepath.Join(w.dir, "secret.yaml")))
	nowhere()
	w.restart()
	w.await("it runs", runs("leak", "app", 0))
	nowhere()

	// Without the cache it is not there either.
	if found := w.find(filepath.Join(w.cfg.RootDir, "sources")); len(found) == 0 {
		t.Error("the last good version is not in the cache: this test looks in vain")
	}
	w.stop()
	w.cfg.NoSourceCache = true
	w.write("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: leak}\nstringData: {pw: "+canary+"}\n")
	w.start()
	w.await("it runs", runs("leak", "app", 0))
	nowhere()
	if found := w.find(w.cfg.RootDir); len(found) > 0 {
		t.Errorf("found in %q", found)
	}
}

// hides: data do not hold the canary, nor what it becomes as base64.
func (w *world) hides(what string, data []byte) {
	w.t.Helper()
	for _, text := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
		if at := bytes.Index(data, []byte(text)); at >= 0 {
			w.t.Errorf("%s shows it: …%s…", what, data[max(0, at-80):min(len(data), at+len(text)+20)])
		}
	}
}

// find returns the files below a folder that hold the canary.
func (w *world) find(dir string) (found []string) {
	for path, data := range w.files(dir) {
		if bytes.Contains(data, []byte(canary)) {
			found = append(found, path)
		}
	}
	return found
}

// files returns what lies in folders and not in memory.
func (w *world) files(dirs ...string) map[string][]byte {
	w.t.Helper()
	all := map[string][]byte{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && mountedInMemory(w.t, path):
				return filepath.SkipDir
			case d.Type().IsRegular():
				all[path], err = os.ReadFile(path)
			}
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

// mountedInMemory: the folder is where a file system in memory is mounted.
func mountedInMemory(t *testing.T, dir string) bool {
	t.Helper()
	var st unix.Statfs_t
	var here, above unix.Stat_t
	if err := errors.Join(unix.Statfs(dir, &st), unix.Stat(dir, &here), unix.Stat(filepath.Dir(dir), &above)); err != nil {
		t.Fatal(err)
	}
	return st.Type == unix.TMPFS_MAGIC && here.Dev != above.Dev
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
