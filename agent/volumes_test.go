package agent_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/server"
)

// mounting returns a pod that mounts one path of the host.
func (w *world) mounting(name, path, kind string) string {
	return manifest("{name: "+name+"}", sleeping("app", "volumeMounts: [{name: v, mountPath: /v}]")) +
		"  volumes: [{name: v, hostPath: {path: " + path + ", type: " + kind + "}}]\n"
}

// C068: which types of hostPath make what, and which make nothing.
func TestHostPathTypes(t *testing.T) {
	w := newWorld(t)
	writeFile(t, w.path("file"), "text")
	for name, v := range map[string][2]string{
		"nested": {w.path("hp/x/y/z"), "DirectoryOrCreate"}, "orphan": {w.path("hp2/f"), "FileOrCreate"},
		"new-file": {w.path("f"), "FileOrCreate"}, "on-file": {w.path("file"), "DirectoryOrCreate"},
		"missing": {w.path("later"), "Directory"}, "up": {"/a/../b", "Directory"},
	} {
		w.write(name+".yaml", w.mounting(name, v[0], v[1]))
	}
	w.start()
	s := w.await("those run that can", running("nested"), running("new-file"),
		blocked("orphan", "FailedMount"), blocked("on-file", "FailedMount"), blocked("missing", "FailedMount"),
		problem(w.dir+"/up.yaml"), gone("up"))
	for _, dir := range []string{"hp", "hp/x", "hp/x/y", "hp/x/y/z"} {
		if info, err := os.Stat(w.path(dir)); err != nil || info.Mode() != os.ModeDir|0o755 {
			t.Errorf("%s: %v, %v, want a folder of mode 0755", dir, info, err)
		}
	}
	if info, err := os.Stat(w.path("f")); err != nil || info.Mode() != 0o644 || info.Size() != 0 {
		t.Errorf("f: %v, %v, want an empty file of mode 0644", info, err)
	}
	if exists(w.path("hp2")) || exists(w.path("later")) {
		t.Error("something was made that was not to be made")
	}
	if got := find(s, "on-file").Blocked.Message; !strings.Contains(got, "hostPath type check failed") || !strings.Contains(got, "is not a directory") {
		t.Errorf("message %q", got)
	}
	mkdir(t, w.path("later"))
	w.await("it starts when the folder is there", running("missing"))
}

