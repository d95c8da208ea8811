package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/agent"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/server"
)

// What the flags forbid is not made, its flag is named, and what ran before goes
// on until it ends.
func TestSourcesThatMayNotHaveTheHost(t *testing.T) {
	w := newWorld(t)
	dir := w.path("d")
	mkdir(t, dir)
	w.write("old.yaml", w.mounting("old", dir, "Directory"))
	w.start()
	w.await("it runs", running("old"))
	before := w.ids()
	w.stop()

	none := agent.Sources{pod.HTTPSource}
	w.cfg.Policy = agent.Policy{HostPath: none, HostNetwork: none, HostPID: none, HostIPC: none}
	for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		w.write(strings.ToLower(field)+".yaml", manifest("{name: "+strings.ToLower(field)+"}", sleeping("app"))+"  "+field+": true\n")
	}
	w.write("path.yaml", w.mounting("path", dir, "Directory"))
	w.write("other.yaml", manifest("{name: other}", sleeping("app")))
	w.start()
	drifted := func(s server.State) bool { return slices.Equal(find(s, "old").Drift, []string{"--host-path-sources"}) }
	s := w.await("what asks for nothing runs, the others wait", running("old"), drifted, running("other"),
		blocked("hostnetwork", "Forbidden"), blocked("hostpid", "Forbidden"), blocked("hostipc", "Forbidden"), blocked("path", "Forbidden"))
	w.same(before, "old-node/POD/0", "old-node/app/0")
	for name, flag := range map[string]string{
		"hostnetwork": "--host-network-sources", "hostpid": "--host-pid-sources", "hostipc": "--host-ipc-sources", "path": "--host-path-sources",
	} {
		if got := find(s, name).Blocked.Message; !strings.Contains(got, flag) {
			t.Errorf("%s waits, since %q: want it to name %s", name, got, flag)
		}
	}
	if n := len(w.list()); n != 4 {
		t.Errorf("%d containers, want those of two pods", n)
	}
	w.kill(before["old-node/app/0"])
	w.await("it is not made again", waits("old", "app", "Forbidden"))
	w.stop()
	w.cfg.Policy = agent.Policy{}
	w.start()
	w.await("with the flags as they were all run", runs("old", "app", 1),
		running("hostnetwork"), running("hostpid"), running("hostipc"), running("path"))
}
