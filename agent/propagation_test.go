package agent_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A mount that the host makes after the container has started is seen where its
// mount asks for it, and nowhere else.
func TestMountPropagation(t *testing.T) {
	w := newWorld(t)
	dir := w.path("shared")
	mkdir(t, dir)
	mount(t, dir, dir, "", unix.MS_BIND)
	mount(t, "", dir, "", unix.MS_SHARED)
	mkdir(t, dir+"/late")

	at := func(mode string) string {
		return "volumeMounts: [{name: d, mountPath: /d, mountPropagation: " + mode + "}]"
	}
	look := "trap 'exit 0' TERM; until [ -e /d/late/go ] || [ -e /d/go ]; do sleep 0.2; done; test -e /d/late/file && echo seen || echo hidden; sleep 3600 & wait"
	w.write("mounts.yaml", manifest("{name: mounts}",
		shell("none", look, at("None")), shell("in", look, at("HostToContainer")))+
		"  volumes: [{name: d, hostPath: {path: "+dir+", type: Directory}}]\n")
	w.start()
	w.await("it runs", running("mounts"))
	mount(t, "none", dir+"/late", "tmpfs", 0)
	writeFile(t, dir+"/late/file", "")
	writeFile(t, dir+"/late/go", "")
	writeFile(t, dir+"/go", "")
	for name, want := range map[string]string{"none": "hidden\n", "in": "seen\n"} {
		id := w.ids()["mounts-node/"+name+"/0"]
		w.poll(name+" has looked", func() bool { return w.output(id) != "" })
		if got := w.output(id); got != want {
			t.Errorf("%s: the mount is %q, want %q", name, got, want)
		}
	}
}

// mount mounts until the test ends; one that only changes another is not undone.
func mount(t *testing.T, source, target, kind string, flags uintptr) {
	t.Helper()
	if err := unix.Mount(source, target, kind, flags, ""); err != nil {
		t.Fatalf("mount on %s: %v", target, err)
	}
	if source != "" {
		t.Cleanup(func() { unmount(t, target) })
	}
}

func unmount(t *testing.T, target string) {
	t.Helper()
	if err := unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		t.Errorf("unmount %s: %v", target, err)
	}
}
