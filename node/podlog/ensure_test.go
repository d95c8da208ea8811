package podlog_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podkeeper/podkeeper/node/podlog"
	"github.com/podkeeper/podkeeper/pod"
)

// node is a machine's log folders and an engine's.
type node struct {
	t      *testing.T
	dir    string
	engine string
	cfg    podlog.Config
}

func newNode(t *testing.T) node {
	dir := t.TempDir()
	return node{t, dir, t.TempDir(), podlog.Config{
		PodsDir: filepath.Join(dir, "pods"), ContainersDir: filepath.Join(dir, "containers"), Owner: "/root-a",
	}}
}

// link is a container of a pod whose log file exists.
func (n node) link(name, container string, attempt int, id string) podlog.Link {
	n.t.Helper()
	log := filepath.Join(n.engine, id+"-json.log")
	if err := os.WriteFile(log, []byte(id), 0o600); err != nil {
		n.t.Fatal(err)
	}
	key := pod.Key{Namespace: "ops", Name: name}
	return podlog.Link{Key: key, UID: "u-1", Container: container, Attempt: attempt, ID: id, LogPath: log}
}

func (n node) ensure(links ...podlog.Link) {
	n.t.Helper()
	for _, l := range links {
		if err := podlog.Ensure(n.cfg, l); err != nil {
			n.t.Fatal(err)
		}
	}
}

// files maps each link to its target, with the temporary folders' names left
// out, and each file to "file"; folders that are empty map to "empty".
func (n node) files() map[string]string {
	n.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(n.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(n.dir, path)
		switch {
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			files[rel] = strings.NewReplacer(n.dir+"/", "", n.engine+"/", "engine/").Replace(target)
			return err
		case e.IsDir():
			entries, err := os.ReadDir(path)
			if len(entries) == 0 && filepath.Dir(rel) != "." {
				files[rel] = "empty"
			}
			return err
		}
		files[rel] = "file"
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return files
}

func (n node) want(want map[string]string) {
	n.t.Helper()
	if diff := cmp.Diff(want, n.files()); diff != "" {
		n.t.Errorf("links (-want +got):\n%s", diff)
	}
}

func (n node) info(path string) fs.FileInfo {
	n.t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		n.t.Fatal(err)
	}
	return info
}

// put makes a link below the node's folder.
func (n node) put(target, rel string) {
	n.t.Helper()
	path := filepath.Join(n.dir, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		n.t.Fatal(err)
	}
}

// C126: the links are named after namespace, pod, container and id, and point
// to existing files.
func TestEnsureC126(t *testing.T) {
	n := newNode(t)
	first, second := n.link("web", "app", 0, "id0"), n.link("web", "app", 1, "id1")
	n.ensure(first, second)
	made := n.info(podlog.ContainerPath(n.cfg, first))
	n.ensure(first, second) // law 4
	if !os.SameFile(made, n.info(podlog.ContainerPath(n.cfg, first))) {
		t.Error("a link that was right was made again")
	}
	n.want(map[string]string{
		"pods/ops_web_u-1/.podkeeper":    "/root-a",
		"pods/ops_web_u-1/app/0.log":     "engine/id0-json.log",
		"pods/ops_web_u-1/app/1.log":     "engine/id1-json.log",
		"containers/web_ops_app-id0.log": "pods/ops_web_u-1/app/0.log",
		"containers/web_ops_app-id1.log": "pods/ops_web_u-1/app/1.log",
	})
	for path, want := range map[string]string{podlog.PodPath(n.cfg, second): "id1", podlog.ContainerPath(n.cfg, first): "id0"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("through %s: %q, %v", path, got, err)
		}
	}
	if info := n.info(filepath.Dir(podlog.PodPath(n.cfg, first))); info.Mode().Perm()&0o005 != 0o005 {
		t.Errorf("log shippers cannot list the folder, mode %v", info.Mode())
	}
}

func TestEnsureRepairs(t *testing.T) {
	other := filepath.Join(t.TempDir(), "moved.log")
	tests := map[string]func(n node, l podlog.Link) error{
		"a pod link that is gone":          func(n node, l podlog.Link) error { return os.Remove(podlog.PodPath(n.cfg, l)) },
		"a container link that is gone":    func(n node, l podlog.Link) error { return os.Remove(podlog.ContainerPath(n.cfg, l)) },
		"a pod link that points elsewhere": func(n node, l podlog.Link) error { return relink(other, podlog.PodPath(n.cfg, l)) },
		"a container link that does":       func(n node, l podlog.Link) error { return relink(other, podlog.ContainerPath(n.cfg, l)) },
		"everything":                       func(n node, _ podlog.Link) error { return os.RemoveAll(n.cfg.PodsDir) },
		"a folder left by a crash": func(n node, l podlog.Link) error {
			return emptied(filepath.Dir(filepath.Dir(podlog.PodPath(n.cfg, l))))
		},
		"what a crash in a replacement leaves": func(n node, l podlog.Link) error {
			pod, ctr := podlog.PodPath(n.cfg, l), podlog.ContainerPath(n.cfg, l)
			return errors.Join(relink(other, pod), relink(other, ctr),
				os.Symlink("x", filepath.Join(filepath.Dir(pod), ".0.log.tmp")), os.Symlink("x", filepath.Join(filepath.Dir(ctr), ".id0.tmp")))
		},
	}
	for name, harm := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			l := n.link("web", "app", 0, "id0")
			n.ensure(l)
			want := n.files()
			if err := harm(n, l); err != nil {
				t.Fatal(err)
			}
			n.ensure(l)
			n.want(want)
		})
	}
}

