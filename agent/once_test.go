package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/server"
)

// Once waits for the end of what comes to one, lets pods that find no room wait for
// the others, gives each reason, and leaves nothing where it is to take all down.
func TestOnceToTheEnd(t *testing.T) {
	w := newWorld(t)
	job := func(name, command, cpu string) string {
		return manifest("{name: "+name+"}", shell("app", command, "resources: {requests: {cpu: "+cpu+"}}")) + "  restartPolicy: Never\n"
	}
	once := func(how agent.OnceConfig) (pods []string, err error) {
		err = agent.Once(t.Context(), w.cfg, how, w.log, func(p server.Pod) {
			pods = append(pods, p.Pod.Name+" "+string(p.Pod.Status.Phase))
		})
		slices.Sort(pods)
		return pods, err
	}
	w.cfg.Admission.MaxPods = 3
	w.write("first.yaml", job("first", "sleep 1", "0"))
	w.write("second.yaml", job("second", "sleep 1; exit 3", "0"))
	w.write("third.yaml", job("third", "true", "0"))
	w.write("fourth.yaml", job("fourth", "true", "0"))
	w.write("never.yaml", job("never", "true", "9k"))
	pods, err := once(agent.OnceConfig{Parallel: true, Down: true})
	diff(t, "pods", pods, []string{"first-node Succeeded", "fourth-node Succeeded", "never-node Pending", "second-node Failed", "third-node Succeeded"})
	if !errors.Is(err, agent.ErrNotStarted) {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{
		"pod default/never-node: OutOfcpu: Node didn't have enough resource: cpu, requested: 9000000, used: ",
		"pod default/second-node: container app: Error, exit code 3",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if left := w.list(); len(left) != 0 {
		t.Errorf("taken down, and %d containers are left", len(left))
	}
	for _, name := range []string{"first", "second", "third", "fourth", "never"} {
		w.remove(name + ".yaml")
	}
	w.write("long.yaml", job("long", "sleep 1000", "0"))
	w.write("next.yaml", job("next", "true", "0"))
	begun := time.Now()
	enough := *patience / 20
	pods, err = once(agent.OnceConfig{Timeout: enough})
	diff(t, "pods", pods, []string{"long-node Running"})
	if took := time.Since(begun); took > enough+time.Minute || err == nil || !strings.Contains(err.Error(), "pod default/long-node: not done when the time was over\npod default/next-node: not started: the time was over") {
		t.Errorf("after %s: %v", took, err)
	}
	if len(w.list()) == 0 {
		t.Error("nobody asked to take it down")
	}
}

// A single run lets no pod onto a disk that is nearly full.
func TestOnceOnAFullDisk(t *testing.T) {
	w := newWorld(t)
	w.cfg.Eviction.Policy.LowDisk = 1 << 60
	w.write("web.yaml", manifest("{name: web}", shell("app", "true"))+"  restartPolicy: Never\n")
	err := agent.Once(t.Context(), w.cfg, agent.OnceConfig{}, w.log, func(server.Pod) {})
	if !errors.Is(err, agent.ErrNotStarted) || !strings.Contains(err.Error(), "pod default/web-node: OutOfDisk: ") {
		t.Errorf("error %v", err)
	}
	if left := w.list(); len(left) != 0 {
		t.Errorf("%d containers were made", len(left))
	}
}
