package agent_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/google/uuid"
	v1 "k8s.io/api/core/v1"
)

// says returns what a container of a pod that ran to its end wrote.
func (w *world) says(name, container string) string {
	w.t.Helper()
	c, ok := w.containers()[name+"-node/"+container+"/0"]
	if !ok {
		w.t.Errorf("pod %s has no container %s", name, container)
		return ""
	}
	return strings.TrimSpace(w.output(c.ID))
}

// C100: what runAsNonRoot says to images that name their user in different ways.
func TestRunAsNonRoot(t *testing.T) {
	w := newWorld(t)
	images := map[string]string{
		"named": w.image("USER nobody"), "numeric": w.image("USER 1000"), "none": w.image("ENV A=1"),
		"zero": w.image("USER 0:0"), "group": w.image("USER 1000:grp"),
	}
	const nonRoot = "runAsNonRoot: true"
	pods := map[string]struct{ image, pod, container, want string }{
		"named":    {"named", nonRoot, "", "container has runAsNonRoot and image has non-numeric user (nobody), cannot verify user is non-root"},
		"numeric":  {"numeric", nonRoot, "", "1000"},
		"none":     {"none", nonRoot, "", "container has runAsNonRoot and image will run as root"},
		"zero":     {"zero", nonRoot, "", "container has runAsNonRoot and image will run as root"},
		"group":    {"group", nonRoot, "", "1000"},
		"user":     {"named", nonRoot + ", runAsUser: 65534", "", "65534"},
		"root":     {"numeric", nonRoot + ", runAsUser: 0", "", "container's runAsUser breaks non-root policy"},
		"override": {"none", nonRoot, nonRoot[:len(nonRoot)-4] + "false", "0"},
	}
	for name, p := range pods {
		w.write(name+".yaml", manifest("{name: "+name+"}", of("app", images[p.image], `command: ["id", "-u"]`, "securityContext: {"+p.container+"}"))+
			"  restartPolicy: Never\n  securityContext: {"+p.pod+"}\n")
	}
	w.start()
	for name, p := range pods {
		if regexp.MustCompile(`^\d+$`).MatchString(p.want) {
			w.await(name+" ended", phase(name, v1.PodSucceeded))
			if got := w.says(name, "app"); got != p.want {
				t.Errorf("%s ran as %s, want %s", name, got, p.want)
			}
			continue
		}
		s := w.await(name+" waits", waits(name, "app", "CreateContainerConfigError"))
		c := status(s, name, "app")
		if c.State.Waiting.Message != p.want || c.RestartCount != 0 || find(s, name).Pod.Status.Phase != v1.PodPending {
			t.Errorf("%s: %+v, restarts %d; want %q and none", name, c.State.Waiting, c.RestartCount, p.want)
		}
		if _, made := w.containers()[name+"-node/app/0"]; made {
			t.Errorf("%s: the container was made", name)
		}
	}

	// An image of that name which can be run is found.
	w.removeImage(images["none"])
	w.images = slices.DeleteFunc(w.images, func(name string) bool { return name == images["none"] })
	w.imageAs(images["none"], "USER 7")
	w.await("it runs with another image", phase("none", v1.PodSucceeded))
}

