//go:build systemd

package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// unit is the service that is shipped, under a name of this test's own and with
// this program as its agent.
type unit struct {
	t    *testing.T
	name string
}

func (w *world) startUnit() unit {
	w.t.Helper()
	text := readFile(w.t, "../packaging/podkeeper.service")
	config, err := json.Marshal(w.processConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	writeFile(w.t, w.path("env"), asAgent+"='"+string(config)+"'\n")
	start := "\nExecStart=/usr/local/bin/podkeeper run\n"
	if !strings.Contains(text, start) {
		w.t.Fatalf("the unit has no line %q", start)
	}
	program, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	text = strings.Replace(text, start, "\nEnvironmentFile="+w.path("env")+"\nExecStart="+program+"\n", 1)
	u := unit{w.t, "podkeeper-test-" + uuid.NewString()[:8] + ".service"}
	file := filepath.Join("/run/systemd/system", u.name)
	writeFile(w.t, file, text)
	w.t.Cleanup(func() {
		u.systemctl("stop")
		if err := os.Remove(file); err != nil {
			w.t.Error(err)
		}
		u.run("systemctl", "daemon-reload")
	})
	u.run("systemctl", "daemon-reload")
	u.systemctl("start")
	return u
}

func (u unit) systemctl(verb string, args ...string) string {
	u.t.Helper()
	return u.run("systemctl", append([]string{verb, u.name}, args...)...)
}

func (u unit) run(name string, args ...string) string {
	u.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		u.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (u unit) property(name string) string {
	u.t.Helper()
	return u.systemctl("show", "--value", "--property="+name)
}

// Under the unit that is shipped: a stop, a restart and a crash of the service
// touch no pod (law 5), pods are no part of the service, what it mounts reaches
// them, and the journal has its log.
func TestUnit(t *testing.T) {
	w := newWorld(t)
	w.write("web.yaml", manifest("{name: web}", shell("a", "grep -o ' /m tmpfs' /proc/mounts"+andStay, "volumeMounts: [{name: m, mountPath: /m}]"))+
		"  volumes: [{name: m, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]\n")
	u := w.startUnit()
	w.await("it runs", running("web"))
	before := w.ids()
	diff(t, "what it has mounted", w.tells("web-node/a/0"), " /m tmpfs\n")
	diff(t, "the service", u.property("ActiveState")+" "+u.property("SubState"), "active running")
	adj := func(pid string) string { return strings.TrimSpace(readFile(t, "/proc/"+pid+"/oom_score_adj")) }
	diff(t, "the agent's oom_score_adj", adj(u.property("MainPID")), "-999")
	for name, id := range before {
		pid := fmt.Sprint(w.inspect(id).State.Pid)
		if groups := readFile(t, "/proc/"+pid+"/cgroup"); strings.Contains(groups, u.name) || !strings.Contains(groups, id) {
			t.Errorf("%s is in %s", name, groups)
		}
	}

	u.systemctl("restart")
	w.await("it runs still", running("web"))
	w.same(before, "web-node/POD/0", "web-node/a/0")
	crashed := u.property("MainPID")
	u.systemctl("kill", "--signal=KILL", "--kill-who=main")
	w.poll("systemd has started it again", func() bool {
		pid := u.property("MainPID")
		return pid != "0" && pid != crashed && u.property("ActiveState") == "active"
	})
	w.await("it runs still", running("web"))
	u.systemctl("stop")
	w.same(before, "web-node/POD/0", "web-node/a/0")
	if log := u.run("journalctl", "--unit="+u.name, "--output=cat", "--no-pager"); !strings.Contains(log, "pod=default/web-node") {
		t.Errorf("the journal has only %s", log)
	}
}
