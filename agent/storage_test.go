package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/server"
)

func claim(name, metadata string) string {
	return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name + metadata + "}\n" +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
}

// andStay is the end of a script that has said what it is asked for.
const andStay = "; echo done; trap 'exit 0' TERM; sleep 3600 & wait"

// tells waits until a container that ends with andStay has said it all.
func (w *world) tells(name string) string {
	w.t.Helper()
	var said string
	w.poll(name+" tells", func() bool {
		id := w.ids()[name]
		if id == "" {
			return false
		}
		var done bool
		said, done = strings.CutSuffix(w.output(id), "done\n")
		return done
	})
	return said
}

// mounts lists what is mounted below the root dir.
func (w *world) mounts() (list []string) {
	w.t.Helper()
	infos, err := mountinfo.GetMounts(mountinfo.PrefixFilter(w.cfg.RootDir))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range infos {
		list = append(list, m.Mountpoint)
	}
	return list
}

// C071: an emptyDir in memory is one tmpfs of the pod, of the size asked for.
func TestEmptyDirInMemory(t *testing.T) {
	w := newWorld(t)
	w.write("mem.yaml", manifest("{name: mem}",
		shell("a", "grep -o ' /m tmpfs' /proc/mounts; df -k /m | tail -1 | tr -s ' ' | cut -d' ' -f2; dd if=/dev/zero of=/m/f bs=1M count=20 2>/dev/null; echo rc=$?; stat -c %a /m"+andStay,
			"volumeMounts: [{name: m, mountPath: /m}]"),
		shell("b", "until [ $(stat -c %s /m/f 2>/dev/null || echo 0) = 10485760 ]; do sleep 0.1; done; df -k /n | tail -1 | tr -s ' ' | cut -d' ' -f2"+andStay,
			"volumeMounts: [{name: m, mountPath: /m}, {name: more, mountPath: /n}]", "resources: {limits: {memory: 32Mi}}"))+
		"  volumes: [{name: m, emptyDir: {medium: Memory, sizeLimit: 10Mi}}, {name: more, emptyDir: {medium: Memory, sizeLimit: 64Mi}}]\n")
	w.start()
	w.await("it runs", running("mem"))
	diff(t, "what a sees", w.tells("mem-node/a/0"), " /m tmpfs\n10240\nrc=1\n777\n")
	diff(t, "what b sees", w.tells("mem-node/b/0"), "65536\n") // a has no limit, so the pod has none
	if got := len(w.mounts()); got != 2 {
		t.Errorf("%d mounts, want one a volume", got)
	}
	w.remove("mem.yaml")
	w.await("it is gone", gone("mem"))
	if left := w.mounts(); len(left) > 0 {
		t.Errorf("left mounted: %v", left)
	}
}

// C066: a path of a volume is mounted alone, as it is when the container is made.
func TestSubPaths(t *testing.T) {
	w := newWorld(t)
	w.write("sub.yaml", configMap("conf", `{app.conf: "v1"}`)+"---\n"+manifest("{name: sub}",
		shell("app", "cat /etc/app.conf /etc/conf/app.conf; touch /logs/x /data/y; stat -c %a /data; ls /all /all/logs /all/deep/er"+andStay,
			"env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
			`volumeMounts: [{name: c, mountPath: /etc/app.conf, subPath: app.conf}, {name: c, mountPath: /etc/conf},
				{name: d, mountPath: /logs, subPathExpr: "logs/$(NAME)"}, {name: d, mountPath: /data, subPath: deep/er}, {name: d, mountPath: /all}]`))+
		"  volumes: [{name: c, configMap: {name: conf}}, {name: d, emptyDir: {}}]\n")
	w.start()
	w.await("it runs", running("sub"))
	const tree = "777\n/all:\ndeep\nlogs\n\n/all/deep/er:\ny\n\n/all/logs:\nsub-node\n"
	diff(t, "what it sees", w.tells("sub-node/app/0"), "v1v1"+tree)

	w.write("sub.yaml", strings.Replace(readFile(t, filepath.Join(w.dir, "sub.yaml")), `"v1"`, `"v2"`, 1))
	w.poll("the update is in the volume, and not in the path", func() bool {
		return w.exec(w.ids()["sub-node/app/0"], "sh", "-c", "grep -q v2 /etc/conf/app.conf && grep -q v1 /etc/app.conf") == 0
	})
	w.kill(w.ids()["sub-node/app/0"])
	w.await("it runs again", runs("sub", "app", 1))
	diff(t, "what the next one sees", w.tells("sub-node/app/1"), "v2v2"+tree)
	if got := len(w.mounts()); got != 3 {
		t.Errorf("mounted: %v, want one a path", w.mounts())
	}
	w.remove("sub.yaml")
	w.await("it is gone", gone("sub"))
	if left := w.mounts(); len(left) > 0 {
		t.Errorf("left mounted: %v", left)
	}
}