// C103: the container's settings override the pod's, one by one.
func TestSecurityContextOfPodAndContainer(t *testing.T) {
	w := newWorld(t)
	image := w.image("USER 4321:8765")
	once := func(name, image, command string, more ...string) string {
		return of(name, image, append([]string{`command: ["sh", "-c", "` + command + `"]`}, more...)...)
	}
	w.write("merge.yaml", manifest("{name: merge}",
		once("inherit", "busybox:stable", "id"),
		once("override", "busybox:stable", "id", "securityContext: {runAsUser: 2000}"),
		once("ro", "busybox:stable", "exec 2>&1; touch /x; echo rc=$?; touch /dev/shm/y; echo rc=$?", "securityContext: {readOnlyRootFilesystem: true}"))+
		"  restartPolicy: Never\n  securityContext: {runAsUser: 1000, runAsGroup: 3000, supplementalGroups: [4000]}\n")
	w.write("group.yaml", manifest("{name: group}", once("app", image, "id"))+"  restartPolicy: Never\n  securityContext: {runAsGroup: 3000}\n")
	w.write("image.yaml", manifest("{name: image}", once("app", image, "id"))+"  restartPolicy: Never\n  securityContext: {}\n")
	w.start()
	w.await("they ended", ended("merge"), phase("group", v1.PodSucceeded), phase("image", v1.PodSucceeded))
	for _, want := range []struct{ pod, container, says string }{
		{"merge", "inherit", "uid=1000 gid=3000 groups=3000,4000"},
		{"merge", "override", "uid=2000 gid=3000 groups=3000,4000"},
		{"group", "app", "uid=4321 gid=3000 groups=3000"},
		{"image", "app", "uid=4321 gid=8765 groups=8765"},
	} {
		if got := w.says(want.pod, want.container); got != want.says {
			t.Errorf("%s of %s: %s, want %s", want.container, want.pod, got, want.says)
		}
	}
	if got := w.says("merge", "ro"); !strings.Contains(got, "rc=1\nrc=0") || !strings.Contains(got, "/x: Read-only file system") {
		t.Errorf("with a read-only root it said %q", got)
	}
}

// The groups that an image has a user in are added to those of the pod, unless
// the policy is Strict.
func TestGroupsOfTheImage(t *testing.T) {
	w := newWorld(t)
	image := w.imageThatRan("echo alice:x:1000:1500::/:/bin/sh >>/etc/passwd; echo team:x:50000:alice >>/etc/group")
	pods := map[string]struct{ policy, want string }{
		"merge":  {"supplementalGroupsPolicy: Merge", "uid=1000(alice) gid=1500 groups=1500,4000,50000(team)"},
		"none":   {"", "uid=1000(alice) gid=1500 groups=1500,4000,50000(team)"},
		"strict": {"supplementalGroupsPolicy: Strict, runAsGroup: 3000", "uid=1000(alice) gid=3000 groups=3000,4000"},
	}
	for name, p := range pods {
		w.write(name+".yaml", manifest("{name: "+name+"}", of("app", image, `command: ["id"]`))+
			"  restartPolicy: Never\n  securityContext: {supplementalGroups: [4000], runAsUser: 1000, "+p.policy+"}\n")
	}
	w.start()
	for name, p := range pods {
		w.await(name+" ended", phase(name, v1.PodSucceeded))
		if got := w.says(name, "app"); got != p.want {
			t.Errorf("%s: %s, want %s", name, got, p.want)
		}
	}
}

