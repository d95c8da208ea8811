package agent_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// C116: the kernel is told whom to kill first. Where the engine may not go below what
// it has itself, that is the least.
func TestOOMScoreAdj(t *testing.T) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	memory := int64(info.Totalram) * int64(info.Unit)
	w := newWorld(t)
	w.write("best.yaml", manifest("{name: best}", sleeping("c")))
	w.write("burst.yaml", manifest("{name: burst}", has("a", "{requests: {memory: 1Gi}}"), sleeping("b")))
	w.write("guar.yaml", manifest("{name: guar}", has("c", "{limits: {cpu: 100m, memory: 32Mi}}")))
	w.write("crit.yaml", manifest("{name: crit}", sleeping("c"))+"  priority: 2000001000\n  priorityClassName: system-node-critical\n")
	w.start()
	for _, name := range []string{"best", "burst", "guar", "crit"} {
		w.await(name+" runs", running(name))
	}
	score := func(container string) int {
		t.Helper()
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", w.inspect(w.containers()[container].ID).State.Pid))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	least := score("best-node/POD/0") // -998, or what the engine can
	for container, want := range map[string]int{
		"best-node/c/0":  1000,
		"burst-node/a/0": int(min(max(1000-1000*(1<<30)/memory, 3), 999)),
		"burst-node/b/0": 999,
		"guar-node/c/0":  max(-997, least),
		"crit-node/c/0":  max(-997, least),
	} {
		if got := score(container); got != want {
			t.Errorf("%s has %d, want %d (the least is %d)", container, got, want, least)
		}
	}
}
