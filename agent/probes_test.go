package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	v1 "k8s.io/api/core/v1"

	"github.com/podkeeper/podkeeper/server"
)

// ready: whether the container is ready.
func ready(name, container string, want bool) condition {
	return func(s server.State) bool {
		c := status(s, name, container)
		return c != nil && c.State.Running != nil && c.Ready == want
	}
}

// complains: a probe of the container found something with all of the words.
func complains(name, container string, words ...string) condition {
	return func(s server.State) bool {
		p := find(s, name)
		if p == nil {
			return false
		}
		for _, c := range p.Complaints {
			all := c.Container == container
			for _, w := range words {
				all = all && strings.Contains(c.Message, w)
			}
			if all {
				return true
			}
		}
		return false
	}
}

// web is a command of busybox that serves a page /ok after a while.
func web(port string, after string) string {
	return `command: ["sh", "-c", "mkdir /w; httpd -p ` + port + ` -h /w; ` + after + `touch /w/ok; trap 'exit 0' TERM; while :; do sleep 0.1; done"]`
}

// C095.
func TestProbesOverTheNetwork(t *testing.T) {
	w := newWorld(t)
	w.write("named.yaml", manifest("{name: named}",
		of("app", "busybox:stable", web("80", "sleep 2; "), "ports: [{name: http, containerPort: 80}]",
			"livenessProbe: {tcpSocket: {port: http}, periodSeconds: 1}",
			`readinessProbe: {httpGet: {path: /ok, port: "80"}, periodSeconds: 10}`),
		sleeping("other", "livenessProbe: {tcpSocket: {port: http}, periodSeconds: 1, failureThreshold: 2}")))
	w.start()
	w.await("the app is not ready", ready("named", "app", false), complains("named", "app", "Readiness probe failed: HTTP probe failed with statuscode: 404"))
	s := w.await("the app is ready and the other is not probed well", ready("named", "app", true), complains("named", "other", "Liveness probe failed: port http not found"))
	if c := status(s, "named", "app"); time.Since(c.State.Running.StartedAt.Time) > 8*time.Second {
		t.Errorf("it took %s to find out", time.Since(c.State.Running.StartedAt.Time))
	}
	s = w.await("the other was restarted", restarted("named", "other", 1))
	if c := status(s, "named", "app"); c.RestartCount != 0 || !c.Ready {
		t.Errorf("the app: %d restarts, ready %v", c.RestartCount, c.Ready)
	}
}

// C098: what is on the host's network is probed at the node's address, unless
// the probe names a host; that of a pod with a network of its own is the host's all
// the same, since it is the agent that probes.
func TestProbesOfLoopback(t *testing.T) {
	w := newWorld(t) // its node has an address that nobody has
	port := freePort(t)
	loopback := of("app", "busybox:stable", web("127.0.0.1:"+port, ""),
		"livenessProbe: {failureThreshold: 8, httpGet: {host: HOST, path: /ok, port: "+port+"}, periodSeconds: 1}",
		"readinessProbe: {httpGet: {host: HOST, path: /ok, port: "+port+"}, periodSeconds: 1}")
	at := func(host, name, spec string) string {
		return manifest("{name: "+name+"}", strings.ReplaceAll(loopback, "HOST", host)) + spec
	}
	w.write("a.yaml", at("localhost", "loopback", "  hostNetwork: true\n"))
	w.start()
	w.await("it is ready", ready("loopback", "app", true))
	w.write("a.yaml", at("127.0.0.1", "loopback", "  hostNetwork: true\n"))
	w.await("it is ready", ready("loopback", "app", true))
	w.write("a.yaml", at(`""`, "loopback", "  hostNetwork: true\n"))
	s := w.await("it is not", ready("loopback", "app", false), complains("loopback", "app", "192.0.2.1:"+port))
	if n := status(s, "loopback", "app").RestartCount; n != 0 {
		t.Errorf("edits of probes restarted it %d times", n)
	}
	w.await("it was restarted", restarted("loopback", "app", 1))
	w.remove("a.yaml")
	w.await("it is gone", gone("loopback"))
	w.write("b.yaml", at("127.0.0.1", "own", ""))
	w.await("its loopback is not asked", ready("own", "app", false), complains("own", "app", "127.0.0.1:"+port+": connect: connection refused"))
}