// C069: a socket must be one, at every start.
func TestHostPathSocket(t *testing.T) {
	w := newWorld(t)
	path := w.path("app.sock")
	w.write("sock.yaml", manifest("{name: sock}", shell("app", "test -S /run/app.sock && echo yes; exec sleep 3600", "volumeMounts: [{name: s, mountPath: /run/app.sock}]"))+
		"  volumes: [{name: s, hostPath: {path: "+path+", type: Socket}}]\n")
	w.start()
	refused := func(s server.State) bool {
		return blocked("sock", "FailedMount")(s) && strings.Contains(find(s, "sock").Blocked.Message, "is not a socket file")
	}
	w.await("it waits for a socket", refused)
	if exists(path) {
		t.Error("something was made in its place")
	}
	writeFile(t, path, "")
	w.restart()
	w.await("a file is none", refused)
	remove(t, path)
	listener := listen(t, path)
	w.await("it runs", running("sock"))
	w.poll("the container sees the socket", func() bool { return w.output(w.ids()["sock-node/app/0"]) == "yes\n" })

	w.write("file.yaml", w.mounting("file", path, "File"))
	w.await("a socket is no file", blocked("file", "FailedMount"))

	listener.Close() // removes it
	w.kill(w.ids()["sock-node/app/0"])
	s := w.await("it waits again", waits("sock", "app", "FailedMount"))
	if got := status(s, "sock", "app").State.Waiting.Message; !strings.Contains(got, "is not a socket file") {
		t.Errorf("message %q", got)
	}
	if exists(path) {
		t.Error("something was made in its place")
	}
	listen(t, path)
	w.await("it runs again", runs("sock", "app", 1))
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// C072: an emptyDir lives as long as its pod, and no longer.
func TestLifeOfAnEmptyDir(t *testing.T) {
	w := newWorld(t)
	text := func(name, rev string) string {
		mount := "volumeMounts: [{name: d, mountPath: /d}]"
		return manifest("{name: "+name+"}",
			shell("w", "echo x >> /d/n; wc -l < /d/n; [ $(wc -l < /d/n) -lt 2 ] && exit 1; trap 'exit 0' TERM; sleep 3600 & wait", mount, "env: [{name: REV, value: "+rev+"}]"),
			shell("u", "stat -c %a /d; trap 'exit 0' TERM; sleep 3600 & wait", mount)) + "  volumes: [{name: d, emptyDir: {}}]\n"
	}
	said := func(name string) string { return strings.TrimSpace(w.output(w.ids()[name])) }
	w.start()
	w.write("scratch.yaml", text("scratch", "one"))
	s := w.await("it crashed once and runs", runs("scratch", "w", 1), running("scratch"))
	w.poll("it counts", func() bool { return said("scratch-node/w/1") == "2" && said("scratch-node/u/0") == "777" })
	dir := filepath.Join(w.cfg.RootDir, "pods", string(find(s, "scratch").Pod.UID))
	w.restart()
	w.await("the agent took over", running("scratch"))
	w.write("scratch.yaml", text("scratch", "two"))
	w.await("the edit runs", runs("scratch", "w", 2), running("scratch"))
	w.poll("it counts on", func() bool { return said("scratch-node/w/2") == "3" })
	w.kill(w.ids()["scratch-node/POD/0"])
	w.await("it runs in a new sandbox", runs("scratch", "w", 3), running("scratch"))
	w.poll("it counts on", func() bool { return said("scratch-node/w/3") == "4" })

	w.write("other.yaml", text("other", "one"))
	w.await("the other runs", runs("other", "w", 1))
	w.poll("it counts for itself", func() bool { return said("other-node/w/1") == "2" })

	w.remove("scratch.yaml")
	w.await("it is gone", gone("scratch"))
	if exists(dir) {
		t.Errorf("%s is left", dir)
	}
	w.write("scratch.yaml", text("scratch", "one"))
	w.await("it runs anew", runs("scratch", "w", 1), running("scratch"))
	w.poll("it counts anew", func() bool { return said("scratch-node/w/1") == "2" })
}

// A hostPath that is said to be a device can be used like one; what is only
// mounted is seen, and the engine lets nobody open it.
func TestDevices(t *testing.T) {
	w := newWorld(t)
	device := w.path("device")
	const loopControl = 10<<8 | 237
	if err := unix.Mknod(device, unix.S_IFCHR|0o666, loopControl); err != nil {
		t.Fatal(err)
	}
	try := func(name, volume string, more string) string {
		return of(name, "busybox:stable", `command: ["sh", "-c", "ls -l /x; head -c 1 /x; echo a >>/x; true"]`, "volumeMounts: [{name: "+volume+", mountPath: /x"+more+"}]")
	}
	w.write("devices.yaml", manifest("{name: devices}", try("both", "device", ""), try("read", "device", ", readOnly: true"), try("mounted", "file", ""))+
		"  restartPolicy: Never\n  volumes: [{name: device, hostPath: {path: "+device+", type: CharDevice}}, {name: file, hostPath: {path: "+device+"}}]\n")
	w.start()
	w.await("they ended", ended("devices"))
	for name, want := range map[string]int{"both": 0, "read": 1, "mounted": 2} {
		said := w.says("devices", name)
		if got := strings.Count(said, "Operation not permitted"); got != want || !strings.Contains(said, "crw") {
			t.Errorf("%s: %d of reading and writing are forbidden, want %d: %q", name, got, want, said)
		}
	}
}