// A link that one container makes leads no other out of the volume, and the pod
// says what it waits for.
func TestSubPathThatLeadsOut(t *testing.T) {
	w := newWorld(t)
	mount := "volumeMounts: [{name: d, mountPath: /d}]"
	w.write("evil.yaml", manifest("{name: evil}",
		shell("links", "ln -s / /d/root; ln -s ../../../../.. /d/up; echo linked"+andStay, mount),
		shell("reads", "until [ -e /d/go ]; do sleep 0.1; done; exit 0", mount),
		sleeping("absolute", "volumeMounts: [{name: d, mountPath: /x, subPath: root/etc}]"),
		sleeping("climbing", "volumeMounts: [{name: d, mountPath: /x, subPath: up/etc}]"))+
		"  volumes: [{name: d, emptyDir: {}}]\n")
	w.start()
	w.tells("evil-node/links/0")
	for _, name := range []string{"absolute", "climbing"} {
		// One that was made before the link was is put to the test again.
		if id := w.ids()["evil-node/"+name+"/0"]; id != "" {
			w.kill(id)
		}
		s := w.await(name+" is not made", waits("evil", name, "CreateContainerConfigError"))
		want := `mount /x: path in volume "d": leads out of the volume`
		if got := status(s, "evil", name).State.Waiting.Message; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A claim is a folder that outlives the pod, and its own file unless it says so.
func TestClaimOutlivesItsPod(t *testing.T) {
	w := newWorld(t)
	w.cfg.GC.ContainerPeriod = 200 * time.Millisecond
	text := func(name string) string {
		return manifest("{name: "+name+"}", shell("app", "echo x >> /data/n; wc -l < /data/n; stat -c %a /data"+andStay, "volumeMounts: [{name: data, mountPath: /data}]")) +
			"  volumes: [{name: data, persistentVolumeClaim: {claimName: " + name + "}}]\n"
	}
	for _, name := range []string{"kept", "scrap"} {
		w.write(name+".yaml", text(name))
	}
	w.start()
	w.await("they wait for their claims", blocked("kept", "FailedMount"), blocked("scrap", "FailedMount"))
	w.write("kept-claim.yaml", claim("kept", ""))
	w.write("scrap-claim.yaml", claim("scrap", `, annotations: {podkeeper.io/reclaim: "delete"}`))
	s := w.await("they run", running("kept"), running("scrap"))
	diff(t, "the first of kept", w.tells("kept-node/app/0"), "1\n777\n")
	diff(t, "the first of scrap", w.tells("scrap-node/app/0"), "1\n777\n")
	var notes []string
	if err := (&volume.Host{RootDir: w.cfg.RootDir}).Quotas(); err != nil {
		notes = []string{`volume "data": the size of its claim does not hold: ` + err.Error()}
	}
	diff(t, "notes", find(s, "kept").Notes, notes)

	w.remove("kept.yaml")
	w.remove("scrap.yaml")
	w.await("they are gone", gone("kept"), gone("scrap"))
	w.write("kept.yaml", text("kept"))
	w.write("scrap.yaml", text("scrap"))
	w.await("they run again", running("kept"), running("scrap"))
	diff(t, "the second of kept", w.tells("kept-node/app/0"), "2\n777\n")
	diff(t, "the second of scrap", w.tells("scrap-node/app/0"), "2\n777\n")

	// Without its claim a pod that runs goes on.
	folder := func(name string) string { return filepath.Join(w.cfg.RootDir, "volumes/default", name) }
	w.remove("kept-claim.yaml")
	w.remove("scrap-claim.yaml")
	w.kill(w.ids()["scrap-node/app/0"])
	w.await("it goes on", runs("scrap", "app", 1))
	diff(t, "the third of scrap", w.tells("scrap-node/app/1"), "3\n777\n")
	w.remove("kept.yaml")
	w.remove("scrap.yaml")
	w.await("they are gone for good", gone("kept"), gone("scrap"))
	w.poll("the one goes that asked for it", func() bool { return !exists(folder("scrap")) })
	if got := readFile(t, folder("kept")+"/n"); got != "x\nx\n" {
		t.Errorf("kept holds %q", got)
	}
}

// C073: who owns what, as the process sees it.
func TestFSGroup(t *testing.T) {
	w := newWorld(t)
	mkdir(t, w.path("host"))
	w.write("fsg.yaml", secret("k1", `{k: "v"}`)+"---\n"+claim("data", "")+"---\n"+manifest("{name: fsg}",
		shell("app", "id -G | tr ' ' '\\n' | sort -n | tr '\\n' ' '; echo; touch /e/f /d/f; stat -c '%g %a' /e /d /m; stat -c %g /e/f /d/f; stat -c '%g %a' /h; stat -L -c '%g %a' /s/k; cat /s/k"+andStay,
			"volumeMounts: [{name: e, mountPath: /e}, {name: h, mountPath: /h}, {name: s, mountPath: /s}, {name: d, mountPath: /d}, {name: m, mountPath: /m}]"))+
		"  securityContext: {runAsUser: 1000, runAsGroup: 3000, fsGroup: 2000, supplementalGroups: [4000]}\n"+
		"  volumes: [{name: e, emptyDir: {}}, {name: h, hostPath: {path: "+w.path("host")+"}}, {name: s, secret: {secretName: k1, defaultMode: 0400}},"+
		" {name: d, persistentVolumeClaim: {claimName: data}}, {name: m, emptyDir: {medium: Memory}}]\n")
	w.start()
	w.await("it runs", running("fsg"))
	diff(t, "what it sees", w.tells("fsg-node/app/0"), "2000 3000 4000 \n2000 2777\n2000 2777\n2000 2777\n2000\n2000\n0 755\n2000 440\nv")
}

// What the host mounts in a volume later reaches the container that asks for it,
// and no other, and is gone with the pod. (That it goes the other way too needs a
// privileged container: see TestBidirectionalPropagation.)
func TestPropagationOfAVolume(t *testing.T) {
	w := newWorld(t)
	look := "until [ -e /v/mounted ]; do sleep 0.1; done; ls /v/disk" + andStay
	w.write("prop.yaml", manifest("{name: prop}",
		shell("sees", look, "volumeMounts: [{name: v, mountPath: /v, mountPropagation: HostToContainer}]"),
		shell("blind", look, "volumeMounts: [{name: v, mountPath: /v}]"))+
		"  volumes: [{name: v, emptyDir: {}}]\n")
	w.start()
	s := w.await("it runs", running("prop"))
	dir := w.volume(find(s, "prop").Pod.UID, "empty-dir", "v")
	mkdir(t, filepath.Join(dir, "disk"))
	if err := unix.Mount("tmpfs", filepath.Join(dir, "disk"), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "disk/f"), "")
	writeFile(t, filepath.Join(dir, "mounted"), "")
	diff(t, "what the one sees", w.tells("prop-node/sees/0"), "f\n")
	diff(t, "what the other sees", w.tells("prop-node/blind/0"), "")
	w.remove("prop.yaml")
	w.await("it is gone", gone("prop"))
	if left := w.mounts(); len(left) > 0 {
		t.Errorf("left mounted: %v", left)
	}
}

// What a privileged container mounts reaches the host and its neighbours, and is
// gone with the pod. Where this engine cannot run a privileged one, what it was
// asked for is what it needs.
func TestBidirectionalPropagation(t *testing.T) {
	w := newWorld(t)
	w.write("both.yaml", manifest("{name: both}",
		of("maker", "busybox:stable", `command: [sh, -c, "mkdir -p /v/disk; mount -t tmpfs made /v/disk && echo yes > /v/disk/f; sleep 5"]`,
			"securityContext: {privileged: true}", "volumeMounts: [{name: v, mountPath: /v, mountPropagation: Bidirectional}]"),
		sleeping("sees", "volumeMounts: [{name: v, mountPath: /v, mountPropagation: HostToContainer}]"))+
		"  restartPolicy: Never\n  volumes: [{name: v, emptyDir: {}}]\n")
	w.start()
	s := w.await("the maker ended", runs("both", "sees", 0), func(s server.State) bool {
		return status(s, "both", "maker").State.Terminated != nil
	})
	dir := w.volume(find(s, "both").Pod.UID, "empty-dir", "v")
	made := w.inspect(w.containers()["both-node/maker/0"].ID)
	var asked string
	for _, m := range made.HostConfig.Mounts {
		if m.Target == "/v" {
			asked = m.Source + " " + string(m.BindOptions.Propagation)
		}
	}
	if want := dir + " rshared"; asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
	if made.State.ExitCode == 0 { // it could run
		if got := readFile(t, filepath.Join(dir, "disk/f")); got != "yes\n" {
			t.Errorf("on the host: %q", got)
		}
		if code := w.exec(w.ids()["both-node/sees/0"], "cat", "/v/disk/f"); code != 0 {
			t.Errorf("the neighbour does not see it: %d", code)
		}
	}
	w.remove("both.yaml")
	w.await("it is gone", gone("both"))
	if left := w.mounts(); len(left) > 0 {
		t.Errorf("left mounted: %v", left)
	}
}

// The rest of what volumes and mounts can be asked for.
func TestKindsOfVolumes(t *testing.T) {
	w := newWorld(t)
	w.write("kinds.yaml", configMap("cm", `{a: "1", b: "2"}`)+"---\n"+manifest("{name: kinds}",
		shell("app", "stat -c %a /mode; stat -L -c '%u' /cm/a /cm/b; echo x > /own/f; stat -c %a /own; for m in noexec ro; do cp /bin/busybox /$m/sh 2>/dev/null; /$m/sh true 2>/dev/null; echo $?; done; grep -c ' /ro .*nodev.*noexec' /proc/mounts"+andStay,
			`volumeMounts: [{name: mode, mountPath: /mode}, {name: cm, mountPath: /cm}, {name: own, mountPath: /own},
				{name: d, mountPath: /noexec, bindMountOptions: [noexec]}, {name: d, mountPath: /ro, readOnly: true, bindMountOptions: [noexec, nodev]}]`))+`
  volumes:
  - {name: mode, emptyDir: {mode: 01750}}
  - {name: cm, configMap: {name: cm, defaultUser: 1000, items: [{key: a, path: a}, {key: b, path: b, user: 1001}]}}
  - {name: own, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: local, resources: {requests: {storage: 1Mi}}}}}}
  - {name: d, emptyDir: {}}
`)
	w.start()
	s := w.await("it runs", running("kinds"))
	diff(t, "what it sees", w.tells("kinds-node/app/0"), "1750\n1000\n1001\n777\n126\n126\n1\n")
	own := w.volume(find(s, "kinds").Pod.UID, "local-volume", "own")
	if !exists(filepath.Join(own, "f")) {
		t.Errorf("%s has no file of it", own)
	}
	w.remove("kinds.yaml")
	w.await("it is gone", gone("kinds"))
	if exists(own) {
		t.Errorf("%s is left", own)
	}
}

// Bad input leaves nothing: after 200 pods that fail in every way that volumes can,
// mounts, folders and containers are as before.
func TestFailingPodsLeaveNothing(t *testing.T) {
	w := newWorld(t)
	fails := []string{
		"{name: v, configMap: {name: none}}",
		"{name: v, secret: {secretName: none}}",
		"{name: v, persistentVolumeClaim: {claimName: none}}",
		"{name: v, hostPath: {path: /none, type: Directory}}",
		"{name: v, hostPath: {path: " + w.dir + ", type: Socket}}",
		"{name: v, nfs: {server: no-such-server.invalid, path: /}}",
		"{name: v, emptyDir: {medium: HugePages-3Mi}}",
		"{name: v, projected: {sources: [{configMap: {name: good}}, {secret: {name: good, items: [{key: none, path: x}]}}]}}",
		"{name: v, configMap: {name: good, items: [{key: k, path: a}, {key: k, path: a/b}]}}",
		"{name: v, downwardAPI: {items: [{path: x, fieldRef: {fieldPath: \"metadata.labels['a']\"}}, {path: x/y, fieldRef: {fieldPath: metadata.name}}]}}",
	}
	w.write("a.yaml", configMap("good", `{k: "1"}`)+"---\n"+secret("good", `{k: "S3CR3T"}`)+"---\n"+claim("good", ", annotations: {podkeeper.io/reclaim: \"delete\"}"))
	w.start()
	w.await("it reads", func(s server.State) bool { _, ok := originOf(s, w.dir+"/a.yaml"); return ok })
	folders := func() (list []string) {
		for _, dir := range []string{w.cfg.RootDir, "pods", "volumes", w.cfg.Logs.PodsDir, w.cfg.Logs.ContainersDir} {
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(w.cfg.RootDir, dir)
			}
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				list = append(list, filepath.Join(dir, e.Name()))
			}
		}
		return list
	}
	w.cfg.GC.ContainerPeriod = 200 * time.Millisecond
	w.restart()
	w.await("it reads again", func(s server.State) bool { _, ok := originOf(s, w.dir+"/a.yaml"); return ok })
	mkdir(t, filepath.Join(w.cfg.RootDir, "pods")) // made with the first pod, and kept
	mkdir(t, filepath.Join(w.cfg.RootDir, "volumes/default"))
	before := folders()

	// Each has volumes that succeed before the one that does not.
	var all strings.Builder
	for i := range 200 {
		fmt.Fprintf(&all, "---\n%s  volumes:\n  - {name: m, emptyDir: {medium: Memory}}\n  - {name: s, secret: {secretName: good}}\n  - {name: c, persistentVolumeClaim: {claimName: good}}\n  - %s\n",
			manifest(fmt.Sprintf("{name: fails-%d}", i), sleeping("app", "volumeMounts: [{name: v, mountPath: /v}]")), fails[i%len(fails)])
	}
	w.write("b.yaml", all.String())
	w.await("all fail", func(s server.State) bool {
		n := 0
		for _, p := range s.Pods {
			if p.Blocked != nil && p.Blocked.Reason == "FailedMount" {
				n++
			}
		}
		return n == 200
	})
	if left := w.containers(); len(left) > 0 {
		t.Errorf("%d containers", len(left))
	}
	w.remove("b.yaml")
	w.await("all are gone", func(s server.State) bool { return len(s.Pods) == 0 })
	w.remove("a.yaml")
	w.poll("the claim is gone", func() bool { return !exists(filepath.Join(w.cfg.RootDir, "volumes/default/good")) })
	diff(t, "folders", folders(), before)
	if left := w.mounts(); len(left) > 0 {
		t.Errorf("left mounted: %v", left)
	}
	if left := w.containers(); len(left) > 0 {
		t.Errorf("%d containers are left", len(left))
	}
}