// C096.
func TestGRPCProbes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	services := health.NewServer()
	s := grpc.NewServer()
	healthv1.RegisterHealthServer(s, services)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	services.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	services.SetServingStatus("liveness", healthv1.HealthCheckResponse_SERVING)
	w := newWorld(t)
	w.cfg.NodeIPs = []string{"127.0.0.1"}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	w.write("grpc.yaml", manifest("{name: grpc}", sleeping("app",
		"readinessProbe: {grpc: {port: "+port+"}, periodSeconds: 1}", "livenessProbe: {grpc: {port: "+port+", service: liveness}, periodSeconds: 1}",
	))+"  hostNetwork: true\n")
	w.start()
	w.await("it is not ready", ready("grpc", "app", false), complains("grpc", "app", `Readiness probe failed: service unhealthy (responded with "NOT_SERVING")`))
	services.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
	w.await("it is ready", ready("grpc", "app", true), runs("grpc", "app", 0))
	services.SetServingStatus("liveness", healthv1.HealthCheckResponse_NOT_SERVING)
	w.await("it was restarted", restarted("grpc", "app", 1))
}

// C099.
func TestWhatFailingProbesDo(t *testing.T) {
	w := newWorld(t)
	text := strings.Replace(manifest("{name: effects}",
		sleeping("notready", `readinessProbe: {exec: {command: ["false"]}, periodSeconds: 1, failureThreshold: 1}`),
		of("dead", "busybox:stable", `command: ["sh", "-c", "trap 'echo terminated; exit 0' TERM; while :; do sleep 0.1; done"]`,
			`livenessProbe: {exec: {command: ["false"]}, periodSeconds: 1, failureThreshold: 3, terminationGracePeriodSeconds: 2}`),
		sleeping("fine")), "terminationGracePeriodSeconds: 2\n", "terminationGracePeriodSeconds: 30\n", 1)
	w.write("effects.yaml", text)
	w.start()
	w.await("all run", runs("effects", "notready", 0), runs("effects", "fine", 0), ready("effects", "dead", true))
	before := w.ids()
	s := w.await("the dead one was restarted", restarted("effects", "dead", 1))
	if got := strings.TrimSpace(w.output(before["effects-node/dead/0"])); got != "terminated" {
		t.Errorf("it wrote %q, want that it got SIGTERM", got)
	}
	if c := status(s, "effects", "dead").LastTerminationState.Terminated; c == nil || c.ExitCode != 0 {
		t.Errorf("it ended as %+v", c)
	}
	s = w.await("it waits before the next restart", restarted("effects", "dead", 1), waits("effects", "dead", "CrashLoopBackOff"))
	w.same(before, "effects-node/POD/0", "effects-node/notready/0", "effects-node/fine/0")
	if !ready("effects", "fine", true)(s) || !ready("effects", "notready", false)(s) {
		t.Errorf("fine and not ready: %+v", find(s, "effects").Pod.Status.ContainerStatuses)
	}
	if c := conditionOf(find(s, "effects").Pod, v1.PodReady); c.Status != v1.ConditionFalse {
		t.Errorf("the pod is ready: %+v", c)
	}
}

// C099, its variant: killed once, not restarted, and the pod goes on.
func TestLivenessOfWhatIsNeverRestarted(t *testing.T) {
	w := newWorld(t)
	w.write("once.yaml", manifest("{name: once}", sleeping("fine"),
		sleeping("dead", `livenessProbe: {exec: {command: ["false"]}, periodSeconds: 1, failureThreshold: 2}`))+"  restartPolicy: Never\n")
	w.start()
	s := w.await("it has ended", func(s server.State) bool {
		c := status(s, "once", "dead")
		return c != nil && c.State.Terminated != nil && find(s, "once").Settled()
	})
	if c := status(s, "once", "fine"); c.State.Running == nil || status(s, "once", "dead").RestartCount != 0 {
		t.Errorf("statuses: %+v", find(s, "once").Pod.Status.ContainerStatuses)
	}
	diff(t, "phase", find(s, "once").Pod.Status.Phase, v1.PodRunning)
}