func relink(target, path string) error { return errors.Join(os.Remove(path), os.Symlink(target, path)) }

func emptied(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)) }

func TestEnsureWithoutWork(t *testing.T) {
	n := newNode(t)
	l := n.link("web", "app", 0, "id0")
	l.LogPath = ""
	n.ensure(l)
	n.want(map[string]string{})
	l = n.link("web", "app", 0, "id0")
	n.cfg.ContainersDir = ""
	n.ensure(l)
	n.want(map[string]string{"pods/ops_web_u-1/.podkeeper": "/root-a", "pods/ops_web_u-1/app/0.log": "engine/id0-json.log"})
	if err := podlog.Ensure(podlog.Config{}, l); err != nil {
		t.Error(err)
	}
}

// Law 6: what is not ours is not touched.
func TestEnsureLeavesAlone(t *testing.T) {
	tests := map[string]struct {
		setUp func(n node)
		is    error
	}{
		"a folder of another agent": {func(n node) { n.put("/root-b", "pods/ops_web_u-1/.podkeeper") }, podlog.ErrForeign},
		"a folder of a kubelet":     {func(n node) { n.put("/x", "pods/ops_web_u-1/app/3.log") }, podlog.ErrForeign},
		"a file in the place of the pod link": {func(n node) {
			n.put("/root-a", "pods/ops_web_u-1/.podkeeper")
			n.file("pods/ops_web_u-1/app/0.log")
		}, fs.ErrExist},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			tt.setUp(n)
			want := n.files()
			if err := podlog.Ensure(n.cfg, n.link("web", "app", 0, "id0")); !errors.Is(err, tt.is) {
				t.Errorf("Ensure: %v, want %v", err, tt.is)
			}
			n.want(want)
		})
	}
}

func (n node) file(rel string) {
	n.t.Helper()
	path := filepath.Join(n.dir, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func TestEnsureRefusesNames(t *testing.T) {
	n := newNode(t)
	good := n.link("web", "app", 0, "id0")
	tests := map[string]func(cfg *podlog.Config, l *podlog.Link){
		"a container that leads out":   func(_ *podlog.Config, l *podlog.Link) { l.Container = ".." },
		"a container that is here":     func(_ *podlog.Config, l *podlog.Link) { l.Container = "." },
		"a container that is none":     func(_ *podlog.Config, l *podlog.Link) { l.Container = "" },
		"a pod of several parts":       func(_ *podlog.Config, l *podlog.Link) { l.Key.Name = "a/b" },
		"a namespace with a separator": func(_ *podlog.Config, l *podlog.Link) { l.Key.Namespace = "a_b" },
		"a uid that is none":           func(_ *podlog.Config, l *podlog.Link) { l.UID = "" },
		"an id that leads out":         func(_ *podlog.Config, l *podlog.Link) { l.ID = "x/../y" },
		"no owner":                     func(cfg *podlog.Config, _ *podlog.Link) { cfg.Owner = "" },
		"a relative pods folder":       func(cfg *podlog.Config, _ *podlog.Link) { cfg.PodsDir = "pods" },
		"a relative containers folder": func(cfg *podlog.Config, _ *podlog.Link) { cfg.ContainersDir = "containers" },
	}
	for name, harm := range tests {
		t.Run(name, func(t *testing.T) {
			cfg, l := n.cfg, good
			harm(&cfg, &l)
			if err := podlog.Ensure(cfg, l); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("Ensure: %v, want fs.ErrInvalid", err)
			}
			n.want(map[string]string{})
		})
	}
}

// Two containers whose names are cut to the same: the later attempt has it,
// whatever the order of the calls, and the choice does not flap.
func TestEnsureOfCutNames(t *testing.T) {
	n := newNode(t)
	name, container := strings.Repeat("p", 190), strings.Repeat("c", 62)
	l0, l1 := n.link(name, container+"1", 0, "id0"), n.link(name, container+"1", 1, "id1")
	beside := n.link(name, container+"2", 0, "id2")
	path := podlog.ContainerPath(n.cfg, l0)
	if podlog.ContainerPath(n.cfg, l1) != path || podlog.ContainerPath(n.cfg, beside) != path {
		t.Fatal("the names differ")
	}
	target := func() string {
		got, err := os.Readlink(path)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	n.ensure(l0, l1, l0)
	if got := target(); got != podlog.PodPath(n.cfg, l1) {
		t.Errorf("points to %s, want the later attempt", got)
	}
	n.ensure(beside)
	if got := target(); got != podlog.PodPath(n.cfg, l1) {
		t.Errorf("points to %s, want the holder while its log is there", got)
	}
	if err := os.Remove(l1.LogPath); err != nil {
		t.Fatal(err)
	}
	n.ensure(beside)
	if got := target(); got != podlog.PodPath(n.cfg, beside) {
		t.Errorf("points to %s, want the one whose log is there", got)
	}
}
