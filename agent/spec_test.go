package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/google/uuid"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// ended: every container of the pod ended and is not started again.
func ended(name string) condition {
	return func(s server.State) bool { return phase(name, v1.PodSucceeded)(s) || phase(name, v1.PodFailed)(s) }
}

// C023: references in command, args and env.
func TestVariableExpansion(t *testing.T) {
	w := newWorld(t)
	w.write("expand.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: expand}
spec:
  restartPolicy: Never
  containers:
  - name: app
    image: busybox:stable
    command: ["sh", "-c"]
    args: ["echo $(URL)|$(LATE)|$$(PORT)|$(NOPE)|$$$(PORT)|100%|$PORT|$(BAD"]
    env:
    - {name: EARLY, value: "$(PORT)"}
    - {name: PORT, value: "80"}
    - {name: HOST, value: "db"}
    - {name: URL, value: "http://$(HOST):$(PORT)/"}
    - {name: LATE, value: "$(EARLY)"}
    - {name: ESC, value: "$$(PORT)"}
`)
	w.start()
	w.await("it ended", ended("expand"))
	got := w.inspect(w.containers()["expand-node/app/0"].ID).Config
	diff(t, "command", []string(got.Entrypoint), []string{"sh", "-c"})
	diff(t, "args", []string(got.Cmd), []string{"echo http://db:80/|$(PORT)|$(PORT)|$(NOPE)|$80|100%|$PORT|$(BAD"})
	for _, want := range []string{"EARLY=$(PORT)", "LATE=$(PORT)", "ESC=$(PORT)", "URL=http://db:80/"} {
		if !slices.Contains(got.Env, want) {
			t.Errorf("environment %q lacks %s", got.Env, want)
		}
	}
}

// C027: command and args against those of the image.
func TestCommandAndArgsOfTheImage(t *testing.T) {
	w := newWorld(t)
	image := w.image(`ENTRYPOINT ["/bin/echo","ep"]`, `CMD ["c1","c2"]`)
	w.write("epcmd.yaml", manifest("{name: epcmd}",
		of("none", image),
		of("args", image, `args: ["a1"]`),
		of("cmd", image, `command: ["/bin/echo", "x"]`),
		of("both", image, `command: ["/bin/echo", "x"]`, `args: ["a1"]`),
		of("empty", image, "command: []", "args: []"))+"  restartPolicy: Never\n")
	w.start()
	w.await("it ended", phase("epcmd", v1.PodSucceeded))
	got := make(map[string]string)
	for _, c := range w.list() {
		if name := c.Labels["io.kubernetes.container.name"]; name != "POD" {
			got[name] = w.output(c.ID)
		}
	}
	diff(t, "outputs", got, map[string]string{"none": "ep c1 c2\n", "args": "ep a1\n", "cmd": "x\n", "both": "x a1\n", "empty": "ep c1 c2\n"})
}

// C135: the pull policy follows from the tag, and what is there starts without
// a registry.
func TestPullPolicyWithoutARegistry(t *testing.T) {
	w := newWorld(t)
	repository := "127.0.0.1:" + freePort(t) + "/app"
	w.imageAs(repository + ":1")
	w.imageAs(repository + ":latest")
	command := "command: " + sleeper
	w.write("pull.yaml", manifest("{name: pull}",
		of("a", repository, command),
		of("b", repository+":latest", command),
		of("c", repository+":1", command),
		of("d", "127.0.0.1:"+freePort(t)+"/app", command),
		of("e", repository+"@sha256:"+strings.Repeat("a", 64), command),
		of("f", repository+":1", "imagePullPolicy: Never", command),
		of("g", repository+":none", "imagePullPolicy: Never", command)))
	w.write("spaces.yaml", manifest("{name: spaces}", of("app", " nginx ")))
	w.start()
	cannot := []string{"ErrImagePull", "ImagePullBackOff"}
	s := w.await("c and f run, the others wait", runs0("pull", "c"), runs0("pull", "f"),
		waits("pull", "a", cannot...), waits("pull", "b", cannot...), waits("pull", "d", cannot...), waits("pull", "e", cannot...),
		waits("pull", "g", "ErrImageNeverPull"), problem(w.dir+"/spaces.yaml"), gone("spaces"))
	policies := make(map[string]v1.PullPolicy)
	for _, c := range find(s, "pull").Pod.Spec.Containers {
		policies[c.Name] = c.ImagePullPolicy
	}
	diff(t, "policies", policies, map[string]v1.PullPolicy{
		"a": v1.PullAlways, "b": v1.PullAlways, "c": v1.PullIfNotPresent, "d": v1.PullAlways,
		"e": v1.PullIfNotPresent, "f": v1.PullNever, "g": v1.PullNever,
	})
}

// runs0: the container runs for the first time, whatever the others do.
func runs0(name, container string) condition {
	return func(s server.State) bool {
		c := status(s, name, container)
		return c != nil && c.State.Running != nil && c.RestartCount == 0
	}
}

// C138: of what an image asks for, only what Kubernetes knows is done.
func TestImageWithAHealthCheck(t *testing.T) {
	w := newWorld(t)
	dir := w.path("said")
	mkdir(t, dir)
	image := "registry.local/" + uuid.NewString()[:8] + ":1"
	w.imageFrom(container.Config{Image: "busybox:stable", StopSignal: "SIGUSR1"}, image,
		"HEALTHCHECK --interval=1s CMD touch /hc && false", "EXPOSE 7777", "VOLUME /vol", "WORKDIR /w")
	text := manifest("{name: imgmeta}", of("app", image,
		`command: ["sh", "-c", "trap 'touch /said/usr1; exit 0' USR1; trap 'touch /said/term; exit 0' TERM; pwd; while :; do sleep 1; echo tick; done"]`,
		"volumeMounts: [{name: said, mountPath: /said}]")) + "  volumes: [{name: said, hostPath: {path: " + dir + "}}]\n"
	w.write("imgmeta.yaml", strings.Replace(text, "Seconds: 2", "Seconds: 5", 1))
	w.start()
	w.await("it runs", running("imgmeta"))
	w.kill(w.ids()["imgmeta-node/app/0"])
	w.await("it runs again", runs("imgmeta", "app", 1))
	id := w.ids()["imgmeta-node/app/1"]
	w.poll("it ran for a while", func() bool { return strings.Count(w.output(id), "tick") >= 3 })
	c := w.inspect(id)
	if _, err := w.engine.ContainerStatPath(context.Background(), id, "/hc"); !errdefs.IsNotFound(err) {
		t.Errorf("stat of /hc: %v, want that it is not there", err)
	}
	if c.State.Health != nil && c.State.Health.Status != "none" || !c.HostConfig.RestartPolicy.IsNone() || len(c.HostConfig.PortBindings) != 0 {
		t.Errorf("health %+v, restart policy %q, ports %v: want none", c.State.Health, c.HostConfig.RestartPolicy.Name, c.HostConfig.PortBindings)
	}
	if got := w.output(id); !strings.HasPrefix(got, "/w\n") {
		t.Errorf("it said %q, want first its working directory", got)
	}
	var volumes []string
	for _, m := range c.Mounts {
		if m.Destination == "/vol" {
			volumes = append(volumes, m.Name)
		}
	}
	if len(volumes) != 1 {
		t.Fatalf("mounts are %+v, want one of /vol", c.Mounts)
	}
	w.remove("imgmeta.yaml")
	w.await("it is gone", gone("imgmeta"))
	if !exists(dir+"/usr1") || exists(dir+"/term") {
		t.Error("it was not told to end by SIGUSR1")
	}
	if _, err := w.engine.VolumeInspect(context.Background(), volumes[0]); !errdefs.IsNotFound(err) {
		t.Errorf("the anonymous volume: %v, want that it is gone", err)
	}
}