// The command that took too long is gone, with all that it started, and leaves
// no zombie.
func TestExecProbeThatTimesOut(t *testing.T) {
	w := newWorld(t)
	w.write("slow.yaml", manifest("{name: slow}", sleeping("app",
		`readinessProbe: {exec: {command: ["sh", "-c", "trap '' TERM; sleep 4711 & sleep 4712; echo no"]}, timeoutSeconds: 1, periodSeconds: 2, failureThreshold: 1}`)))
	w.start()
	w.await("it timed out", complains("slow", "app", "Readiness probe failed: command", "timed out after 1s"), ready("slow", "app", false))
	w.write("slow.yaml", manifest("{name: slow}", sleeping("app"))) // no more of them
	w.await("it is not probed", ready("slow", "app", true))
	id := w.ids()["slow-node/app/0"]
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("in the container: %q", left)
		}
	}()
	w.poll("its processes are gone", func() bool {
		left = nil
		top, err := w.engine.ContainerTop(context.Background(), id, []string{"-o", "pid,stat,args"})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range top.Processes {
			left = append(left, strings.Join(p, " "))
		}
		return len(left) > 0 && !slices.ContainsFunc(left, func(line string) bool {
			return strings.Contains(line, "sleep 471") || strings.Contains(line, "defunct")
		})
	})
	if n := status(w.await("it runs", runs("slow", "app", 0)), "slow", "app").RestartCount; n != 0 {
		t.Errorf("%d restarts", n)
	}
}

// A startup probe holds the others back; one that fails has its container
// restarted.
func TestStartupProbe(t *testing.T) {
	w := newWorld(t)
	w.write("start.yaml", manifest("{name: start}",
		of("late", "busybox:stable", `command: ["sh", "-c", "sleep 4; touch /up; trap 'exit 0' TERM; while :; do sleep 0.1; done"]`,
			`startupProbe: {exec: {command: [test, -f, /up]}, periodSeconds: 1, failureThreshold: 30}`,
			`livenessProbe: {exec: {command: [sh, -c, "test -f /up || touch /early"]}, periodSeconds: 1, failureThreshold: 1}`,
			`readinessProbe: {exec: {command: [sh, -c, "test ! -f /early"]}, periodSeconds: 10}`),
		sleeping("never", `startupProbe: {exec: {command: ["false"]}, periodSeconds: 1, failureThreshold: 3}`)))
	w.start()
	s := w.await("they run", runs("start", "late", 0), runs("start", "never", 0))
	for _, name := range []string{"late", "never"} {
		if c := status(s, "start", name); *c.Started || c.Ready {
			t.Errorf("%s: started %v, ready %v", name, *c.Started, c.Ready)
		}
	}
	s = w.await("the late one has started up and is ready", ready("start", "late", true))
	if c := status(s, "start", "late"); !*c.Started || c.RestartCount != 0 {
		t.Errorf("started %v, %d restarts", *c.Started, c.RestartCount)
	}
	w.await("the other was restarted", restarted("start", "never", 1))
}

// Readiness does not flip when the agent starts again: neither what was ready
// nor what was not.
func TestReadinessOverAnAgentRestart(t *testing.T) {
	var well atomic.Bool
	well.Store(true)
	page := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !well.Load() || r.URL.Path == "/bad" {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- page.Serve(l) }()
	t.Cleanup(func() { page.Close(); <-served })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	probe := func(path string) string {
		return "readinessProbe: {httpGet: {host: 127.0.0.1, port: " + port + ", path: " + path + "}, periodSeconds: 5, failureThreshold: 1}"
	}
	w := newWorld(t)
	w.write("two.yaml", manifest("{name: two}", sleeping("good", probe("/good"), "startupProbe: {tcpSocket: {host: 127.0.0.1, port: "+port+"}}"), sleeping("bad", probe("/bad"))))
	w.start()
	s := w.await("one is ready and one is not", ready("two", "good", true), ready("two", "bad", false), complains("two", "bad", "statuscode: 500"))
	w.poll("it is remembered", func() bool {
		data, err := os.ReadFile(filepath.Join(w.cfg.RootDir, "pods", string(find(s, "two").Pod.UID), "state.json"))
		return err == nil && strings.Contains(string(data), `"ready":true`)
	})
	for i := range 3 {
		w.restart()
		client, seen := server.NewClient(w.cfg.Socket), 0
		w.poll("it was seen for a while", func() bool {
			s, err := client.State(context.Background(), 0)
			if p := find(s, "two"); err == nil && p != nil && s.Ready && status(s, "two", "good").State.Running != nil {
				good, bad := status(s, "two", "good"), status(s, "two", "bad")
				if !good.Ready || !*good.Started || bad.Ready {
					t.Fatalf("start %d, look %d: good %+v, bad %+v", i, seen, good, bad)
				}
				seen++
			}
			return seen > 50
		})
	}
	well.Store(false)
	w.await("it is not ready any more", ready("two", "good", false))
}

