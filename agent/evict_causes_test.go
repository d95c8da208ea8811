package agent_test

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/stats"
)

// TestEvictionByProcesses sets the threshold somewhat below what there is of PIDs.
// What other tests start or end meanwhile is less than the margin.
func TestEvictionByProcesses(t *testing.T) {
	const margin, hog = 700, 1500
	w := newWorld(t)
	node := stats.NewReader(slog.New(slog.DiscardHandler)).Node(stats.Paths{})
	if node.PIDs.Max == nil || node.PIDs.Running == nil {
		t.Fatal("nobody can tell how many processes there are")
	}
	w.cfg.Eviction = gc.EvictionConfig{
		Policy: gc.EvictionPolicy{Thresholds: threshold(gc.PIDAvailable, *node.PIDs.Max-*node.PIDs.Running-margin), Transition: *patience / 18},
		Period: time.Second,
	}
	w.write("calm.yaml", manifest("{name: calm}", sleeping("a")))
	w.evictsOne(fmt.Sprintf("for i in $(seq %d); do sleep 3600 & done", hog), "resource: pids", "pid.available")
}

// TestEvictionByInodes has a pod make many small files on a small filesystem.
func TestEvictionByInodes(t *testing.T) {
	disk := smallDisk(t, 1024)
	w := newWorld(t)
	w.cfg.RootDir = disk
	w.cfg.Eviction = gc.EvictionConfig{
		Policy: gc.EvictionPolicy{Thresholds: threshold(gc.NodeFSInodesFree, 400), Transition: *patience / 18}, Period: time.Second,
	}
	calm := shell("a", "dd if=/dev/zero of=/data/f bs=1M count=20 2>/dev/null"+andStay, "volumeMounts: [{name: data, mountPath: /data}]")
	w.write("calm.yaml", manifest("{name: calm}", calm)+"  volumes: [{name: data, emptyDir: {}}]\n")
	w.evictsOne("for i in $(seq 700); do : >/data/$i; done", "resource: inodes", "nodefs.inodesFree: 400")
}

// evictsOne starts the agent and holds that a pod that does something in its first life
// goes for it, with those words, and comes back, and that calm stays.
func (w *world) evictsOne(hog string, words ...string) {
	w.t.Helper()
	w.start()
	w.await("it runs", running("calm"))
	w.write("hog.yaml", w.mountsData("hog", once(hog), "{}"))
	w.await("the hog is evicted", evicted("hog", append(words, "The pod was using ")...), running("calm"))
	w.await("it comes back", running("hog"), running("calm"))
	if n := len(w.said.lines("reason=Evicted", "The node was low")); n != 1 {
		w.t.Errorf("%d evictions were told", n)
	}
}

// TestEvictionBySoftThreshold holds that a pod goes only after the grace period of the
// threshold, and gets longer to end than by a hard one.
func TestEvictionBySoftThreshold(t *testing.T) {
	disk := smallDisk(t, 1024)
	w := newWorld(t)
	w.cfg.RootDir = disk
	soft := gc.Threshold{Signal: gc.NodeFSAvailable, Amount: gc.Amount{Value: 20 * mi}, Soft: true, Grace: 5 * time.Second}
	w.cfg.Eviction = gc.EvictionConfig{
		Policy: gc.EvictionPolicy{Thresholds: []gc.Threshold{soft}, SoftGrace: *patience, Transition: time.Second}, Period: time.Second,
	}
	script := "dd if=/dev/zero of=/data/f bs=1M count=40 2>/dev/null; trap 'sleep 3; touch /once/ended; exit 0' TERM; sleep 3600 & wait"
	slow := strings.Replace(w.mountsData("full", script, "{}"), "GracePeriodSeconds: 2", "GracePeriodSeconds: 3600", 1)
	w.write("full.yaml", slow+"  restartPolicy: Never\n")
	w.start()
	w.await("it is evicted", evicted("full", "ephemeral-storage", "20Mi"))
	if !exists(w.path("once/ended")) {
		t.Error("it was killed before it could end")
	}
	met, gone := w.said.lines("the node is under disk pressure"), w.said.lines("reason=Evicted", "The node was low")
	if len(met) == 0 || len(gone) != 1 {
		t.Fatalf("said: %q, %q", met, gone)
	}
	if took := saidAt(t, gone[0]).Sub(saidAt(t, met[0])); took < soft.Grace-time.Second {
		t.Errorf("it went %s after the threshold was met, want %s", took, soft.Grace)
	}
}

// saidAt returns when a line was logged.
func saidAt(t *testing.T, line string) time.Time {
	t.Helper()
	at, err := time.Parse("time="+time.RFC3339Nano, regexp.MustCompile(`^\S*`).FindString(line))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestEvictionByStorageLimits has pods write more than their containers may.
func TestEvictionByStorageLimits(t *testing.T) {
	limit := func(amount string) string {
		return "resources: {limits: {ephemeral-storage: " + amount + "}}"
	}
	w := newWorld(t)
	w.cfg.Eviction = gc.EvictionConfig{Period: time.Second}
	within := sleeping("b", limit("90Mi"))
	layer := shell("a", "dd if=/dev/zero of=/f bs=1M count=5 2>/dev/null"+andStay, limit("2Mi"))
	volume := shell("a", "dd if=/dev/zero of=/data/f bs=1M count=5 2>/dev/null"+andStay, limit("2Mi"), "volumeMounts: [{name: data, mountPath: /data}]")
	never := "  restartPolicy: Never\n"
	w.write("layer.yaml", manifest("{name: layer}", layer, within)+never)
	w.write("all.yaml", manifest("{name: all}", volume)+"  volumes: [{name: data, emptyDir: {}}]\n"+never)
	w.write("within.yaml", manifest("{name: within}", within)+never)
	w.start()
	w.await("those beyond their limits are evicted, no other", running("within"),
		evicted("layer", `Container a exceeded its local ephemeral storage limit "2Mi": it is using 5`, "runs again when it is edited"),
		evicted("all", "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi: it is 5", "runs again when it is edited"))
}
