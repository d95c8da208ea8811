package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// podSpec is a pod, or a ConfigMap, as the driver wants it. Its YAML is all that
// the agent sees.
type podSpec struct {
	name string
	// config: it is a ConfigMap, whose only value is its label.
	config      bool
	hostname    int // pod-level
	hostNetwork bool
	port        int // a host port, 0 for none
	restart     string
	grace       int
	volume      bool
	label       int // live
	inits       []containerSpec
	containers  []containerSpec
	// uses is the ConfigMap that all containers have a variable from, shows the one
	// that a volume shows; "" for none. asks: to restart when it changes.
	uses, shows string
	asks        bool
	// What the first container requests: CPUs and GiB of memory, 0 for nothing.
	cpu, gigs int
}

type containerSpec struct {
	name   string
	image  string
	words  []string // the program, see fake.ParseProgram
	env    int
	memory int // MiB, changed in place
	// Those of its pod, of the first.
	cpu, gigs int
	// restart is its own policy, "" for the pod's. An init container that always
	// restarts is a sidecar.
	restart string
	// The commands of its probes and hooks, "" for none.
	startup, live, ready, postStart, preStop string
}

// Images of the simulated world. The last two cannot be had, nor what is left of a name
// that was cut off.
var images = []string{"app:1", "app:2", "far:1", "far:2", "fresh", "missing:1", "secret:1"}

func obtainable(image string) bool { return slices.Contains(images[:len(images)-2], image) }

var programs = [][]string{
	{"run"}, {"run"}, {"run"}, {"run"}, {"run"}, {"run"},
	{"ignore-term"},
	{"exit=0", "after=4m"}, {"exit=1", "after=20s"}, {"exit=0", "after=1s"}, {"oom", "after=2m"},
	{"exit=0", "after=80ms"}, {"exit=1", "after=10ms"},
	{"fail-start"},
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

var configs = []string{"conf0", "conf1"}

func newPod(r *rand.Rand, name string) *podSpec {
	p := &podSpec{name: name, restart: pick(r, []string{"Always", "Always", "Always", "OnFailure", "Never"}), grace: 1 + r.IntN(20), volume: r.IntN(2) == 0}
	if r.IntN(5) == 0 {
		p.port = 8080 + r.IntN(2)
	}
	p.hostNetwork = p.port == 0 && r.IntN(8) == 0
	if r.IntN(3) == 0 {
		for i := range 1 + r.IntN(3) {
			p.inits = append(p.inits, newInit(r, i))
		}
	}
	for i := range 1 + r.IntN(3) {
		p.containers = append(p.containers, newContainer(r, fmt.Sprintf("c%d", i)))
	}
	if r.IntN(4) == 0 {
		p.uses, p.asks = pick(r, configs), r.IntN(2) == 0
	}
	if r.IntN(3) == 0 {
		p.shows = pick(r, configs)
	}
	return p
}

// newInit returns an init container that does its work, mostly, or a sidecar.
func newInit(r *rand.Rand, n int) containerSpec {
	if r.IntN(2) == 0 {
		words := pick(r, [][]string{{"exit=0", "after=2s"}, {"exit=0", "after=10ms"}, {"exit=0", "after=20s"}, {"exit=0", "after=1s"}, {"exit=1", "after=3s"}})
		return containerSpec{name: fmt.Sprintf("i%d", n), image: "app:1", words: words}
	}
	words := pick(r, [][]string{{"run"}, {"run"}, {"run"}, {"ignore-term"}, {"exit=1", "after=50s"}})
	c := containerSpec{name: fmt.Sprintf("s%d", n), image: "app:1", words: words, restart: "Always"}
	if r.IntN(3) == 0 {
		c.startup = "exit=0 startup"
	}
	return c
}

func newContainer(r *rand.Rand, name string) containerSpec {
	c := containerSpec{name: name, image: "app:1", words: pick(r, programs)}
	if r.IntN(3) == 0 {
		c.image = pick(r, images)
	}
	if r.IntN(3) == 0 {
		c.memory = 64
	}
	if r.IntN(10) == 0 {
		c.restart = pick(r, []string{"Always", "OnFailure", "Never"})
	}
	some := func(from ...string) string {
		if r.IntN(6) > 0 {
			return ""
		}
		return pick(r, from)
	}
	// Their last word tells the calls of one container apart that come at once.
	c.startup = some("exit=0 startup", "exit=0 after=300ms startup")
	c.live = some("exit=0 live", "exit=0 live", "exit=1 live", "hang live")
	c.ready = some("exit=0 ready", "exit=0 ready", "exit=1 ready")
	c.postStart = some("exit=0 post", "exit=0 after=5s post", "exit=1 after=1s post")
	c.preStop = some("exit=0 pre", "exit=0 after=3s pre", "exit=1 pre", "hang pre")
	return c
}

// yaml returns the manifest, as a document of a file.
func (p *podSpec) yaml() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("apiVersion: v1")
	if p.config {
		line("kind: ConfigMap")
		line("metadata: {name: %s}", p.name)
		line("data: {x: \"%d\"}", p.label)
		return b.String()
	}
	line("kind: Pod")
	line("metadata:")
	line("  name: %s", p.name)
	if p.asks {
		line("  annotations: {podkeeper.io/restart-on-change: \"true\"}")
	}
	line("  labels: {rev: r%d}", p.label)
	line("spec:")
	if p.name == critical {
		line("  priorityClassName: system-node-critical")
	}
	line("  restartPolicy: %s", p.restart)
	line("  terminationGracePeriodSeconds: %d", p.grace)
	line("  hostname: h%d", p.hostname)
	line("  hostNetwork: %t", p.hostNetwork)
	if p.volume || p.shows != "" {
		line("  volumes:")
	}
	if p.volume {
		line("  - {name: scratch, emptyDir: {}}")
	}
	if p.shows != "" {
		line("  - {name: conf, configMap: {name: %s}}", p.shows)
	}
	if len(p.inits) > 0 {
		line("  initContainers:")
	}
	for _, c := range p.inits {
		p.container(line, c, 0)
	}
	line("  containers:")
	for i, c := range p.containers {
		port := 0
		if i == 0 {
			port = p.port
			c.cpu, c.gigs = p.cpu, p.gigs
		}
		p.container(line, c, port)
	}
	return b.String()
}