// A sidecar's startup probe holds back what comes after it, and its liveness
// probe restarts it alone.
func TestProbesOfASidecar(t *testing.T) {
	w := newWorld(t)
	w.write("side.yaml", withInit(manifest("{name: side}", sleeping("app")),
		of("helper", "busybox:stable", "restartPolicy: Always", `command: ["sh", "-c", "sleep 3; touch /up; trap 'exit 0' TERM; while :; do sleep 0.1; done"]`,
			"startupProbe: {exec: {command: [test, -f, /up]}, periodSeconds: 1, failureThreshold: 30}",
			"livenessProbe: {exec: {command: [test, -f, /up]}, periodSeconds: 1, failureThreshold: 2}")))
	w.start()
	w.await("the app waits for the helper", initRuns("side", "helper", 0), waits("side", "app", "PodInitializing"))
	w.await("both run", runs("side", "app", 0), initReady("side", "helper"))
	before := w.ids()
	if code := w.exec(before["side-node/helper/0"], "rm", "/up"); code != 0 {
		t.Fatalf("rm: exit code %d", code)
	}
	w.await("the helper was restarted", initRuns("side", "helper", 1), initReady("side", "helper"))
	w.same(before, "side-node/POD/0", "side-node/app/0")
}

// exec runs a command in a container and returns its exit code.
func (w *world) exec(id string, command ...string) int {
	w.t.Helper()
	ctx := context.Background()
	created, err := w.engine.ContainerExecCreate(ctx, id, container.ExecOptions{Cmd: command, AttachStdout: true})
	if err != nil {
		w.t.Fatal(err)
	}
	stream, err := w.engine.ContainerExecAttach(ctx, created.ID, container.ExecAttachOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer stream.Close()
	_, _ = io.Copy(io.Discard, stream.Reader)
	in, err := w.engine.ContainerExecInspect(ctx, created.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return in.ExitCode
}

// Nothing that a probe's command printed is in the log, nor shown where the pod
// has secrets (C104).
func TestOutputOfProbesIsNotLogged(t *testing.T) {
	w := newWorld(t)
	command := `readinessProbe: {exec: {command: [sh, -c, "echo pass$((4000 + 711)); exit 7"]}, periodSeconds: 1}`
	w.write("plain.yaml", manifest("{name: plain}", sleeping("app", command)))
	w.start()
	w.await("its output is shown", complains("plain", "app", "Readiness probe failed: pass4711"))
	if lines := w.said.lines("pass4711"); len(lines) > 0 {
		t.Errorf("the log has it: %v", lines)
	}
	w.poll("the log says so, once", func() bool { return len(w.said.lines("probe does not succeed", "exit code 7")) == 1 })
	w.write("secret.yaml", secret("leak", `{pw: "S3CR3T-4711"}`)+"---\n"+manifest("{name: leak}", sleeping("app",
		"env: [{name: PW, valueFrom: {secretKeyRef: {name: leak, key: pw}}}]",
		`livenessProbe: {exec: {command: [sh, -c, "echo token=$PW; exit 9"]}, periodSeconds: 1, failureThreshold: 2}`)))
	s := w.await("it was restarted", restarted("leak", "app", 1), complains("leak", "app", "Liveness probe failed: exit code 9"))
	if data, err := json.Marshal(s); err != nil || strings.Contains(string(data), "S3CR3T") {
		t.Errorf("the state shows the secret: %v", err)
	}
	if lines := w.said.lines("S3CR3T"); len(lines) > 0 {
		t.Errorf("the log has it: %v", lines)
	}
}
