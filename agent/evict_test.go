package agent_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/gc"
	"github.com/podkeeper/podkeeper/node/stats"
	"github.com/podkeeper/podkeeper/server"
)

const mi = 1 << 20

// smallDisk returns a folder on a filesystem of its own of 64 MiB with that many
// inodes.
func smallDisk(t *testing.T, inodes int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "podkeeper-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	mkdir(t, mount)
	for _, command := range [][]string{
		{"truncate", "-s", "64M", image},
		{"mkfs.ext4", "-q", "-F", "-m", "0", "-N", fmt.Sprint(inodes), image},
		{"mount", "-o", "loop", image, mount},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", mount).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return mount
}

func fill(t *testing.T, path string, bytes int) {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
}

// evicted holds of a pod of which nothing is left but why.
func evicted(name string, words ...string) condition {
	return func(s server.State) bool {
		p := find(s, name)
		return showsEvicted(name, words...)(s) && p.Blocked != nil && len(p.Steps) == 0
	}
}

// showsEvicted holds from the verdict on, while its containers still end.
func showsEvicted(name string, words ...string) condition {
	return func(s server.State) bool {
		p := find(s, name)
		if p == nil || p.Pod.Status.Phase != v1.PodFailed || p.Pod.Status.Reason != "Evicted" {
			return false
		}
		for _, w := range words {
			if !strings.Contains(p.Pod.Status.Message, w) {
				return false
			}
		}
		return true
	}
}

func threshold(signal gc.Signal, bytes int64) []gc.Threshold {
	return []gc.Threshold{{Signal: signal, Amount: gc.Amount{Value: bytes}}}
}

// once is a script that does something in the first life of a pod only.
func once(what string) string {
	return "[ -e /once/did ] || { touch /once/did; " + what + "; }" + andStay
}

// mountsData returns the manifest of a pod that mounts the volume data, and one for once.
func (w *world) mountsData(name, script, emptyDir string) string {
	return manifest("{name: "+name+"}", shell("a", script, "volumeMounts: [{name: data, mountPath: /data}, {name: once, mountPath: /once}]")) +
		"  volumes: [{name: data, emptyDir: " + emptyDir + "}, {name: once, hostPath: {path: " + w.path("once") + ", type: DirectoryOrCreate}}]\n"
}

// TestEvictionByDisk holds C117 and the whole life of an eviction, on a small
// filesystem that holds the root dir.
func TestEvictionByDisk(t *testing.T) {
	disk := smallDisk(t, 1024)
	w := newWorld(t)
	w.cfg.RootDir = disk
	w.cfg.Eviction = gc.EvictionConfig{
		Policy: gc.EvictionPolicy{Thresholds: threshold(gc.NodeFSAvailable, 20*mi), Transition: *patience * 2 / 15}, Period: time.Second,
	}
	critical := strings.Replace(manifest("{name: critical}", sleeping("a")), "spec:\n", "spec:\n  priorityClassName: system-node-critical\n", 1)
	w.write("calm.yaml", manifest("{name: calm}", shell("a", "dd if=/dev/zero of=/f bs=1M count=50 2>/dev/null"+andStay))) // which lies elsewhere
	w.start()
	w.await("it runs", running("calm"))
	w.tells("calm-node/a/0")
	w.write("full.yaml", w.mountsData("full", once("dd if=/dev/zero of=/data/f bs=1M count=40 2>/dev/null"), "{}"))
	s := w.await("the pod that fills the disk is evicted", evicted("full", "ephemeral-storage", "20Mi", "The pod was using 40"))
	uid := find(s, "full").Pod.UID
	if exists(filepath.Join(disk, "pods", string(uid), "volumes")) {
		t.Error("its volumes are left")
	}
	logs := func(name string) []string {
		found, _ := filepath.Glob(filepath.Join(w.cfg.Logs.PodsDir, "default_"+name+"-node_*"))
		return found
	}
	if len(logs("calm")) != 1 || len(logs("full")) != 0 {
		t.Errorf("there are the logs %s and %s, want the first alone", logs("calm"), logs("full"))
	}
	for id := range w.ids() {
		if strings.HasPrefix(id, "full") {
			t.Errorf("container %s is left", id)
		}
	}
	w.restart()
	w.write("new.yaml", manifest("{name: new}", sleeping("a")))
	w.write("critical.yaml", critical)
	s = w.await("it is evicted for the next agent, too", evicted("full", "20Mi"), running("calm"), running("critical"))
	if find(s, "full").Pod.UID != uid {
		t.Error("it has another UID")
	}
	s = w.await("it comes back", running("full"), running("new"))
	if find(s, "full").Pod.UID != uid {
		t.Error("it came back with another UID")
	}
	if n := len(w.said.lines("reason=Evicted", "The node was low")); n != 1 {
		t.Errorf("%d evictions were told", n)
	}
}

// TestEvictionByImageDisk has the filesystem of the images, and of what containers write
// to their own, be a small one.
func TestEvictionByImageDisk(t *testing.T) {
	write := "dd if=/dev/zero of=/f bs=1M count=20 2>/dev/null"
	bytes := func(t *testing.T, dir string) { fill(t, filepath.Join(dir, "f"), 40*mi) }
	for signal, tt := range map[gc.Signal]struct {
		least   int64
		hog     string
		exhaust func(t *testing.T, dir string)
		using   string
	}{
		gc.ImageFSAvailable:     {20 * mi, write, bytes, "The pod was using 2"},
		gc.ContainerFSAvailable: {20 * mi, write, bytes, "The pod was using 2"},
		gc.ImageFSInodesFree: {400, "mkdir /d; for i in $(seq 300); do : >/d/$i; done", func(t *testing.T, dir string) {
			for i := range 700 {
				fill(t, filepath.Join(dir, fmt.Sprint(i)), 0)
			}
		}, "The pod was using 3"},
	} {
		t.Run(string(signal), func(t *testing.T) {
			disk := smallDisk(t, 1024)
			w := newWorld(t)
			w.cfg.Eviction = gc.EvictionConfig{
				Policy: gc.EvictionPolicy{Thresholds: threshold(signal, tt.least), Transition: *patience / 18, LowDisk: 2 * mi},
				Period: time.Second, Images: disk,
			}
			w.write("small.yaml", manifest("{name: small}", sleeping("a")))
			w.write("large.yaml", manifest("{name: large}", shell("a", tt.hog+andStay)))
			w.start()
			w.await("both run", running("small"), running("large"))
			w.tells("large-node/a/0")
			images := filepath.Join(disk, "images")
			mkdir(t, images)
			tt.exhaust(t, images)
			w.await("the one with the larger layer goes first", evicted("large", string(signal), tt.using))
			w.await("then the other, since that did not help", evicted("small"))
			w.write("late.yaml", manifest("{name: late}", sleeping("a")))
			w.await("a new one waits", blocked("late", "DiskPressure"))
			if err := os.RemoveAll(images); err != nil {
				t.Fatal(err)
			}
			w.await("all are there again", running("small"), running("large"), running("late"))
		})
	}
}

// TestLowImageDisk holds that no pod is let onto a filesystem of images that is nearly
// full, and that what runs stays.
func TestLowImageDisk(t *testing.T) {
	disk := smallDisk(t, 1024)
	w := newWorld(t)
	w.cfg.Eviction = gc.EvictionConfig{Policy: gc.EvictionPolicy{LowDisk: 20 * mi}, Period: time.Second, Images: disk}
	w.write("old.yaml", manifest("{name: old}", sleeping("a")))
	w.start()
	w.await("the pod runs", running("old"))
	fill(t, filepath.Join(disk, "images"), 40*mi)
	w.poll("the agent notices", func() bool { return len(w.said.lines("the disk is nearly full", disk)) > 0 })
	w.write("new.yaml", manifest("{name: new}", sleeping("a")))
	s := w.await("a new one waits", blocked("new", "OutOfImageDisk"), running("old"))
	if why := find(s, "new").Blocked.Message; !strings.Contains(why, "no pod is admitted below 20Mi") {
		t.Errorf("it waits for %q", why)
	}
	if err := os.Remove(filepath.Join(disk, "images")); err != nil {
		t.Fatal(err)
	}
	w.await("there is room again", running("new"), running("old"))
}

// TestEvictionByMemory sets the threshold just below what is available. The kernel
// says when it is met, before anybody has looked. What other tests take or give back
// meanwhile is less than the margin.
func TestEvictionByMemory(t *testing.T) {
	node := stats.NewReader(slog.New(slog.DiscardHandler)).Node(stats.Paths{})
	if node.Memory.Available == nil || *node.Memory.Available < 3<<29 {
		t.Fatal("this test needs 1.5 GiB of memory that can be had")
	}
	margin := min(*node.Memory.Available*3/10, 3<<30)
	hog := 2 * margin >> 20 // MiB
	w := newWorld(t)
	w.cfg.Eviction = gc.EvictionConfig{
		Policy: gc.EvictionPolicy{Thresholds: threshold(gc.MemoryAvailable, *node.Memory.Available-margin), Transition: *patience / 6},
		Period: 2 * *patience, // only the kernel can have it noticed
	}
	w.write("exempt.yaml", manifest(`{name: exempt, annotations: {podkeeper.io/evict: never}}`, sleeping("a")))
	w.write("hog.yaml", w.mountsData("hog", once(fmt.Sprintf("dd if=/dev/zero of=/data/f bs=1M count=%d 2>/dev/null", hog)), "{medium: Memory}"))
	w.start()
	w.await("the hog is evicted", evicted("hog", "resource: memory", "its request is 0"), running("exempt"))
	w.cfg.Eviction.Period = time.Second
	w.restart()
	w.await("the hog comes back", running("hog"), running("exempt"))
}

// TestEvictionByOwnLimit has a pod write more to a volume than that may hold.
func TestEvictionByOwnLimit(t *testing.T) {
	w := newWorld(t)
	w.cfg.Eviction = gc.EvictionConfig{Period: time.Second}
	w.write("other.yaml", manifest("{name: other}", sleeping("a")))
	w.write("over.yaml", w.mountsData("over", once("dd if=/dev/zero of=/data/f bs=1M count=5 2>/dev/null"), "{sizeLimit: 2Mi}"))
	w.start()
	s := w.await("it is evicted", showsEvicted("over", `EmptyDir volume "data" exceeds the limit "2Mi"`, "it runs again 10s after that"), running("other"))
	uid := find(s, "over").Pod.UID
	w.restart()
	w.await("it comes back", running("over"), running("other"))
	if exists(filepath.Join(w.cfg.RootDir, "pods", string(uid), "volumes", "kubernetes.io~empty-dir", "data", "f")) {
		t.Error("what it wrote is left")
	}
}

// TestFullDisk holds that the agent and what runs live on where nothing can be
// written any more, whether bytes or inodes have run out.
func TestFullDisk(t *testing.T) {
	for name, exhaust := range map[string]func(t *testing.T, dir string){
		"bytes": func(t *testing.T, dir string) {
			mkdir(t, dir)
			f, err := os.Create(filepath.Join(dir, "f"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for err == nil {
				_, err = f.Write(make([]byte, 4096))
			}
		},
		"inodes": func(t *testing.T, dir string) {
			mkdir(t, dir)
			var err error
			for i := 0; err == nil; i++ {
				err = os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := smallDisk(t, 256)
			w := newWorld(t)
			w.cfg.RootDir = disk
			inodes := gc.Threshold{Signal: gc.NodeFSInodesFree, Amount: gc.Amount{Value: 5}, Soft: true, Grace: time.Hour}
			w.cfg.Eviction = gc.EvictionConfig{Policy: gc.EvictionPolicy{LowDisk: 5 * mi, Thresholds: []gc.Threshold{inodes}}, Period: time.Second}
			w.write("old.yaml", manifest("{name: old}", sleeping("a")))
			w.start()
			w.await("the pod runs", running("old"))
			before := w.ids()
			exhaust(t, filepath.Join(disk, "junk"))
			w.poll("the agent notices", func() bool {
				return len(w.said.lines("the disk is nearly full"))+len(w.said.lines("the node is under disk pressure")) > 0
			})
			w.write("new.yaml", manifest("{name: new}", sleeping("a")))
			reason := map[string]string{"bytes": "OutOfDisk", "inodes": "DiskPressure"}[name]
			w.await("a new one waits, with the numbers", blocked("new", reason), running("old"))
			w.restart()
			w.await("the next agent says so, too", blocked("new", reason), running("old"))
			diff(t, "what ran before", w.ids()["old-node/a/0"], before["old-node/a/0"])
			if err := os.RemoveAll(filepath.Join(disk, "junk")); err != nil {
				t.Fatal(err)
			}
			w.await("there is room again", running("new"), running("old"))
		})
	}
}