// What a process may do is what /proc says of it.
func TestPrivileges(t *testing.T) {
	w := newWorld(t)
	const look = `command: ["sh", "-c", "grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status"]`
	profile := `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}`
	mkdir(t, w.cfg.RootDir)
	mkdir(t, w.cfg.RootDir+"/seccomp")
	mkdir(t, w.cfg.RootDir+"/seccomp/profiles")
	writeFile(t, w.cfg.RootDir+"/seccomp/profiles/no-mkdir.json", profile)
	w.write("caps.yaml", manifest("{name: caps}",
		of("plain", "busybox:stable", look),
		of("none", "busybox:stable", look, "securityContext: {capabilities: {drop: [ALL]}}"),
		of("one", "busybox:stable", look, "securityContext: {capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}"),
		of("admin", "busybox:stable", look, "securityContext: {capabilities: {add: [CAP_NET_ADMIN]}}"),
		of("closed", "busybox:stable", look, "securityContext: {allowPrivilegeEscalation: false}"),
		of("filtered", "busybox:stable", look, "securityContext: {seccompProfile: {type: RuntimeDefault}}"),
		of("local", "busybox:stable", `command: ["sh", "-c", "mkdir /a 2>&1; echo rc=$?"]`, "securityContext: {seccompProfile: {type: Localhost, localhostProfile: profiles/no-mkdir.json}}"),
	)+"  restartPolicy: Never\n  securityContext: {seccompProfile: {type: Unconfined}}\n")
	w.write("master.yaml", manifest("{name: master}", of("app", "busybox:stable", look, "securityContext: {privileged: true}"))+"  restartPolicy: Never\n")
	w.write("lost.yaml", manifest("{name: lost}", sleeping("app"))+"  securityContext: {seccompProfile: {type: Localhost, localhostProfile: none.json}}\n")
	w.start()
	w.await("it ended", phase("caps", v1.PodSucceeded))
	read := func(name, field string) string {
		found := regexp.MustCompile(field + `:\s*(\w+)`).FindStringSubmatch(w.says("caps", name))
		if found == nil {
			t.Fatalf("%s says nothing of %s: %q", name, field, w.says("caps", name))
		}
		return found[1]
	}
	const engines = "00000000a80425fb"
	for name, want := range map[string][3]string{
		"plain":    {engines, "0", "0"},
		"none":     {"0000000000000000", "0", "0"},
		"one":      {"0000000000000400", "0", "0"},
		"admin":    {"00000000a80435fb", "0", "0"},
		"closed":   {engines, "1", "0"},
		"filtered": {engines, "0", "2"},
	} {
		if got := [3]string{read(name, "CapEff"), read(name, "NoNewPrivs"), read(name, "Seccomp")}; got != want {
			t.Errorf("%s: capabilities, no new privileges, seccomp %v, want %v", name, got, want)
		}
	}
	// An engine that has not all privileges itself cannot start it. The 38 up to
	// AUDIT_READ are those that every engine knows.
	w.await("the privileged one ended", ended("master"))
	made := w.inspect(w.containers()["master-node/app/0"].ID)
	master := regexp.MustCompile(`^CapEff:\s*\w+[37f]fffffffff\s`)
	if !made.HostConfig.Privileged || made.State.ExitCode == 0 && !master.MatchString(w.says("master", "app")) {
		t.Errorf("privileged %t, and it said %q", made.HostConfig.Privileged, w.says("master", "app"))
	}
	if got := w.says("caps", "local"); !strings.Contains(got, "Operation not permitted") || !strings.HasSuffix(got, "rc=1") {
		t.Errorf("with a profile of its own it said %q", got)
	}
	s := w.await("it waits for its profile", waits("lost", "app", "CreateContainerConfigError"))
	if message := status(s, "lost", "app").State.Waiting.Message; !strings.Contains(message, "seccomp profile none.json") {
		t.Errorf("it waits: %s", message)
	}
	writeFile(t, w.cfg.RootDir+"/seccomp/none.json", profile)
	w.await("it runs", running("lost"))
}

// A pod has sysctls of its own, under either spelling of their names. One that is
// not allowed keeps the pod from being made.
func TestSysctls(t *testing.T) {
	w := newWorld(t)
	w.cfg.Policy.Sysctls = append(w.cfg.Policy.Sysctls, "net.ipv4.conf.*", "net.ipv4.ip_local_port_range", "kernel.shm_rmid_forced")
	const of = "  restartPolicy: Never\n  securityContext: {sysctls: ["
	w.write("set.yaml", manifest("{name: set}",
		shell("a", "cd /proc/sys; cat net/ipv4/ip_local_port_range kernel/shm_rmid_forced net/ipv4/conf/all/log_martians"))+
		of+"{name: net.ipv4.ip_local_port_range, value: 2000 2100}, {name: kernel.shm_rmid_forced, value: '1'}, {name: net/ipv4/conf/all/log_martians, value: '1'}]}\n")
	w.write("unsafe.yaml", manifest("{name: unsafe}", sleeping("a"))+of+"{name: net.core.somaxconn, value: '9'}]}\n")
	w.start()
	w.await("it ended", phase("set", v1.PodSucceeded), blocked("unsafe", "SysctlForbidden"))
	if got := strings.Fields(w.says("set", "a")); !slices.Equal(got, []string{"2000", "2100", "1", "1"}) {
		t.Errorf("in the pod they are %v", got)
	}
	if made := w.containers(); len(made) != 1 {
		t.Errorf("the engine has %v, want the one that ended", made)
	}
}