// container writes one of them, with a host port where that is not 0.
func (p *podSpec) container(line func(string, ...any), c containerSpec, port int) {
	words := func(text string) string { return strings.ReplaceAll(text, " ", ", ") }
	line("  - name: %s", c.name)
	line("    image: %s", c.image)
	line("    command: [%s]", strings.Join(c.words, ", "))
	line("    env:")
	line("    - {name: REV, value: \"%d\"}", c.env)
	if p.uses != "" {
		line("    - {name: CONF, valueFrom: {configMapKeyRef: {name: %s, key: x}}}", p.uses)
	}
	if p.volume || p.shows != "" {
		line("    volumeMounts:")
	}
	if p.volume {
		line("    - {name: scratch, mountPath: /scratch}")
	}
	if p.shows != "" {
		line("    - {name: conf, mountPath: /conf}")
	}
	if p.pinned() {
		line("    resources: {limits: {cpu: 1, memory: %dMi}}", cmp.Or(c.memory, 32))
	} else if c.memory > 0 {
		line("    resources: {limits: {memory: %dMi}, requests: {cpu: %d, memory: 16Mi}}", c.memory, c.cpu)
	} else if c.cpu > 0 || c.gigs > 0 {
		line("    resources: {requests: {cpu: %d, memory: %dGi}}", c.cpu, c.gigs)
	}
	if c.restart != "" {
		line("    restartPolicy: %s", c.restart)
	}
	if port > 0 {
		line("    ports:")
		line("    - {containerPort: 80, hostPort: %d}", port)
	}
	for _, probe := range [][2]string{{"startup", c.startup}, {"liveness", c.live}, {"readiness", c.ready}} {
		if probe[1] != "" {
			line("    %sProbe: {periodSeconds: 20, exec: {command: [%s]}}", probe[0], words(probe[1]))
		}
	}
	if c.postStart != "" || c.preStop != "" {
		line("    lifecycle:")
	}
	for _, hook := range [][2]string{{"postStart", c.postStart}, {"preStop", c.preStop}} {
		if hook[1] != "" {
			line("      %s: {exec: {command: [%s]}}", hook[0], words(hook[1]))
		}
	}
}

// yamlOf returns the file of those pods.
func yamlOf(pods []*podSpec) string {
	docs := make([]string, len(pods))
	for i, p := range pods {
		docs[i] = p.yaml()
	}
	return strings.Join(docs, "---\n")
}

// bodyOf returns the page of those pods: none at all is an explicit empty list.
func bodyOf(pods []*podSpec) string {
	if len(pods) == 0 {
		return `{"apiVersion": "v1", "kind": "PodList", "items": []}`
	}
	return yamlOf(pods)
}

// broken spoils a file in one of the ways in which people do.
func broken(r *rand.Rand, text string) string {
	switch r.IntN(5) {
	case 0:
		return ""
	case 1:
		return text[:r.IntN(len(text))+1] // a disk that filled up
	case 2:
		return strings.Replace(text, "spec:", "spec", 1)
	case 3:
		return strings.Replace(text, "containers:", "containerz:", 1)
	default:
		text = strings.Replace(text, "data: {x: ", "data: {x: 1, y: ", 1) // not in quotes
		return strings.Replace(text, "restartPolicy: ", "restartPolicy: [oops] ", 1)
	}
}
