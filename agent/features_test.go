package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/versions"

	"github.com/podkeeper/podkeeper/server"
)

// A pod that asks for what the machine or its engine lacks is refused before
// anything is made for it, and does not keep another from running. Where they
// have it, it runs.
func TestWhatTheMachineLacks(t *testing.T) {
	w := newWorld(t)
	info, err := w.engine.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	engineHas := func(option string) bool {
		return slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.HasPrefix(o, "name="+option) })
	}
	version, err := w.engine.ServerVersion(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	mountsImages := versions.GreaterThanOrEqualTo(version.APIVersion, "1.48")
	port := freePort(t)
	pods := map[string]struct {
		has         bool
		reason      string
		app, fields string
	}{
		"users":    {engineHas("userns"), "PodFeatureUnsupported", "", "  hostUsers: false\n"},
		"apparmor": {engineHas("apparmor"), "AppArmor", "securityContext: {appArmorProfile: {type: RuntimeDefault}}", ""},
		"selinux":  {engineHas("selinux"), "PodFeatureUnsupported", "", "  securityContext: {seLinuxOptions: {level: s0}}\n"},
		"sctp":     {sctp(), "PodFeatureUnsupported", "ports: [{containerPort: 9, hostPort: " + port + ", hostIP: 127.0.0.1, protocol: SCTP}]", ""},
		"page":     {hugePages(), "OutOfhugepages-2Mi", "resources: {limits: {hugepages-2Mi: 2Mi, memory: 64Mi}}, volumeMounts: [{name: v, mountPath: /v}]", "  volumes: [{name: v, emptyDir: {medium: HugePages}}]\n"},
		"pages":    {false, "OutOfhugepages-2Mi", "resources: {limits: {hugepages-2Mi: 1Pi, memory: 64Mi}}", ""},
		"image":    {mountsImages, "PodFeatureUnsupported", "volumeMounts: [{name: v, mountPath: /v}]", "  volumes: [{name: v, image: {reference: busybox:stable}}]\n"},
		"runtime":  {false, "PodFeatureUnsupported", "", "  runtimeClassName: none-such\n"},
		"strict":   {false, "SupplementalGroupsPolicyNotSupported", "", "  securityContext: {supplementalGroupsPolicy: Strict}\n"},
		"groups":   {true, "", "", "  securityContext: {supplementalGroupsPolicy: Strict, runAsGroup: 5}\n"},
		"plain":    {true, "", "", ""},
	}
	for name, p := range pods {
		w.write(name+".yaml", manifest("{name: "+name+"}", sleeping("app", p.app))+p.fields)
	}
	w.start()
	refused := 0
	for name, p := range pods {
		if p.has {
			w.await(name+" runs", running(name))
			continue
		}
		refused++
		w.await(name+" is refused", blocked(name, p.reason), func(s server.State) bool { return find(s, name).Settled() })
	}
	w.poll("the others have what they need and no more", func() bool { return len(w.ids()) == 2*(len(pods)-refused) })
	if made := w.containers(); len(made) != len(w.ids()) {
		t.Errorf("the engine has %v, want only what runs", made)
	}
	folders, err := os.ReadDir(filepath.Join(w.cfg.RootDir, "pods"))
	if err != nil || len(folders) != len(pods)-refused {
		t.Errorf("%d pods have folders, want %d (%v)", len(folders), len(pods)-refused, err)
	}
}

// A pod is run by the runtime of the engine that it names; another is another pod.
func TestRuntimeClass(t *testing.T) {
	w := newWorld(t)
	pod := func(name string) string {
		return manifest("{name: class}", sleeping("app")) + "  runtimeClassName: " + name + "\n"
	}
	w.write("class.yaml", pod("io.containerd.runc.v2"))
	w.start()
	w.await("it runs", running("class"))
	made, err := w.engine.ContainerInspect(context.Background(), w.ids()["class-node/app/0"])
	if err != nil || made.HostConfig.Runtime != "io.containerd.runc.v2" {
		t.Errorf("its runtime is %q (%v)", made.HostConfig.Runtime, err)
	}
	w.write("class.yaml", pod("none-such"))
	w.await("the edit is refused", blocked("class", "PodFeatureUnsupported"))
	if ids := w.ids(); ids["class-node/app/0"] != made.ID {
		t.Errorf("%v runs, want the old version", ids)
	}
}

// A container is under the profile that it asks for, where the engine has
// AppArmor; a pod that asks for one is refused where it has not.
func TestAppArmor(t *testing.T) {
	w := newWorld(t)
	info, err := w.engine.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	app := func(name, profile string) string {
		return of(name, "busybox:stable", `command: [cat, /proc/self/attr/current]`,
			"securityContext: {appArmorProfile: {"+profile+"}}")
	}
	w.write("set.yaml", manifest("{name: set}", app("runtime", "type: RuntimeDefault"), app("local", "type: Localhost, localhostProfile: docker-default"))+
		"  restartPolicy: Never\n")
	w.write("free.yaml", manifest("{name: free}", app("free", "type: Unconfined"))+"  restartPolicy: Never\n")
	w.write("lost.yaml", manifest("{name: lost}", app("app", "type: Localhost, localhostProfile: podkeeper-test-none"))+"  restartPolicy: Never\n")
	w.start()
	w.await("what needs none ran", ended("free"))
	if !slices.Contains(info.SecurityOptions, "name=apparmor") {
		w.await("the others are refused", blocked("set", "AppArmor"), blocked("lost", "AppArmor"))
		for name := range w.containers() {
			if !strings.HasPrefix(name, "free-node/") {
				t.Errorf("%s was made", name)
			}
		}
		return
	}
	w.await("all ran", ended("set"), ended("lost"))
	for name, want := range map[string]string{"set/runtime": "docker-default (enforce)", "set/local": "docker-default (enforce)", "free/free": "unconfined"} {
		of, container, _ := strings.Cut(name, "/")
		diff(t, name, w.says(of, container), want)
	}
	end := status(w.await("it could not start", ended("lost")), "lost", "app").State.Terminated
	if end == nil || end.ExitCode == 0 || !strings.Contains(end.Message, "apparmor") {
		t.Errorf("with a profile that the kernel does not know it ended as %+v", end)
	}
}

// sctp reports whether the kernel has it loaded, or can load it.
func sctp() bool {
	for _, path := range []string{"/proc/net/protocols", "/lib/modules/" + release() + "/modules.dep", "/lib/modules/" + release() + "/modules.builtin"} {
		if data, _ := os.ReadFile(path); strings.Contains(strings.ToLower(string(data)), "sctp") {
			return true
		}
	}
	return false
}

// hugePages reports whether the machine has any set aside.
func hugePages() bool {
	data, _ := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
	count := strings.TrimSpace(string(data))
	return count != "" && count != "0"
}

func release() string {
	data, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(data))
}
