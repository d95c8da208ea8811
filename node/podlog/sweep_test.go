package podlog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podkeeper/podkeeper/node/podlog"
	"github.com/podkeeper/podkeeper/pod"
)

func (n node) sweep(want int, keep ...podlog.Link) {
	n.t.Helper()
	got, err := podlog.Sweep(n.cfg, keep)
	if err != nil || got != want {
		n.t.Errorf("Sweep removed %d, %v, want %d", got, err, want)
	}
}

// C126: no dangling links after removal, and none lost while the engine
// rotates a file.
func TestSweepC126(t *testing.T) {
	n := newNode(t)
	web0, web1, side := n.link("web", "app", 0, "id0"), n.link("web", "app", 1, "id1"), n.link("web", "side", 0, "id2")
	db := n.link("db", "pg", 0, "id3")
	n.ensure(web1, db)
	want := n.files()
	n.ensure(web0, side)
	if err := os.Remove(web1.LogPath); err != nil { // it is being rotated
		t.Fatal(err)
	}
	n.sweep(4, web1, db)
	n.want(want)
	n.sweep(0, web1, db)
	n.want(want)
	n.sweep(4)
	n.want(map[string]string{})
	n.sweep(0)
}

func TestSweepOfWhatACrashLeaves(t *testing.T) {
	n := newNode(t)
	l := n.link("web", "app", 0, "id0")
	n.ensure(l)
	want := n.files()
	pods, containers := podlog.PodPath(n.cfg, l), podlog.ContainerPath(n.cfg, l)
	for path, target := range map[string]string{
		filepath.Join(filepath.Dir(pods), ".0.log.tmp"):        l.LogPath,
		filepath.Join(filepath.Dir(containers), ".id0.tmp"):    pods,
		filepath.Join(n.dir, "pods/ops_gone_u-2/.podkeeper"):   "/root-a",
		filepath.Join(n.dir, "pods/ops_half_u-3/.podkeeper"):   "/root-a",
		filepath.Join(n.dir, "pods/ops_half_u-3/app/2.log"):    "/nowhere",
		filepath.Join(n.dir, "containers/half_ops_app-id.log"): filepath.Join(n.dir, "pods/ops_half_u-3/app/2.log"),
	} {
		rel, err := filepath.Rel(n.dir, path)
		if err != nil {
			t.Fatal(err)
		}
		n.put(target, rel)
	}
	n.sweep(4, l)
	n.want(want)
}

// Law 6: what others made stays, dangling or not, and so does what people put
// beside our links.
func TestSweepLeavesAlone(t *testing.T) {
	n := newNode(t)
	mine := n.link("web", "app", 0, "id0")
	kept := n.link("web", "side", 0, "id7")
	n.ensure(mine, kept)
	other := n
	other.cfg.Owner = "/root-b"
	theirs := other.link("job", "app", 0, "id1")
	other.ensure(theirs)
	if err := os.Remove(theirs.LogPath); err != nil {
		t.Fatal(err)
	}
	n.put("/nowhere", "pods/ops_kubelet_u-9/app/0.log")
	n.put(filepath.Join(n.dir, "pods/ops_kubelet_u-9/app/0.log"), "containers/kubelet_ops_app-id9.log")
	n.put(filepath.Join(n.dir, "pods/ops_left_u-8/app/0.log"), "containers/left_ops_app-id8.log")
	n.put("/nowhere", "containers/web_ops_app-else.log")
	n.put(podlog.PodPath(n.cfg, mine), "containers/favourite.log")
	n.file("pods/ops_web_u-1/app/0.log.offset")
	n.file("pods/ops_web_u-1/app/7.log")
	n.put("/nowhere", "pods/ops_web_u-1/app/latest.log")
	n.file("pods/stray")
	n.put("ops_web_u-1", "pods/alias")
	n.put("ops_web_u-1", "pods/ops_alias_u-1")
	want := n.files()
	delete(want, "pods/ops_web_u-1/app/0.log")
	delete(want, "containers/web_ops_app-id0.log")
	n.sweep(2, kept)
	n.want(want)
	if err := podlog.RemovePod(n.cfg, pod.Key{Namespace: "ops", Name: "alias"}, "u-1"); err != nil {
		t.Error(err)
	}
	if err := podlog.RemovePod(n.cfg, theirs.Key, theirs.UID); err != nil {
		t.Error(err)
	}
	if err := podlog.RemovePod(n.cfg, pod.Key{Namespace: "ops", Name: "kubelet"}, "u-9"); err != nil {
		t.Error(err)
	}
	n.want(want)
	other.sweep(2)
}

func TestRemovePod(t *testing.T) {
	tests := map[string]func(n node, l podlog.Link) error{
		"as it was made":                  func(node, podlog.Link) error { return nil },
		"whose logs are gone":             func(_ node, l podlog.Link) error { return os.Remove(l.LogPath) },
		"whose folder somebody removed":   func(n node, _ podlog.Link) error { return os.RemoveAll(filepath.Join(n.dir, "pods/ops_web_u-1")) },
		"whose folder a crash left empty": func(n node, _ podlog.Link) error { return emptied(filepath.Join(n.dir, "pods/ops_web_u-1")) },
		"whose links were partly removed": func(n node, l podlog.Link) error { return os.Remove(podlog.ContainerPath(n.cfg, l)) },
		"when the containers folder is gone": func(n node, _ podlog.Link) error {
			return os.RemoveAll(n.cfg.ContainersDir)
		},
	}
	for name, harm := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			beside := n.link("web-2", "app", 0, "id9")
			l, later := n.link("web", "app", 0, "id0"), n.link("web", "app", 1, "id1")
			n.ensure(l, later, beside)
			if err := harm(n, l); err != nil {
				t.Fatal(err)
			}
			for range 2 { // law 4
				if err := podlog.RemovePod(n.cfg, l.Key, l.UID); err != nil {
					t.Fatal(err)
				}
			}
			n.ensure(beside)
			n.want(map[string]string{
				"pods/ops_web-2_u-1/.podkeeper":    "/root-a",
				"pods/ops_web-2_u-1/app/0.log":     "engine/id9-json.log",
				"containers/web-2_ops_app-id9.log": "pods/ops_web-2_u-1/app/0.log",
			})
		})
	}
}

func TestSweepAndRemoveOfNothing(t *testing.T) {
	n := newNode(t)
	n.sweep(0)
	if err := podlog.RemovePod(n.cfg, pod.Key{Namespace: "ops", Name: "web"}, "u"); err != nil {
		t.Error(err)
	}
	n.cfg = podlog.Config{}
	n.sweep(0)
	if err := podlog.RemovePod(n.cfg, pod.Key{Namespace: "ops", Name: "web"}, "u"); err != nil {
		t.Error(err)
	}
	n.want(map[string]string{})
}