// A container is stopped by the signal that its manifest names, else by that of
// its image, else by SIGTERM.
func TestStopSignals(t *testing.T) {
	w := newWorld(t)
	dir := w.path("said")
	mkdir(t, dir)
	image := "registry.local/" + uuid.NewString()[:8] + ":1"
	w.imageFrom(container.Config{Image: "busybox:stable", StopSignal: "SIGUSR1"}, image)
	traps := func(name string) string {
		script := ""
		for _, signal := range []string{"TERM", "USR1", "USR2"} {
			script += "trap 'echo " + signal + " >/said/" + name + "; exit 0' " + signal + "; "
		}
		return `command: ["sh", "-c", "` + script + `touch /said/up-` + name + `; sleep 3600 & wait"]`
	}
	const mount = "volumeMounts: [{name: said, mountPath: /said}]"
	w.write("stop.yaml", manifest("{name: stop}",
		of("manifest", image, traps("manifest"), mount, "lifecycle: {stopSignal: SIGUSR2}"),
		of("image", image, traps("image"), mount),
		of("neither", "busybox:stable", traps("neither"), mount))+
		"  os: {name: linux}\n  volumes: [{name: said, hostPath: {path: "+dir+"}}]\n")
	w.start()
	w.await("it runs", running("stop"))
	want := map[string]string{"manifest": "USR2", "image": "USR1", "neither": "TERM"}
	for name := range want {
		w.poll(name+" has its traps", func() bool { return exists(dir + "/up-" + name) })
	}
	w.remove("stop.yaml")
	w.await("it is gone", gone("stop"))
	got := make(map[string]string)
	for name := range want {
		data, _ := os.ReadFile(dir + "/" + name)
		got[name] = strings.TrimSpace(string(data))
	}
	diff(t, "signals", got, want)
}

// Containers that share their processes see each other, the sandbox's first, and
// it reaps what they leave.
func TestSharedProcesses(t *testing.T) {
	w := newWorld(t)
	w.write("share.yaml", manifest("{name: share}",
		shell("a", "trap 'exit 0' TERM; (sleep 0.1 & exec true); while :; do sleep 0.2; done"),
		shell("b", "trap 'exit 0' TERM; while :; do ps -o pid,stat,args; sleep 0.5; done"))+"  shareProcessNamespace: true\n")
	w.write("alone.yaml", manifest("{name: alone}", shell("a", "trap 'exit 0' TERM; ps -o pid,args; sleep 3600 & wait"))+"  shareProcessNamespace: false\n")
	w.start()
	w.await("they run", running("share"), running("alone"))
	ids := w.ids()
	w.poll("b sees the sandbox and a", func() bool {
		said := w.output(ids["share-node/b/0"])
		return regexp.MustCompile(`(?m)^ +1 \S+ +/pause$`).MatchString(said) && strings.Contains(said, "sleep 0.2")
	})
	if got := w.output(ids["alone-node/a/0"]); !regexp.MustCompile(`(?m)^ +1 sh -c`).MatchString(got) {
		t.Errorf("in a pod that does not share, it said %q", got)
	}
	w.poll("no dead process is left", func() bool {
		said := w.output(ids["share-node/b/0"])
		last := said[max(strings.LastIndex(said, "PID"), 0):]
		return strings.Contains(last, "ps -o") && !regexp.MustCompile(`(?m)^ +\d+ Z`).MatchString(last)
	})
	// One of them restarts in the same namespace.
	w.kill(ids["share-node/a/0"])
	w.await("a runs again", runs("share", "a", 1))
	w.same(ids, "share-node/POD/0", "share-node/b/0")
}

// No pod has more processes than the node lets it have. A runtime needs some to start
// a container.
func TestProcessLimit(t *testing.T) {
	w := newWorld(t)
	w.cfg.PodPIDs = 30
	w.write("fork.yaml", manifest("{name: fork}", shell("app", "for i in $(seq 40); do sleep 1 & done; wait"))+"  restartPolicy: Never\n")
	w.start()
	w.await("it ended", ended("fork"))
	if got := w.says("fork", "app"); !strings.Contains(got, "can't fork") {
		t.Errorf("it said %q, want that it cannot fork", got)
	}
}
